"""What part of a trace a question is about."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tprof.buckets import BucketSet


@dataclass(frozen=True)
class Options:
    """Limits of an analysis.

    Attributes:
        window: (start, end) in ns on the trace's clock; None for the whole trace.
        ranges: globs of the ranges that are requests; empty for the default names.
        devices: globs over device names or ids; empty for all.
        ranks: ranks of a distributed job; empty for all.
        top: rows of a ranked table; None for all.
        kernels: globs of the kernels that a question is about; empty for all.
        buckets: sets of buckets that shapes are counted by.
    """

    window: tuple[int, int] | None = None
    ranges: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    top: int | None = None
    kernels: tuple[str, ...] = ()
    buckets: tuple[BucketSet, ...] = ()

    def about(self, kernel: str | None) -> bool:
        """Whether a kernel is one of those asked about; what names no kernel (null) is not, unless all are."""
        return not self.kernels or any(fnmatchcase(kernel or "", glob) for glob in self.kernels)
