"""Run a launch's Python body in Triton's interpreter, so that a kernel without a GPU gives right numbers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from triton.runtime.jit import JITFunction


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
    with _callable_helpers():
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
