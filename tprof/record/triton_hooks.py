"""Puts the wraps on whichever Triton is there, by probing what it has; and takes them off."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

from tprof.record import guard, triton_compile, triton_launch, triton_tune
from tprof.record.patches import Slot, patches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_slots: list[tuple[Slot, Callable[..., Any]]] = []


def install() -> None:
    """Wrap Triton, importing it unless it is missing."""
    try:
        import triton  # noqa: F401, PLC0415 - recording is asked for: not before
    except ImportError:
        guard.warn("no-triton", "triton is not installed here: nothing of it can be recorded")
        return
    if interpreted():
        guard.warn("interpreted", "TRITON_INTERPRET=1: kernels run in Python, so there is nothing to be seen of them")
        return
    for owner, name, wrap in _targets():
        guard.call(f"patch:{name}", patches.wrap, owner, name, wrap)
    guard.call(triton_launch.HOOK, _install_launch)


def remove() -> None:
    """Take everything off that is still ours."""
    while _slots:
        slot, hook = _slots.pop()
        guard.call("patch:launch", slot.remove, hook)
    left = guard.call("patch:restore", patches.restore)
    if left:
        guard.warn("still-wrapped", f"another tool wrapped {', '.join(left)} over tprof, which now passes through")


@contextlib.contextmanager
def hidden() -> Iterator[None]:
    """For a block: Triton's launch hooks as they are without tprof."""
    with contextlib.ExitStack() as stack:
        for slot, hook in _slots:
            stack.enter_context(slot.hidden(hook))
        yield


def interpreted() -> bool:
    """Whether Triton runs kernels in its interpreter."""
    import triton  # noqa: PLC0415

    from_knobs = getattr(getattr(triton, "knobs", None), "runtime", None)
    if from_knobs is not None:
        return bool(from_knobs.interpret)
    import os  # noqa: PLC0415

    return os.environ.get("TRITON_INTERPRET", "0") == "1"


def _targets() -> Iterator[tuple[Any, str, Callable[[Any], Callable[..., Any]]]]:
    from triton.compiler import compiler  # noqa: PLC0415
    from triton.runtime import jit  # noqa: PLC0415

    if "_do_compile" in vars(jit.JITFunction):
        yield jit.JITFunction, "_do_compile", triton_compile.wrap_do_compile
    else:
        yield jit.JITFunction, "_call_hook", triton_compile.wrap_call_hook
    gluon = sys.modules.get("triton.experimental.gluon._runtime")
    for source in (compiler.ASTSource, getattr(compiler, "IRSource", None), getattr(gluon, "GluonASTSource", None)):
        if source is not None:
            yield source, "make_ir", triton_compile.wrap_make_ir
    yield compiler.CompiledKernel, "_init_handles", triton_compile.wrap_init_handles
    yield from _backends()
    yield from _caches()
    yield from _tuners()


def _backends() -> Iterator[tuple[Any, str, Callable[[Any], Callable[..., Any]]]]:
    from triton.backends import backends  # noqa: PLC0415

    for backend in backends.values():
        yield backend.compiler, "add_stages", triton_compile.wrap_add_stages


def _caches() -> Iterator[tuple[Any, str, Callable[[Any], Callable[..., Any]]]]:
    """The cache manager in use: Triton's own, or the one that TRITON_CACHE_MANAGER names."""
    import triton  # noqa: PLC0415
    from triton.runtime import cache  # noqa: PLC0415

    custom = getattr(getattr(getattr(triton, "knobs", None), "cache", None), "manager_class", None)
    before_knobs = vars(cache).get("__cache_cls")
    for manager in dict.fromkeys((custom, before_knobs, cache.FileCacheManager)):
        if isinstance(manager, type):
            yield manager, "get_group", triton_compile.wrap_get_group
            yield manager, "put_group", triton_compile.wrap_put_group


def _tuners() -> Iterator[tuple[Any, str, Callable[[Any], Callable[..., Any]]]]:
    """Triton's Autotuner and its subclasses, where they define the methods anew."""
    from triton.runtime.autotuner import Autotuner  # noqa: PLC0415

    wraps = {
        "warmup": triton_tune.wrap_warmup,
        "prune_configs": triton_tune.wrap_prune,
        "_bench": triton_tune.wrap_bench,
        "check_disk_cache": triton_tune.wrap_check_disk_cache,
    }
    known = [Autotuner]
    for tuner in known:
        known.extend(sub for sub in tuner.__subclasses__() if sub not in known)
        yield from ((tuner, name, wrap) for name, wrap in wraps.items() if name in vars(tuner))


def _install_launch() -> None:
    """Launch hooks, in the slots of the version: `triton.knobs.runtime` (3.4 on) or the class (before)."""
    import triton  # noqa: PLC0415
    from triton.compiler.compiler import CompiledKernel  # noqa: PLC0415

    runtime = triton.knobs.runtime if hasattr(triton, "knobs") else CompiledKernel
    slot = Slot(runtime, "launch_exit_hook")

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        return triton_launch.build(original, runtime)

    patches.wrap(CompiledKernel, "launch_metadata", wrap)
    slot.add(triton_launch.leave)
    _slots.append((slot, triton_launch.leave))
