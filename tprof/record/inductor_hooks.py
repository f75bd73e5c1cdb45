"""Puts the wraps on whichever Dynamo and Inductor the program imports, as soon as it does; and takes them off."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tprof.record import (
    dynamo,
    graphs,
    guard,
    inductor,
    inductor_gemm,
    inductor_launch,
    inductor_static,
    worker,
)
from tprof.record.imports import watcher
from tprof.record.patches import patches

if TYPE_CHECKING:
    from types import ModuleType

Wrap = Callable[[Any], Any]
SELECTOR: Final = "torch._inductor.select_algorithm"


class Target(NamedTuple):
    """A method to wrap: in a module, of a class (None: of the module itself)."""

    module: str
    owner: str | None
    name: str
    wrap: Wrap


_HEURISTICS: Final = "torch._inductor.runtime.triton_heuristics"
_TUNER: Final = "CachingAutotuner"

# Torch 2.6 to 2.15. What a version lacks is skipped: names that moved are there once for each place.
TARGETS: Final = (
    Target("torch._dynamo.utils", "ChromiumEventLogger", "log_event_start", dynamo.wrap_event_start),
    Target("torch._dynamo.utils", "ChromiumEventLogger", "log_event_end", dynamo.wrap_event_end),
    Target("torch._dynamo.utils", "ChromiumEventLogger", "log_instant_event", dynamo.wrap_instant_event),
    Target(
        "torch._dynamo.convert_frame", None, "get_and_maybe_log_recompilation_reasons", dynamo.wrap_recompile_reasons
    ),
    Target(  # 2.6
        "torch._dynamo.convert_frame", None, "get_and_maybe_log_recompilation_reason", dynamo.wrap_recompile_reasons
    ),
    Target(_HEURISTICS, _TUNER, "_precompile_config", inductor.wrap_precompile_config),
    Target(_HEURISTICS, _TUNER, "bench", inductor.wrap_bench),
    Target(_HEURISTICS, _TUNER, "autotune_to_one_config", inductor.wrap_autotune),
    Target(_HEURISTICS, _TUNER, "run", inductor_launch.wrap_run),
    Target(
        _HEURISTICS,
        "StaticTritonCompileResult",
        "can_statically_launch",
        inductor_static.wrap_can_statically_launch,
    ),
    Target(_HEURISTICS, "TritonCompileResult", "make_launcher", inductor_static.wrap_make_launcher),
    Target("torch._inductor.runtime.coordinate_descent_tuner", "CoordescTuner", "autotune", inductor.wrap_coordesc),
    Target("torch._inductor.runtime.autotune_cache", "AutotuneCache", "read_best", inductor.wrap_read_best),
    Target("torch._inductor.runtime.autotune_cache", "AutotuneCache", "save", inductor.wrap_save),
    Target(  # 2.8 to 2.10 or later
        "torch._inductor.runtime.static_cuda_launcher",
        "StaticallyLaunchedCudaKernel",
        "load_kernel",
        inductor_static.wrap_load_kernel,
    ),
    Target(
        "torch._inductor.runtime.static_triton_launcher",
        "StaticallyLaunchedTritonKernel",
        "load_kernel",
        inductor_static.wrap_load_kernel,
    ),
    Target("torch._inductor.async_compile", None, "_worker_compile_triton", worker.WorkerCompile),
    Target(SELECTOR, "AlgorithmSelectorCache", "__init__", inductor_gemm.wrap_selector),
    Target("torch._inductor.cudagraph_trees", "CUDAGraphTreeManager", "record_function", graphs.wrap_record_function),
    Target("torch.cuda.graphs", "CUDAGraph", "capture_begin", graphs.wrap_capture_begin),
    Target("torch.cuda.graphs", "CUDAGraph", "capture_end", graphs.wrap_capture_end),
)


def install() -> None:
    """Wrap what is imported, and the rest when it will be. Imports nothing of torch."""
    for target in TARGETS:
        _watch(target.module, partial(_wrap, target))
    _watch(SELECTOR, inductor_gemm.watch)


def remove() -> None:
    """Wait for no further imports, and leave no feedback function behind; `patches.restore` does the rest."""
    watcher.forget(_callbacks)
    _callbacks.clear()
    guard.call(inductor_gemm.HOOK, inductor_gemm.forget, sys.modules.get(SELECTOR))


def _watch(module: str, callback: Callable[[ModuleType], None]) -> None:
    _callbacks.append(callback)
    watcher.watch(module, callback)


def _wrap(target: Target, module: ModuleType) -> None:
    owner = module if target.owner is None else getattr(module, target.owner, None)
    if owner is not None:
        guard.call(f"patch:{target.name}", patches.wrap, owner, target.name, target.wrap)


_callbacks: Final[list[Callable[[ModuleType], None]]] = []
