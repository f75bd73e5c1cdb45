from __future__ import annotations

import pytest
from support.incident import CANDIDATES, LENGTHS, incident

import tprof
from tprof.analyze.waterfall import waterfall_rows

MS = 1_000_000


def _span(start, end, phase="compile", kernel="k", evidence="k", thread="1/1") -> dict:
    times = {"start_ns": start, "end_ns": end}
    return {**times, "thread": thread, "phase": phase, "basis": "recorded", "kernel": kernel, "evidence": evidence}


def _candidate(row, start, end, **rest) -> dict:
    given = {"row": row, "kernel": "k", "config": f"B: {row}", "winner": False, "thread": "1/1"}
    return given | {"start_ns": start, "end_ns": end} | rest


def _use(row, start, end, candidate=None, **rest) -> dict:
    given = {"row": row, "kernel": "k", "candidate": candidate, "thread": "1/1"}
    return given | {"start_ns": start, "end_ns": end} | rest


def _steps(rows) -> list[tuple]:
    return [(row["number"], row["role"], row["kernel"], row["config"], row["wall_ns"]) for row in rows]


def test_a_step_is_a_candidate_with_the_first_use_before_it() -> None:
    spans = [_span(0, 10, evidence="k/ttir"), _span(10, 20, "autotune"), _span(20, 25), _span(25, 40, "autotune")]
    candidates = [_candidate(0, 10, 20), _candidate(1, 20, 40, winner=True)]
    rows = waterfall_rows(spans, [_use(0, 0, 10, 0), _use(1, 20, 25, 1)], candidates, 0)
    assert _steps(rows) == [
        (0, "candidate", "k", "B: 0", 10), (0, "candidate", "k", "B: 0", 10),
        (1, "winner", "k", "B: 1", 5), (1, "winner", "k", "B: 1", 15),
    ]  # fmt: skip
    assert [row["what"] for row in rows] == ["ttir", "k", "k", "k"]


def test_what_is_in_no_step_is_one_of_its_kernel_or_phase() -> None:
    spans = [_span(0, 5), _span(5, 6, "graph_compile", None), _span(6, 9, "init", None), _span(9, 12)]
    assert _steps(waterfall_rows(spans, [_use(0, 0, 5)], [], 0)) == [
        (0, "first use", "k", None, 5), (1, "other", None, None, 1), (2, "other", None, None, 3),
        (3, "other", "k", None, 3),
    ]  # fmt: skip


def test_another_thread_is_no_part_of_a_step() -> None:
    rows = waterfall_rows([_span(2, 4, thread="1/2"), _span(0, 5)], [_use(0, 0, 5)], [], 0)
    assert [(row["number"], row["role"], row["thread"]) for row in rows] == [
        (0, "first use", "1/1"),
        (1, "other", "1/2"),
    ]


def test_nothing_cold_has_no_step() -> None:
    assert waterfall_rows([], [], [], 0) == []


def test_steps_of_a_recording_sum_to_its_cold_time(tmp_path) -> None:
    result = tprof.load(incident(tmp_path)).cold()
    rows = result.tables["waterfall"]
    assert sum(row["wall_ns"] for row in rows) == sum(row["total_ns"] for row in result.tables["phases"])
    roles = {row["number"]: row["role"] for row in rows}
    assert list(roles.values()).count("candidate") == len(LENGTHS) * (CANDIDATES - 1)
    assert list(roles.values()).count("winner") == len(LENGTHS)
    assert "waterfall" not in result.payload


@pytest.mark.parametrize("name", ["h200-torch.json.gz", "h200-nsight.sqlite.gz"])
def test_steps_of_a_sample_sum_to_its_cold_time(sample_traces, name) -> None:
    result = tprof.load(sample_traces / name).cold()
    whole = sum(row["total_ns"] for row in result.tables["phases"])
    assert sum(row["wall_ns"] for row in result.tables["waterfall"]) == whole
