"""What of a plan can be prepared in this process: a job per variant of a function that it has."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Final

from tprof.errors import TprofError
from tprof.prepare import find, libraries, mocks
from tprof.prepare.report import Item
from tprof.prepare.winners import restore
from tprof.record import guard
from tprof.record.triton_hooks import interpreted
from tprof.variants import DIVISIBLE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tprof.prepare.plan_file import Kernel, Pair, Plan, Specialization


OTHER_KEY: Final = (
    "its key in Triton's disk cache is another than recorded: the environment, the assembler or, with Triton 3.5 to "
    "3.7, the order of first uses differs"
)


@dataclass(frozen=True)
class Job:
    """One variant of one function of this process."""

    name: str
    function: Any
    variant: Specialization
    args: list[Any]

    def on(self, device: Any) -> None:
        """Compile and load it in a thread of a pool, for a device."""
        libraries.use(device)
        self.load()

    def compiled(self) -> Any:
        """The compiled kernel, from memory, disk or the compiler; None if a hook of the program declined."""
        options: dict[str, Any] = dict(map(tuple, self.variant.options))
        kernel = self.function.warmup(*self.args, grid=(1,), **options)
        return kernel.result() if hasattr(kernel, "result") else kernel  # a future, under Triton's AsyncCompileMode

    def load(self) -> str:
        """Put it on the device; what is to be known about it.

        Raises:
            TprofError: a hook of the program declined the compile; and whatever the driver raises.
        """
        # compiled again: of two threads that made a function's first kernels, one may have lost its own
        kernel = self.compiled()
        if kernel is None:
            raise TprofError("a compile hook of the program declined it")
        try:
            kernel._init_handles()  # noqa: SLF001 - what a first launch does, in every version from 3.2 to 3.9
        except guard.FAILURES:
            if "_run" in vars(kernel):  # Triton keeps the launcher without a module, and would launch nothing
                kernel._run = None  # noqa: SLF001 - the first launch tries again, and says what is wrong
            raise
        if self.variant.hash and kernel.hash != self.variant.hash:
            return OTHER_KEY
        return ""


def find_jobs(plan: Plan, kernels: Iterable[Any]) -> tuple[list[Job], list[Item]]:
    """What of a plan can be compiled here, the most called first, and what was done or skipped without a compile."""
    try:
        import triton  # noqa: PLC0415 - the program has chosen when Triton is imported

        if interpreted():
            return [], [Item("plan", "Triton", "skipped", 0, "TRITON_INTERPRET=1: kernels run in Python")]
        here = libraries.target(), str(triton.__version__)
        known = find.registry(kernels)
    except guard.FAILURES as error:  # no Triton, or no driver
        return [], [Item("plan", "Triton", "skipped", 0, f"cannot be used here: {error}")]
    mine = [k for k in plan.kernels if (k.target, k.triton) == here]
    items = [Item("plan", "kernels", "skipped", 0, _elsewhere(plan, *here))] if plan.kernels and not mine else []
    jobs: list[Job] = []
    for kernel in mine:
        try:
            items += _of_kernel(kernel, known, jobs)
        except guard.FAILURES as error:  # of Triton's hash of the source, or of a plan that somebody has edited
            items.append(Item("kernel", kernel.function, "failed", 0, f"{type(error).__name__}: {error}"))
    return sorted(jobs, key=lambda job: -job.variant.calls), items


def _of_kernel(kernel: Kernel, known: find.Registry, jobs: list[Job]) -> list[Item]:
    """Add a kernel's jobs and restore its winners; what is done or skipped by that."""
    functions, why = known.match(kernel)
    items = [Item("kernel", kernel.function, "skipped", 0, why)] if why else []
    items += restore(kernel, functions, known.tuners)
    for function in functions:
        function.cache_key  # noqa: B018 - computed here, one after another: Triton 3.5 to 3.7 makes it depend on the order
    for function, variant in product(functions, kernel.specializations):
        name = f"{kernel.function}({', '.join(filter(None, map(_told, variant.arguments)))})"
        try:
            args = [mocks.argument(*argument, functions=known.find) for argument in variant.arguments]
        except mocks.NoMockError as error:
            items.append(Item("kernel", name, "skipped", 0, str(error)))
        else:
            jobs.append(Job(name, function, variant, args))
    return items


def _elsewhere(plan: Plan, target: str, version: str) -> str:
    others = sorted({f"{k.target} with Triton {k.triton}" for k in plan.kernels})
    return f"planned for {', '.join(others)}, but this is {target} with Triton {version}; record and plan it here"


def _told(argument: Pair) -> str:
    """What about an argument tells the variants of a function apart: a constant, a number, an address that is odd."""
    name, kind, *rest = argument
    if isinstance(kind, dict):
        return f"{name}={kind['constexpr']}"
    divisible = DIVISIBLE in (rest[0] if rest else [])
    if str(kind).startswith("*"):
        return "" if divisible else f"{name} unaligned"
    return f"{name}%16" if divisible else name
