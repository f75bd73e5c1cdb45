"""Run a launch's Python body in Triton's interpreter, so that a kernel without a GPU gives right numbers."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import triton.language as tl
from triton.runtime.jit import JITFunction

if TYPE_CHECKING:
    from collections.abc import Iterator


def interpret(source: Any, grid: tuple[int, ...], args: tuple[Any, ...]) -> None:
    """Run the function of `source` over `grid`.

    Args:
        source: the ASTSource that was compiled.
        grid: programs along x, y, z.
        args: as the launcher got them; Triton 3.2 leaves the constants out.
    """
    from triton.runtime.interpreter import InterpretedFunction  # noqa: PLC0415 - it needs numpy

    function = source.fn
    if len(args) == len(function.arg_names):
        named = dict(zip(function.arg_names, args, strict=True))
    else:
        rest = iter(args)
        named = {p.name: source.constants[p.name] if p.is_constexpr else next(rest) for p in function.params}
    with _callable_helpers(), _restored_language():
        InterpretedFunction(function.fn)[grid](**named)


@contextlib.contextmanager
def _callable_helpers() -> Iterator[None]:
    """Library helpers (tl.zeros, tl.sum …) became JITFunctions at import: let the interpreter call them."""
    from triton.runtime.interpreter import InterpretedFunction  # noqa: PLC0415

    before = JITFunction.__call__
    JITFunction.__call__ = lambda self, *args, **kwargs: InterpretedFunction(self.fn)(*args, **kwargs)
    try:
        yield
    finally:
        JITFunction.__call__ = before


@contextlib.contextmanager
def _restored_language() -> Iterator[None]:
    """Undo what the interpreter replaces in triton.language: before 3.6 it leaves that to spoil the next compile."""
    owners = (tl, tl.core, tl.math, tl.tensor, tl.dtype)
    before = [dict(vars(owner)) for owner in owners]
    try:
        yield
    finally:
        for owner, old in zip(owners, before, strict=True):
            for name, value in list(vars(owner).items()):
                if name not in old:
                    delattr(owner, name)
                elif old[name] is not value:
                    setattr(owner, name, old[name])
