"""What a CUDA graph replays: from a device event's node over its original to the call that was captured."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from support.small import call, kernel, trace

from tprof.align import align
from tprof.align.captures import asked_by, link_captures
from tprof.align.links import link_launches
from tprof.model import ints, table

if TYPE_CHECKING:
    from tprof.model import Trace

CAPTURED = [
    call(0, 5, "cudaStreamBeginCapture", correlation=1),
    call(10, 20, "cuLaunchKernel", correlation=2),
    call(30, 40, "cudaMemcpyAsync", correlation=3),
    call(50, 90, "cudaGraphInstantiate", correlation=4),
    call(100, 110, "cudaGraphLaunch", correlation=5),
]
# (made, node, original): two nodes, their copies, and one that only the executable graph has
NODES = [(15, 1 << 32, None), (35, 1 << 32 | 1, None), (60, 2 << 32, None), (61, 2 << 32, 1 << 32),
         (62, 2 << 32 | 1, 1 << 32 | 1), (63, 2 << 32 | 2, None)]  # fmt: skip


def replayed(*nodes: int | None, made: list[tuple[int, int, int | None]] = NODES) -> Trace:
    """A trace in which one graph launch runs some nodes."""
    device = [kernel(200 + n, 201 + n, correlation=5, graph_node=node) for n, node in enumerate(nodes)]
    columns = {name: [row[i] for row in made] for i, name in enumerate(("start_ns", "node", "original"))}
    known = table("graph_nodes", {**columns, "thread": [0] * len(made)}, len(made))
    return link_captures(link_launches(replace(trace(CAPTURED, device), graph_nodes=known)))


def captures(of: Trace) -> list[int]:
    return ints(of.device, "capture").tolist()


def test_a_replay_belongs_to_its_launch_and_to_the_call_that_was_captured() -> None:
    found = replayed(2 << 32, 2 << 32 | 1)
    assert ints(found.device, "launch").tolist() == [4, 4]
    assert captures(found) == asked_by(found.device).tolist() == [1, 2]
    assert found.notes == ()


def test_a_copy_of_a_copy_is_what_was_captured_first() -> None:
    again = [(120 + n, (n + 3) << 32, (n + 2) << 32) for n in range(5)]
    assert captures(replayed(7 << 32, made=[*NODES, *again])) == [1]


def test_nodes_that_name_each_other_as_originals_have_none() -> None:
    ring = [(15, n, (n - 10) % 3 + 11) for n in (11, 12, 13)]
    assert captures(replayed(11, made=ring)) == [-1]


def test_a_node_that_is_made_by_instantiating_was_not_captured() -> None:
    found = replayed(2 << 32 | 2)
    assert captures(found) == [-1]
    assert asked_by(found.device).tolist() == [4]
    (note,) = found.notes
    assert (note.code, note.count) == ("no-capture", 1)
    assert "captured before the recording began" in note.message


def test_a_node_that_the_recording_has_not_seen_is_said() -> None:
    found = replayed(2 << 32, 9 << 32)
    assert captures(found) == [1, -1]
    assert [(n.code, n.count) for n in found.notes] == [("no-capture", 1)]


def test_without_nodes_nothing_is_guessed_and_the_reason_is_said() -> None:
    found = replayed(None, 2 << 32, made=[])
    assert captures(found) == [-1, -1]
    (note,) = found.notes
    assert (note.code, note.count) == ("no-capture", 2)
    assert "torch.profiler does not record" in note.message


def test_the_graph_of_another_process_does_not_count() -> None:
    device = [kernel(200, 201, correlation=5, graph_node=2 << 32, pid=2)]
    other = replayed(2 << 32)
    assert captures(link_captures(replace(other, device=trace([], device).device, notes=()))) == [-1]


def test_a_trace_without_graphs_has_no_captures_and_no_note() -> None:
    plain = align(trace(CAPTURED[1:2], [kernel(200, 201, correlation=2)]))
    assert captures(plain) == [-1]
    assert plain.notes == ()
