"""Buckets: named groups of shapes, declared once for shapes, kernels, plans and metrics. Standard library only."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from tprof.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Bounds = tuple[int | None, int | None]  # smallest and largest value, both included; None is unbounded

_RANGE: Final = re.compile(r"(?P<low>-?\d+)?(?P<dots>\.\.)?(?P<high>-?\d+)?")
OTHER: Final = "other"  # what a report calls a shape outside every bucket


@dataclass(frozen=True, slots=True)
class Bucket:
    """A group of shapes: every named value must lie within its bounds.

    Attributes:
        name: what reports and metrics call it.
        bounds: by value name: a scalar argument (`M`), or a tensor's size in one dimension (`x[0]`).
    """

    name: str
    bounds: Mapping[str, Bounds]

    def holds(self, values: Mapping[str, int]) -> bool:
        """Whether a shape belongs here; a value that the shape lacks does not."""
        return all(name in values and _within(values[name], bound) for name, bound in self.bounds.items())


@dataclass(frozen=True, slots=True)
class BucketSet:
    """Buckets of some kernels; a shape belongs to the first that holds it.

    Attributes:
        name: of the set.
        buckets: in order.
        kernels: globs of the kernels whose shapes they group.
    """

    name: str
    buckets: tuple[Bucket, ...]
    kernels: tuple[str, ...] = ("*",)

    @classmethod
    def of(cls, name: str, kernels: tuple[str, ...] = ("*",), **buckets: Mapping[str, str]) -> BucketSet:
        """A set written as in `[tool.tprof.buckets]`: `BucketSet.of("rows", short={"N": "1..1024"})`.

        Raises:
            UsageError: a range is none.
        """
        made = tuple(
            Bucket(bucket, {value: _bounds(text, f"{name}.{bucket}.{value}") for value, text in ranges.items()})
            for bucket, ranges in buckets.items()
        )
        return cls(name, made, kernels)

    def covers(self, kernel: str) -> bool:
        """Whether these buckets speak of a kernel."""
        return any(fnmatchcase(kernel, glob) for glob in self.kernels)

    def find(self, values: Mapping[str, int]) -> str | None:
        """Name of the bucket that holds a shape; None outside all."""
        return next((bucket.name for bucket in self.buckets if bucket.holds(values)), None)


def bucket_sets(table: Mapping[str, Any]) -> tuple[BucketSet, ...]:
    """The sets of `[tool.tprof.buckets]`: by set name a table of `kernels` (globs) and of buckets.

    Raises:
        UsageError: the table has another form, or a range is none.
    """
    sets = []
    for name, rest in table.items():
        if not isinstance(rest, dict):
            raise UsageError(f"tool.tprof.buckets.{name} must be a table of buckets")
        kernels = tuple(rest.get("kernels", ("*",)))
        buckets = {key: value for key, value in rest.items() if key != "kernels"}
        if wrong := [key for key, value in buckets.items() if not isinstance(value, dict)]:
            raise UsageError(f'tool.tprof.buckets.{name}.{wrong[0]} must be a table such as {{ M = "1..1024" }}')
        sets.append(BucketSet.of(name, kernels, **buckets))
    return tuple(sets)


def values_of(arguments: Mapping[str, Any]) -> dict[str, int]:
    """What buckets can speak of in the arguments of a call: integers by name, sizes of tensors as `x[0]`."""
    found: dict[str, int] = {}
    for name, value in arguments.items():
        if type(value) is int:
            found[name] = value
        else:
            found |= {f"{name}[{i}]": int(size) for i, size in enumerate(getattr(value, "shape", ()))}
    return found


def label(sets: Sequence[BucketSet], kernel: str, values: Mapping[str, int], other: str = OTHER) -> str | None:
    """`set.bucket` of a shape in the first set that covers its kernel; None where none covers it."""
    found = next((s for s in sets if s.covers(kernel)), None)
    return None if found is None else f"{found.name}.{found.find(values) or other}"


def _within(value: int, bounds: Bounds) -> bool:
    low, high = bounds
    return (low is None or value >= low) and (high is None or value <= high)


def _bounds(text: str | int, where: str) -> Bounds:
    """`8`, `1..1024`, `1025..` or `..64`; both ends are included."""
    found = _RANGE.fullmatch(str(text))
    if not found or not (found["low"] or found["high"]):
        raise UsageError(f"{where}: {text!r} is no range; write 8, 1..1024, 1025.. or ..64")
    low, high = (int(found[side]) if found[side] else None for side in ("low", "high"))
    return (low, high) if found["dots"] else (low, low)
