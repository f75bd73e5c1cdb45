"""The kernels that this process has: plans are matched with them, and never import anything themselves."""

from __future__ import annotations

import gc
import sys
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

from tprof.record.fingerprint import MARK, fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tprof.prepare.plan_file import Kernel


@dataclass
class Registry:
    """Jitted functions by qualified name, and autotuners by the function that they tune.

    Attributes:
        functions: `JITFunction`s by their name without the module: a program may run as `__main__`, or be imported.
        tuners: (function, its autotuner) pairs.
    """

    functions: dict[str, list[Any]] = field(default_factory=dict)
    tuners: list[tuple[Any, Any]] = field(default_factory=list)

    def find(self, function: str) -> Any:
        """A function of that name, its module in front; None where there is none."""
        return next((f for name, found in self.functions.items() if _is_end(name, function) for f in found), None)

    def match(self, kernel: Kernel) -> tuple[list[Any], str]:
        """Functions of this process that are a plan's kernel, and if there is none, why.

        The hash of the source decides, and that of all it uses: a function of the same name is not enough.
        """
        named = [f for name, found in self.functions.items() if _is_end(name, kernel.function) for f in found]
        same = [f for f in named if _source(f, kernel.source) == kernel.source]
        if same:  # of copies, as an interpreter or a reloader makes them, the one that the module has is called
            return [f for f in same if _at_home(f)] or same, ""
        if named:
            return [], "its source, or something that it uses, has changed since it was recorded; record it again"
        return [], "this process has no such function; import its module before the warm-up"


def _source(function: Any, known: str) -> str | None:
    """The hash of a function, of the kind that a plan has: tprof's, or Triton's."""
    return fingerprint(function) if known.startswith(MARK) else function.cache_key


def _is_end(name: str, function: str) -> bool:
    return function == name or function.endswith(f".{name}")


def registry(kernels: Iterable[Any] = ()) -> Registry:
    """What is there: all jitted functions and autotuners of the process.

    Args:
        kernels: more of them, where the garbage collector cannot see them (after `gc.freeze()`).
    """
    from triton.runtime.autotuner import Autotuner  # noqa: PLC0415 - the program has chosen when Triton is imported
    from triton.runtime.jit import JITFunction  # noqa: PLC0415

    found = Registry()
    for thing in {id(thing): thing for thing in _of(JITFunction, Autotuner, kernels)}.values():
        if isinstance(thing, JITFunction):
            found.functions.setdefault(thing.fn.__qualname__, []).append(thing)
        elif (function := _innermost(thing, JITFunction)) is not None:
            found.tuners.append((function, thing))
    return found


def _of(function: type[Any], tuner: type[Any], more: Iterable[Any]) -> Iterator[Any]:
    """Instances of the two classes and what derives from them.

    An instance refers to its class. Not `gc.get_objects()`: it would hold tuples that other threads are building, which
    then fail with a SystemError. Not `isinstance` on all there is: it asks lazy objects for their class and wakes them.
    """
    kinds = [function, tuner]
    for kind in kinds:
        kinds += [derived for derived in kind.__subclasses__() if derived not in kinds]
    named = chain.from_iterable(list(getattr(m, "__dict__", {}).values()) for m in list(sys.modules.values()))
    return (thing for thing in chain(gc.get_referrers(*kinds), named, more) if type(thing) in kinds)


def _at_home(function: Any) -> bool:
    """Whether a function, or an autotuner of it, is what its module has under its name."""
    home = getattr(sys.modules.get(function.fn.__module__), function.fn.__qualname__, None)
    return _innermost(home, type(function)) is function


def _innermost(tuner: Any, kind: type[Any]) -> Any:
    """The jitted function beneath autotuners and heuristics; None where there is none."""
    while tuner is not None and not isinstance(tuner, kind):
        tuner = getattr(tuner, "fn", None)
    return tuner
