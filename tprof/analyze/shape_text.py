"""Shape keys as text: what is grid, what are arguments, and the values that buckets speak of."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tprof.buckets import label

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from tprof.buckets import BucketSet

_GRID: Final = re.compile(r"^grid (\d+(?:x\d+)*)(?: |$)")
# The recorder's `x bfloat16[512, 1024]`, and torch.profiler's `Scalar c10::BFloat16[512,1024]:[1024,1]`.
_NAMED_SIZES: Final = re.compile(r"(?:^| )(?!Scalar |\w+List )(\w+) \w+\[([\d, ]*)\](?!:)")
_PLAIN_SIZES: Final = re.compile(r"(?:^| )[\w:]+\[([\d,]*)\]")
_SCALAR: Final = re.compile(r"(?:^| )(\w+)=(-?\d+)(?= |$)")
_LAUNCH: Final = re.compile(r"(grid|block) (\d+(?:x\d+)*)")


def split_grid(key: str) -> tuple[str | None, str]:
    """Grid and arguments of a recorded shape key; a key without arguments is its grid.

    >>> split_grid("grid 8x16 a float32[4] M=4")
    ('8x16', 'a float32[4] M=4')
    """
    found = _GRID.match(key)
    return (found[1], key[found.end() :] or key) if found else (None, key)


def values(shape: str) -> dict[str, int]:
    """Values of a shape that a bucket may name: `M`, `x[0]`; `arg0[0]` of an operator's inputs; `grid[0]`, `block[0]`.

    >>> values("x float32[4, 8] M=4")
    {'x[0]': 4, 'x[1]': 8, 'M': 4}
    """
    found = {f"{name}[{i}]": size for name, sizes in _NAMED_SIZES.findall(shape) for i, size in _numbered(sizes, ",")}
    if not found:
        inputs = enumerate(_PLAIN_SIZES.findall(shape))
        found = {f"arg{n}[{i}]": size for n, sizes in inputs for i, size in _numbered(sizes, ",")}
    found |= {name: int(value) for name, value in _SCALAR.findall(shape)}
    return found | {f"{w}[{i}]": size for w, sizes in _LAUNCH.findall(shape) for i, size in _numbered(sizes, "x")}


def _numbered(sizes: str, separator: str) -> enumerate[int]:
    return enumerate(int(size) for size in sizes.split(separator) if size.strip())


def labels(shapes: Sequence[str]) -> list[str]:
    """Short names of a kernel's shapes: the values in which they differ; whole keys where these do not suffice.

    Of values that always differ alike one is named, a scalar rather than a size.

    >>> labels(["x float32[4, 8] M=4", "x float32[5, 8] M=5"])
    ['M=4', 'M=5']
    """
    found = [values(shape) for shape in shapes]
    common = [name for name in found[0] if all(name in other for other in found)] if found else []
    columns: dict[tuple[int, ...], str] = {}
    for name in sorted(common, key=lambda name: ("[" in name, common.index(name))):
        column = tuple(one[name] for one in found)
        if len(set(column)) > 1:
            columns.setdefault(column, name)
    short = [" ".join(f"{name}={column[i]}" for column, name in columns.items()) for i in range(len(shapes))]
    return short if len(set(short)) == len(shapes) and columns else list(shapes)


def labels_by(owners: Sequence[Hashable], shapes: Sequence[str]) -> list[str]:
    """`labels` of shapes, each among those of its owner (a kernel, an operator); shape (shapes,)."""
    of: dict[Hashable, dict[str, None]] = {}
    for owner, shape in zip(owners, shapes, strict=True):
        of.setdefault(owner, {}).setdefault(shape)
    short = {owner: dict(zip(own, labels(list(own)), strict=True)) for owner, own in of.items()}
    return [short[owner][shape] for owner, shape in zip(owners, shapes, strict=True)]


def bucket_of(kernel: str, shape: str, sets: Sequence[BucketSet], other: str) -> str | None:
    """Bucket of a shape in the first set that covers its kernel, as `set.bucket`; None where none covers it."""
    return label(sets, kernel, values(shape), other) if sets else None
