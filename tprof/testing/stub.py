"""A CUDA-shaped Triton driver for machines without a GPU: test your own kernels, autotuners and caches in CI.

Real: specialization, cache keys, every compile stage down to the cubin (by the ptxas that Triton bundles), the disk
cache, the autotuner, `triton.testing.do_bench`, OutOfResources, and every hook in the order in which Triton fires it.
Fake: module load, launch, CUDA events and streams.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from typing import TYPE_CHECKING, Any

import triton
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from tprof.testing.interpret import interpret
from tprof.testing.resources import PROPERTIES, Launch, Load, resources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# `load_binary` tells the largest number of threads of a kernel wherever there are knobs (3.4 on)
TELLS_THREADS = hasattr(triton, "knobs")


@contextlib.contextmanager
def stub_driver(
    capability: int = 90,
    *,
    interpreted: bool = False,
    cost_ns: Callable[[Launcher, tuple[int, ...], tuple[Any, ...]], float] | None = None,
    fail_load: Callable[[str], bool] | None = None,
    fail_launch: Callable[[str], bool] | None = None,
    **properties: int,
) -> Iterator[Driver]:
    """Make a stub the active Triton driver, and put back what was there.

    Args:
        capability: compute capability to compile for, times ten: 80, 86, 89, 90, 100.
        interpreted: run each launch's Python body in Triton's interpreter, on CPU tensors, for right numbers.
        cost_ns: `(launcher, grid, arguments) -> ns` that a launch adds to the device clock, to tell candidates apart.
        fail_load: `(kernel name) -> bool`, whether its module load fails as a driver's would.
        fail_launch: `(kernel name) -> bool`, whether its launch fails after Triton's enter hook.
        properties: device properties that differ from the capability's, such as `max_shared_mem`.

    Yields:
        The driver, with `launches`, `loads` and `unloads` so far.
    """
    from triton.runtime import driver as config  # noqa: PLC0415 - its `active` is what is replaced

    before = vars(config).get("_active", vars(config).get("active"))
    driver = Driver(capability, properties)
    driver.interpreted, driver.cost_ns = interpreted, cost_ns
    driver.fail_load, driver.fail_launch = fail_load, fail_launch
    config.set_active(driver)
    _forget_device()
    try:
        yield driver
    finally:
        _forget_device()
        # Kernels outlive the block, and from 3.8 on unload their module through the active driver as they die:
        # where there was no driver before, the stub stays.
        if before is not None:
            config.set_active(before)


def _forget_device() -> None:
    """What Triton remembers of a device for as long as the process lives is not true of the next one."""
    from triton.compiler import compiler  # noqa: PLC0415 - as above

    forget = getattr(getattr(compiler, "max_shared_mem", None), "cache_clear", None)  # 3.2 has neither
    if forget is not None:
        forget()


class Utils:
    """`driver.active.utils`: what Triton asks of the CUDA driver through its C module."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._handles = itertools.count(0x7F0000001000, 0x1000)

    def get_device_properties(self, _device: int) -> dict[str, int]:
        """Properties of the only device."""
        return dict(self._driver.properties)

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[int, ...]:
        """Pretend to load a cubin; registers and spills are read out of it."""
        driver = self._driver
        if driver.fail_load is not None and driver.fail_load(name):
            raise RuntimeError("Triton Error [CUDA]: device kernel image is invalid (stub)")
        used = resources(kernel)
        registers, spills = used.get("REG", 32), (used.get("STACK", 0) + used.get("LOCAL", 0)) // 4
        module = next(self._handles)
        driver.loads.append(Load(name, module, len(kernel), shared, device, registers, spills, time.perf_counter_ns()))
        driver.names[module + 1] = name
        threads = min(1024, 65536 // max(registers, 1) // 32 * 32)
        loaded = (module, module + 1, registers, spills, threads)
        return loaded if TELLS_THREADS else loaded[:4]

    def unload_module(self, module: int) -> None:
        """A kernel died (3.8 on)."""
        self._driver.unloads.append(module)

    def set_printf_fifo_size(self, *_: int) -> None:
        """Nothing prints."""

    def is_stream_capturing(self, *_: int) -> bool:
        """There are no CUDA graphs."""
        return False


class Launcher:
    """`launcher_cls(src, metadata)`: called like CudaLauncher in every version; hooks fire as from its C code."""

    def __init__(self, src: Any, metadata: Any) -> None:
        self.src, self.metadata = src, metadata
        self.driver: Driver = triton.runtime.driver.active

    def __call__(self, *args: Any) -> None:
        """Launch: grid x y z, stream, function, packed metadata, launch metadata, enter hook, exit hook, arguments."""
        grid, (stream, function, _, metadata, enter, leave) = args[:3], args[3:9]
        if enter is not None:
            enter(metadata)
        self.driver.launch(self, grid, stream, function, args[9:])
        if leave is not None:
            leave(metadata)


class _Event:
    """A CUDA event on the device's clock."""

    def __init__(self, **_: Any) -> None:
        self._t_ns = 0

    def record(self, _stream: Any = None) -> None:
        self._t_ns = triton.runtime.driver.active.device_clock_ns()

    def synchronize(self) -> None:
        """Launches take no time that would have to be waited for."""

    def query(self) -> bool:
        """Whether the device is done with it."""
        return True

    def elapsed_time(self, other: _Event) -> float:
        return max((other._t_ns - self._t_ns) / 1e6, 1e-4)


class _Device:
    """What `do_bench` asks of torch.cuda."""

    def Event(self, enable_timing: bool = False, **_: Any) -> _Event:  # noqa: ARG002, FBT001, FBT002, N802
        return _Event()

    def synchronize(self, *_: Any) -> None:
        """Nothing runs."""

    def current_device(self) -> int:
        return 0


class _L2:
    """The buffer by which `do_bench` flushes the L2 cache."""

    def zero_(self) -> _L2:
        return self


class Driver(DriverBase):  # type: ignore[misc]  # Triton has no types
    """The driver. `launches`, `loads` and `unloads` list what it was asked to do."""

    def __init__(self, capability: int, properties: dict[str, int]) -> None:
        self.capability = capability
        self.properties = {**PROPERTIES[None], **PROPERTIES.get(capability, {}), **properties}
        self.launches: list[Launch] = []
        self.loads: list[Load] = []
        self.unloads: list[int] = []
        self.names: dict[int, str] = {}
        self.interpreted = False
        self.cost_ns: Callable[..., float] | None = None
        self.fail_load: Callable[[str], bool] | None = None
        self.fail_launch: Callable[[str], bool] | None = None
        self.keep_launches = True
        self.utils, self.launcher_cls = Utils(self), Launcher
        self._charged_ns = 0

    def launch(self, launcher: Launcher, grid: tuple[int, ...], stream: int, function: int, args: Any) -> None:
        """Take a launch; an empty grid launches nothing, as on a GPU."""
        name = self.names.get(function, "?")
        if self.fail_launch is not None and self.fail_launch(name):
            raise ValueError("Pointer argument (at 0) cannot be accessed from Triton (cpu tensor?) (stub)")
        if 0 in grid:
            return
        if self.keep_launches:
            self.launches.append(Launch(name, grid, stream, args, time.perf_counter_ns()))
        if self.cost_ns is not None:
            self._charged_ns += int(self.cost_ns(launcher, grid, args))
        if self.interpreted:
            interpret(launcher.src, grid, args)

    def device_clock_ns(self) -> int:
        """The host's clock and what launches were charged."""
        return time.perf_counter_ns() + self._charged_ns

    @classmethod
    def is_active(cls) -> bool:
        """Always."""
        return True

    def map_python_to_cpp_type(self, ty: str) -> str:
        """Types stay as they are."""
        return ty

    def get_current_target(self) -> Any:
        """What to compile for."""
        return GPUTarget("cuda", self.capability, 32)

    def get_current_device(self) -> int:
        """There is one device."""
        return 0

    def set_current_device(self, device: int) -> None:
        """There is one device."""

    def get_current_stream(self, _device: int | None = None) -> int:
        """The default stream."""
        return 0

    def get_device_capability(self, _device: int | None = None) -> tuple[int, int]:
        """Major and minor."""
        return divmod(self.capability, 10)

    def get_active_torch_device(self) -> Any:
        """Where torch tensors are."""
        import torch  # noqa: PLC0415 - whoever asks has it

        return torch.device("cpu")

    def get_device_interface(self) -> _Device:
        """What `do_bench` takes for torch.cuda."""
        return _Device()

    def get_benchmarker(self) -> Any:
        """Triton's own."""
        from triton.testing import do_bench  # noqa: PLC0415 - it imports torch

        return do_bench

    def get_empty_cache_for_benchmark(self) -> _L2:
        """What is flushed between launches of a benchmark."""
        return _L2()

    def clear_cache(self, cache: _L2) -> None:
        """Flush."""
        cache.zero_()

    def assemble_tensormap_to_arg(self, _tensormaps: Any, args: Any) -> Any:
        """Tensor maps are passed by nobody."""
        return args
