"""Arguments that make Triton compile a recorded specialization, without a tensor or a GPU.

Triton specializes on the type of an argument, on whether it is 1, and on whether a number or an address is a multiple
of 16: so an argument of the type that has these properties gives the same key in memory, and the same kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tprof.variants import DIVISIBLE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# A number of each width that Triton takes for this type and no narrower one; odd where it is not a multiple of 16.
_BASE: Final = {"i64": 1 << 40, "u64": 1 << 63}


class NoMockError(Exception):
    """An argument for which nothing can stand in."""


@dataclass(frozen=True)
class _DType:
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Pointer:
    """Stands in for a tensor: Triton asks for its type and its address."""

    dtype: _DType
    address: int
    shape: tuple[int, ...] = (1,)

    def data_ptr(self) -> int:
        """A multiple of 16, or none."""
        return self.address

    def ptr_range(self) -> int:
        """Within 32 bits."""
        return 0

    def stride(self) -> tuple[int, ...]:
        """Of one element."""
        return (1,)


def argument(name: str, kind: Any, hints: Sequence[str] = (), *, functions: Callable[[str], Any]) -> Any:
    """What to pass for one argument of a plan.

    Args:
        name: of the argument.
        kind: its type as Triton writes it, or `{"constexpr": value, "class": …}`.
        hints: of its specialization.
        functions: finds a jitted function by its module and qualified name, for constants that are one.

    Raises:
        NoMockError: it is a tensor descriptor, a tuple, or a constant that a file cannot hold.
    """
    if isinstance(kind, dict):
        return _constant(name, kind["constexpr"], kind.get("class"), functions)
    divisible = DIVISIBLE in hints
    if str(kind).startswith("*"):
        return Pointer(_DType(str(kind).lstrip("*").removeprefix("k")), 16 if divisible else 1)
    if kind in {"i1", "u1"}:
        return True
    if str(kind)[:1] in {"i", "u"} and str(kind)[1:].isdigit():
        return _BASE.get(str(kind), 0) + (16 if divisible else 3)
    if str(kind)[:2] in {"fp", "bf"}:
        return 1.5
    raise NoMockError(f"nothing can stand in for the argument {name} ({kind}); let `call=` run it")


def _constant(name: str, value: Any, kind: str | None, functions: Callable[[str], Any]) -> Any:
    if kind is None:
        return value
    if kind == "dtype":
        import triton.language as tl  # noqa: PLC0415 - only where a plan needs it

        dtypes = (d for d in vars(tl).values() if isinstance(d, tl.dtype))
        return next((d for d in dtypes if str(d) == value), None) or _no(name, kind)
    if kind == "JITFunction":
        return functions(str(value)) or _no(name, kind)
    if kind == "tuple":
        return tuple(value)
    return _no(name, kind)


def _no(name: str, kind: str) -> Any:
    raise NoMockError(f"the constant {name} is a {kind}, which a plan cannot make again; let `call=` run it")
