"""Inductor's static launcher: chosen exactly as without tprof, and its module loads, of which Triton knows nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from tprof.record import guard, triton_hooks
from tprof.record import session as live
from tprof.record.around import Method, around
from tprof.record.threads import local

if TYPE_CHECKING:
    from tprof.record.session import Session
    from tprof.record.spans import Cold


def wrap_can_statically_launch(original: Method) -> Method:
    """`StaticTritonCompileResult.can_statically_launch`: it says no where anybody listens to launches."""

    def can_statically_launch(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        session = live.active
        if session is None:
            return original(kernel, *args, **kwargs)
        guard.call("inductor_jit", _note_kernel, session, kernel)
        with triton_hooks.hidden():
            return original(kernel, *args, **kwargs)

    return can_statically_launch


def _note_kernel(session: Session, kernel: Any) -> None:
    """The one moment at which Triton's own kernel is at hand: the static launcher keeps little of it."""
    stack = local.state.stack
    if stack and stack[-1].kind == "jit":
        stack[-1].attrs["kernel"] = session.tables.kernel(kernel).id


def wrap_make_launcher(original: Method) -> Method:
    """`TritonCompileResult.make_launcher`: before Triton 3.5 it copies the hooks, which outlive the recording there."""

    def make_launcher(self: Any, *args: Any, **kwargs: Any) -> Any:
        if live.active is None:
            return original(self, *args, **kwargs)
        with triton_hooks.hidden():
            return original(self, *args, **kwargs)

    return make_launcher


def _is_loaded(kernel: Any, device: Any, *_: Any, **__: Any) -> bool:
    """Loaded on this device (2.15 on, device-agnostic kernels), or at all."""
    return device in (getattr(kernel, "functions", None) or ()) or getattr(kernel, "function", None) is not None


def _load(session: Session, kernel: Any, *_: Any, **__: Any) -> tuple[str, dict[str, Any]]:
    path = getattr(kernel, "cubin_path", None)
    size = os.stat(path).st_size if path and os.path.exists(path) else None  # noqa: PTH110, PTH116 - text, as torch's
    facts = {"kernel": kernel_id(session, kernel), "hash": str(kernel.hash), "bytes": size, "launcher": "static"}
    return str(kernel.name), facts


def _loaded(_: Cold, __: Any, kernel: Any, *___: Any, **____: Any) -> dict[str, Any]:
    return {"registers": getattr(kernel, "n_regs", None), "spills": getattr(kernel, "n_spills", None)}


# `StaticallyLaunchedTritonKernel.load_kernel`: the cubin goes to the device, in the process that launches.
wrap_load_kernel: Final = around("load", _load, _loaded, hook="inductor_load", unless=_is_loaded)


def kernel_id(session: Session, kernel: Any) -> int:
    """Id of a statically launched kernel; a worker or the graph cache compiled it, unless its row is there already."""
    return session.tables.kernel_by_hash(str(kernel.hash), lambda: describe(kernel))


def describe(kernel: Any) -> dict[str, Any]:
    """The row of a kernel, as far as its static launcher knows it."""
    return {
        "name": str(kernel.name),
        "function": str(kernel.name),
        "file": None,
        "line": None,
        "options": {"num_warps": getattr(kernel, "num_warps", None)},
        "shared_bytes": getattr(kernel, "shared", None),
        "launcher": "static",
    }
