"""What a recording says of Triton's objects. Works by probing: an attribute that a version lacks is left out."""

from __future__ import annotations

import hashlib
import sys
from typing import TYPE_CHECKING, Any, Final

from tprof.record.fingerprint import fingerprint, lines
from tprof.record.journal import plain

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType

MAX_ARGUMENTS: Final = 64
MAX_FRAMES: Final = 100
STACK: Final = 3  # frames of the program that are named
NOT_THE_USER: Final = frozenset({
    "triton", "torch", "tprof", "contextlib", "functools", "threading", "concurrent", "importlib",
})  # fmt: skip
OPTIONS: Final = (
    "num_warps", "num_ctas", "num_stages", "maxnreg", "cluster_dims", "enable_fp_fusion", "launch_cooperative_grid",
    "launch_pdl", "warp_size", "debug", "sanitize_overflow", "ir_override",
)  # fmt: skip


def function_name(kernel: Any) -> str:
    """Name of the Python function that a CompiledKernel came from, else the kernel's own."""
    source = getattr(getattr(kernel, "src", None), "fn", None)
    return str(getattr(source, "__name__", None) or getattr(kernel, "name", "?"))


def function(jit_function: Any) -> dict[str, Any]:
    """Qualified name, file and line of a JITFunction."""
    raw = getattr(jit_function, "fn", jit_function)
    code = getattr(raw, "__code__", None)
    return {
        "function": f"{getattr(raw, '__module__', '?')}.{getattr(raw, '__qualname__', '?')}",
        "file": getattr(code, "co_filename", None),
        "line": getattr(code, "co_firstlineno", None),
    }


def kernel(compiled: Any) -> dict[str, Any]:
    """Everything about a CompiledKernel that is known before its module is loaded."""
    source, metadata = getattr(compiled, "src", None), getattr(compiled, "metadata", None)
    target = getattr(metadata, "target", None)
    binary = getattr(compiled, "kernel", None)
    return {
        "name": str(compiled.name),
        "hash": getattr(compiled, "hash", None),
        **function(getattr(source, "fn", None)),
        "signature": plain(getattr(source, "signature", None)),
        "constexprs": constants(source),
        "options": {name: plain(getattr(metadata, name)) for name in OPTIONS if hasattr(metadata, name)},
        "shared_bytes": getattr(metadata, "shared", None),
        "target": {name: plain(getattr(target, name, None)) for name in ("backend", "arch", "warp_size")},
        "binary_bytes": len(binary) if isinstance(binary, bytes) else None,
        "key_parts": key_parts(source, target),
    }


def key_parts(source: Any, target: Any) -> dict[str, Any]:
    """What Triton's disk cache made the kernel's key of, besides the variant itself; and our own hash of the source.

    Empty in a process that has not looked for a kernel on disk yet, as one has whose kernels come from compile workers:
    Triton's hash of itself takes up to a second, and asking the assembler for its version starts a process.
    """
    from triton.compiler import compiler  # noqa: PLC0415 - a kernel is there, so Triton is

    triton_key = hash_of_triton()
    if not hasattr(triton_key, "cache_info") or not triton_key.cache_info().currsize:
        return {}
    function = getattr(source, "fn", None)
    return {
        "source": getattr(function, "cache_key", None),
        "fingerprint": fingerprint(function),
        "lines": lines(function),
        "triton": hashlib.sha256(str(triton_key()).encode()).hexdigest(),
        "backend": str(compiler.make_backend(target).hash()),
        "environment": plain(compiler.get_cache_invalidating_env_vars()),
    }


def hash_of_triton() -> Any:
    """Triton's function that hashes its own files, once per process; None where a version has none."""
    places = map(sys.modules.get, ("triton.compiler.compiler", "triton.runtime.cache"))
    return next((found for place in places if (found := getattr(place, "triton_key", None))), None)


def caller() -> list[str]:
    """Where the user's program asked for what is going on: up to three frames, innermost first, as `file:line name`."""
    found: list[str] = []
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the only way to look without building a whole traceback
    for _ in range(MAX_FRAMES):
        if frame is None or len(found) == STACK:
            break
        code, module = frame.f_code, str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] not in NOT_THE_USER:
            found.append(f"{code.co_filename}:{frame.f_lineno} {code.co_qualname}")
        frame = frame.f_back
    return found


def constants(source: Any) -> dict[str, Any]:
    """Constant arguments of a source by name: `constexpr` parameters and integers that were 1."""
    names = argument_names(getattr(source, "fn", None))
    return {_named(path, names): plain(value) for path, value in dict(getattr(source, "constants", None) or {}).items()}


def argument_names(jit_function: Any) -> list[str]:
    """Parameter names of a JITFunction, in order; empty for anything else."""
    return [str(name) for name in getattr(jit_function, "arg_names", None) or ()]


def _named(path: Any, names: list[str]) -> str:
    """Name of an argument that Triton names by its path (3.3 on) or by name (3.2)."""
    if isinstance(path, tuple) and path and isinstance(path[0], int) and path[0] < len(names):
        return ".".join([names[path[0]], *map(str, path[1:])])
    return str(path)


def loaded(compiled: Any) -> dict[str, Any]:
    """What is known of a kernel once its module is on the device."""
    found = {"registers": "n_regs", "spills": "n_spills", "max_threads": "n_max_threads"}
    return {name: getattr(compiled, attribute, None) for name, attribute in found.items()}


def launch_metadata(compiled: Any) -> Any:
    """A stand-in for what Triton hands its launch hooks, should one be added in the middle of a launch."""
    from triton.compiler import compiler  # noqa: PLC0415 - only ever called where Triton is at work

    data = {"name": compiled.name, "function": compiled.function, "stream": None}
    return compiler.LazyDict(data) if hasattr(compiler, "LazyDict") else None


# ---- arguments of a launch


def arguments(compiled: Any, args: tuple[Any, ...]) -> dict[str, Any]:
    """Arguments of a launch by name: tensors as dtype, shape and stride; scalars by value; constants left out."""
    return {name: argument(value) for name, value in named(compiled, args).items()}


def named(compiled: Any, args: tuple[Any, ...]) -> dict[str, Any]:
    """The first arguments of a launch by name, as they are; constants left out."""
    jit_function = getattr(getattr(compiled, "src", None), "fn", None)
    names = argument_names(jit_function)
    constant = set(getattr(jit_function, "constexprs", ()) or ())
    if len(args) < len(names):  # 3.2 passes the arguments that are no constexprs
        names = [name for i, name in enumerate(names) if i not in constant]
        constant = set()
    pairs = list(zip(names, args, strict=False)) or [(str(i), value) for i, value in enumerate(args)]
    return {name: value for i, (name, value) in enumerate(pairs[:MAX_ARGUMENTS]) if i not in constant}


def argument(value: Any) -> Any:
    """One argument: {dtype, shape, stride} of a tensor, a scalar itself, else text."""
    base = getattr(value, "base", value)
    if hasattr(base, "shape") and hasattr(base, "dtype"):
        stride = getattr(base, "stride", getattr(base, "strides", None))
        return {
            "dtype": str(base.dtype).replace("torch.", ""),
            "shape": [int(n) for n in base.shape],
            "stride": [int(n) for n in (stride() if callable(stride) else stride or ())],
        }
    if isinstance(value, list | tuple):
        return [argument(item) for item in value[:MAX_ARGUMENTS]]
    return plain(value) if isinstance(value, int | float | str | None) else type(value).__name__


def identity(value: Any) -> Any:
    """What `shapes="always"` tells launches apart by."""
    if hasattr(value, "shape") and hasattr(value, "stride") and callable(value.stride):
        return (value.dtype, tuple(value.shape), tuple(value.stride()))
    return value if type(value) in (int, float, bool) else None


# ---- specializations


def specialization(jit_function: Any, bound: dict[str, Any]) -> dict[str, Any]:
    """The specialization that a JITFunction is about to compile, argument by argument.

    Args:
        jit_function: the function.
        bound: the arguments of Triton's `_do_compile` or `_call_hook` by name.
    """
    names = argument_names(jit_function)
    attrs = bound.get("attrs") or next(iter(bound.get("configs") or ()), None)
    found = {
        _named(path, names): constant(value)
        for path, value in dict(bound.get("constexprs") or bound.get("constants") or {}).items()
    }
    hints = dict(_hints(attrs, names))
    for name, kind in dict(bound.get("signature") or {}).items():
        if str(kind) != "constexpr" and str(name) not in found:
            found[str(name)] = {"type": plain(kind), "hints": hints.get(str(name), [])}
    ordered = [name for name in names if name in found] + [name for name in found if name not in names]
    options = bound.get("options")
    return {
        "key": str(bound.get("key"))[:4000],
        "arguments": [{"name": name, **found[name]} for name in ordered],
        "options": {name: plain(getattr(options, name)) for name in OPTIONS if hasattr(options, name)},
        "warmup": bool(bound.get("warmup", bound.get("is_warmup", False))),
    }


def constant(value: Any) -> dict[str, Any]:
    """A constant argument; `class` says what it was where JSON has no such thing: a dtype, a function, a tuple."""
    value = getattr(value, "value", None) if type(value).__name__ == "constexpr" else value
    said = function(value)["function"] if hasattr(value, "arg_names") else plain(value)
    known = type(said) is type(value) and said == value
    return {"type": "constexpr", "value": said, **({} if known else {"class": type(value).__name__})}


def _hints(attrs: Any, names: list[str]) -> Iterable[tuple[str, list[str]]]:
    """(argument, ["tt.divisibility=16"]) from a dict by path (3.3 on) or 3.2's AttrsDescriptor."""
    if isinstance(attrs, dict):
        for path, values in attrs.items():
            yield _named(path, names), [f"{hint[0]}={hint[1]}" for hint in values]
        return
    by_name: dict[str, list[str]] = {}
    constants_of = getattr(attrs, "property_values", {})
    for hint, indices in dict(getattr(attrs, "arg_properties", None) or {}).items():
        for index in indices:
            by_name.setdefault(_named((index,), names), []).append(f"{hint}={constants_of.get(hint, '')}")
    yield from by_name.items()
