"""What a kernel was compiled from, as a hash that depends on nothing else.

Triton's own hash also holds the line on which a function begins and, from 3.5 to 3.7, depends on which functions were
hashed before it: a `tl.constexpr` global that a called function reads counts only if that one has its hash already.
"""

from __future__ import annotations

import hashlib
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MARK: Final = "tprof:"  # tells these hashes from Triton's
_PLAIN: Final = (bool, int, float, str, bytes, type(None))


def fingerprint(jit_function: Any) -> str | None:
    """SHA-256 over the sources of a JITFunction and all that it can reach, and over the constants that these read.

    What lies in Triton is left out: its version stands beside the hash. Nothing is imported, and nobody's `cache_key`
    is asked for: asking computes it, and so changes the keys of others.

    Returns:
        `tprof:` and 64 hex digits; None for what has no source.
    """
    if not _is_jitted(jit_function):
        return None
    told = sorted(map(_told, _reached(jit_function)))
    return MARK + hashlib.sha256("\0".join([_told(jit_function), *told]).encode()).hexdigest()


def lines(jit_function: Any) -> dict[str, int]:
    """Where the functions begin that a fingerprint is of, by their names, the first one first."""
    found = _reached(jit_function) if _is_jitted(jit_function) else ()
    return {function.fn.__qualname__: function.fn.__code__.co_firstlineno for function in found}


def _reached(jit_function: Any) -> Iterable[Any]:
    """A function, and what it calls."""
    known, left = {id(jit_function): jit_function}, [jit_function]
    while left:
        for _, value in _read(left.pop().fn):
            if id(value) not in known and _is_jitted(value) and not _is_tritons(value):
                known[id(value)] = value
                left.append(value)
    return known.values()


def _is_jitted(value: Any) -> bool:
    """A function with a source and a hash of Triton's; asked of its class, since the instance would compute it."""
    return hasattr(type(value), "cache_key") and hasattr(getattr(value, "fn", None), "__code__")


def _is_tritons(value: Any) -> bool:
    return str(value.fn.__module__).partition(".")[0] == "triton"


def _told(function: Any) -> str:
    """One function: its name, its source, and the constants that it reads, whose order and places say nothing."""
    constants = {f"{name}={said}" for name, value in _read(function.fn) if (said := _constant(value)) is not None}
    defaults = [_constant(value) for value in function.fn.__defaults__ or ()]
    source = getattr(function, "src", None) or getattr(function, "_src", "")
    how = [function.fn.__qualname__, source, defaults, getattr(function, "noinline", None), sorted(constants)]
    return repr(how)


def _read(function: Any) -> Iterator[tuple[str, Any]]:
    """(name, value) of what a Python function may read: globals, closures, and what modules have under its names."""
    names = _names(function.__code__)
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
    outer = function.__globals__ | {name: cell.cell_contents for name, cell in cells if _is_filled(cell)}
    for name in names & outer.keys():
        value = outer[name]
        yield name, value
        if issubclass(type(value), ModuleType) and value.__name__.partition(".")[0] != "triton":
            yield from ((inner, vars(value)[inner]) for inner in names & vars(value).keys())
        elif issubclass(type(value), type):  # one of Triton's aggregates has methods
            yield from ((name, method) for method in vars(value).get("hash_attrs", ()))


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # a name that is bound later
        return False


def _names(code: CodeType) -> set[str]:
    """Names in the code of a function and of the functions within."""
    inner = (_names(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return {*code.co_names, *code.co_freevars}.union(*inner)


def _constant(value: Any) -> str | None:
    """A number, a text or a dtype as text, also within `tl.constexpr`; None for anything else."""
    inner = getattr(value, "value", None) if type(value).__name__ == "constexpr" else value
    is_dtype = type(inner).__name__ == "dtype" and type(inner).__module__.startswith("triton.")
    return repr(inner) if type(inner) in _PLAIN or is_dtype else None
