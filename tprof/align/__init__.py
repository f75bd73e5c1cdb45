"""Trace -> Trace: launches to device events, ranges to launches, cold phases, purposes, several traces on one clock."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tprof.align.captures import link_captures
from tprof.align.combine import combine
from tprof.align.infer import infer
from tprof.align.join import join
from tprof.align.links import link_launches
from tprof.align.paths import add_paths
from tprof.align.purpose import add_purposes
from tprof.align.ranges import add_parents
from tprof.align.shapes import add_shapes
from tprof.align.spans import add_spans

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tprof.model import Trace

__all__ = ["AlignOptions", "align", "combine", "join"]


@dataclass(frozen=True)
class AlignOptions:
    """What the user says about a trace.

    Attributes:
        phases: glob over range names -> phase or purpose.
        requests: globs of the ranges that are requests; empty for the default names.
    """

    phases: Mapping[str, str] = field(default_factory=dict)
    requests: tuple[str, ...] = ()


def align(trace: Trace, options: AlignOptions | None = None) -> Trace:
    """Everything that can be known or deduced of one recording's events, in the order that each step needs."""
    options = options or AlignOptions()
    trace = add_shapes(add_parents(link_captures(link_launches(trace))))
    found = infer(trace, options.requests)
    trace = add_spans(trace, found, options.phases)
    trace = add_purposes(trace, found, options.phases)
    return replace(trace, device=add_paths(trace.device))
