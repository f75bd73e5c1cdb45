"""What a CUDA graph replays: the call that was captured as a node, for the device events that are its executions.

A node is made during the call that is captured; instantiating the graph copies the nodes, and what runs is a copy. A
file that does not record how nodes were made (torch.profiler's never does) cannot say what a replay was captured from:
order within the graph would be a guess.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from tprof.align.calls import GRAPH, call_classes, holds, is_kind
from tprof.align.ranges import looked_up, open_at
from tprof.events import Note
from tprof.intervals import NONE
from tprof.model import Trace, ints, put, refine

if TYPE_CHECKING:
    import pyarrow as pa

_DOUBLINGS: Final = 5  # 32 copies of copies
_REASONS: Final = (
    "torch.profiler does not record what was captured; Nsight Systems does, with --cuda-graph-trace=node",
    "the graph was captured before the recording began, or while calls of the device API were not recorded",
)


def link_captures(trace: Trace) -> Trace:
    """Fill `device.capture`; executions of graphs for which that cannot be done are counted by reason in the notes."""
    device = put(trace.device, capture=_captures(trace)) if trace.graph_nodes.num_rows else trace.device
    return replace(trace, device=device, notes=(*trace.notes, *_not_linked(trace, ints(device, "capture"))))


def asked_by(device: pa.Table) -> np.ndarray:
    """Row of `host` whose call says what each event is: what a graph captured, else the launch; -1 for none."""
    capture = ints(device, "capture")
    return np.where(capture == NONE, ints(device, "launch"), capture)


def _captures(trace: Trace) -> np.ndarray:
    """Row of `host` of the call that was captured, -1 where there is none; shape (device rows,)."""
    nodes, device = trace.graph_nodes, trace.device
    made, copied, instant = (ints(nodes, c) for c in ("node", "original", "start_ns"))
    pid = ints(trace.threads, "pid")[ints(nodes, "thread")]
    graph_node = ints(device, "graph_node")
    code = refine(np.concatenate([pid, pid, ints(device, "pid")]), np.concatenate([made, copied, graph_node]))
    node, source, wanted = np.split(code, [len(made), 2 * len(made)])
    origin = np.arange(int(code.max(initial=0)) + 1)
    origin[node[copied != NONE]] = source[copied != NONE]
    for _ in range(_DOUBLINGS):
        origin = origin[origin]
    call, new = np.full(len(origin), NONE), np.flatnonzero(copied == NONE)
    new = new[np.argsort(-instant[new], kind="stable")]
    call[node[new]] = _calls_around(trace)[new]  # later writes win, so the first stays
    return np.where(graph_node == NONE, NONE, call[origin[wanted]])


def _calls_around(trace: Trace) -> np.ndarray:
    """Device API call during which each node was made, -1 for none or an instantiation; shape (nodes,)."""
    host, nodes = trace.host, trace.graph_nodes
    copies = holds(host, "name", lambda name: "Instantiate" in name)
    calls = np.flatnonzero(is_kind(host, "runtime", "driver") & ~copies)
    return open_at(host, calls, ints(nodes, "start_ns"), ints(nodes, "thread"))


def _not_linked(trace: Trace, capture: np.ndarray) -> list[Note]:
    """A note per reason for which executions of graphs have no capture."""
    replayed = looked_up(call_classes(trace.host), ints(trace.device, "launch")) == GRAPH
    replayed |= ints(trace.device, "graph_node") != NONE
    whole = is_kind(trace.device, "graph")  # another note says that its kernels are hidden
    pid = ints(trace.device, "pid")[replayed & ~whole & (capture == NONE)]
    told = np.isin(pid, ints(trace.threads, "pid")[ints(trace.graph_nodes, "thread")])
    said = "device events are replays of CUDA graphs without a known capture, and so without a shape key: "
    found = zip(_REASONS, (~told, told), strict=True)
    return [Note("no-capture", f"{n} {said}{why}", n) for why, which in found if (n := int(which.sum()))]
