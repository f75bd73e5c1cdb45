"""Laws of the interval algebra, each against sets of instants or a search over all events."""

from __future__ import annotations

import os
from itertools import pairwise
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.skips import needs_numba

from tprof.intervals import (
    NONE,
    Steps,
    at,
    clip,
    covered,
    expand,
    gaps,
    innermost,
    intersect,
    last_to_end,
    parents,
    subtract,
    total,
    touches,
    union,
)
from tprof.machine import stacks

HORIZON = 70
Pairs = list[tuple[int, int]]

quick = settings(max_examples=200, deadline=None)
anything = st.lists(st.tuples(st.integers(0, 24), st.integers(0, 10)), max_size=9).map(
    lambda rows: [(s, s + n) for s, n in rows]
)
instants = np.arange(-2, HORIZON)
blocks = st.sampled_from([1, 3, 8, 1 << 15])


@st.composite
def nested(draw: st.DrawFn) -> Pairs:
    """Intervals of which two either nest or are apart, like calls on a stack."""
    found: Pairs = []

    def fill(low: int, high: int, depth: int) -> None:
        while low < high and depth and draw(st.booleans()):
            start = draw(st.integers(low, high))
            end = draw(st.integers(start, high))
            found.append((start, end))
            fill(start, end, depth - 1)
            low = end

    fill(0, 24, 4)
    return draw(st.permutations(found))


# Staircases and knots of many events that overlap without nesting.
dense = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=20, max_size=40).map(
    lambda rows: [(s, s + n) for s, n in rows]
)


def arrays(rows: Pairs) -> tuple[np.ndarray, np.ndarray]:
    return np.array([s for s, _ in rows], np.int64), np.array([e for _, e in rows], np.int64)


def instants_of(rows: Pairs) -> set[int]:
    return {t for s, e in rows for t in range(s, e)}


def pairs(start: np.ndarray, end: np.ndarray) -> Pairs:
    return list(zip(start.tolist(), end.tolist(), strict=True))


def is_disjoint(rows: Pairs) -> bool:
    return all(s < e for s, e in rows) and all(a[1] < b[0] for a, b in pairwise(rows))


def search_innermost(rows: Pairs, t: int) -> int:
    open_now = [(s, -e, i) for i, (s, e) in enumerate(rows) if s <= t < e]
    return max(open_now)[2] if open_now else NONE


@quick
@given(anything)
def test_union_covers_the_same_instants_once(rows: Pairs) -> None:
    found = pairs(*union(*arrays(rows)))
    assert is_disjoint(found)
    assert instants_of(found) == instants_of(rows)
    assert covered(*arrays(rows)) == len(instants_of(rows))
    assert total(*arrays(rows)) == sum(e - s for s, e in rows)


@quick
@given(anything)
def test_gaps_are_the_holes_of_a_union(rows: Pairs) -> None:
    found = union(*arrays(rows))
    inside = instants_of(rows)
    holes = set(range(min(inside), max(inside))) - inside if inside else set()
    assert instants_of(pairs(*gaps(*found))) == holes


@quick
@given(anything, anything)
def test_intersect_and_subtract_are_set_operations(one: Pairs, other: Pairs) -> None:
    a, b = union(*arrays(one)), union(*arrays(other))
    s, e, ia, ib = intersect(a, b)
    assert instants_of(pairs(s, e)) == instants_of(one) & instants_of(other)
    assert ((a[0][ia] <= s) & (e <= a[1][ia]) & (b[0][ib] <= s) & (e <= b[1][ib])).all()
    difference = pairs(*subtract(a, b))
    assert is_disjoint(difference)
    assert instants_of(difference) == instants_of(one) - instants_of(other)


@quick
@given(anything)
def test_at_finds_the_interval_of_a_disjoint_set(rows: Pairs) -> None:
    a = union(*arrays(rows))
    expected = [next((i for i, (s, e) in enumerate(pairs(*a)) if s <= t < e), NONE) for t in instants]
    assert at(a, instants).tolist() == expected


@quick
@given(anything, st.integers(-2, HORIZON), st.integers(-2, HORIZON))
def test_clip_and_touches_agree_with_the_window(rows: Pairs, a: int, b: int) -> None:
    low, high = min(a, b), max(a, b)
    start, end = arrays(rows)
    inside = pairs(*clip(start, end, low, high))
    assert [e - s for s, e in inside] == [len(set(range(s, e)) & set(range(low, high))) for s, e in rows]
    if low < high:
        shown = [bool(set(range(s, e)) & set(range(low, high))) if e > s else low <= s <= high for s, e in rows]
        assert touches(start, end, low, high).tolist() == shown


@quick
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=6))
def test_expand_lists_every_index(rows: Pairs) -> None:
    owner, index = expand(*arrays(rows))
    assert list(zip(owner.tolist(), index.tolist(), strict=True)) == [
        (i, x) for i, (a, b) in enumerate(rows) for x in range(a, b)
    ]


@quick
@given(anything | nested() | dense, blocks)
def test_innermost_is_the_open_event_that_began_last(rows: Pairs, block: int) -> None:
    with mock.patch("tprof.intervals._BLOCK", block):
        steps = innermost(*arrays(rows))
    assert steps.at(instants).tolist() == [search_innermost(rows, t) for t in instants]
    assert (steps.value[1:] != steps.value[:-1]).all()


@quick
@given(anything | dense, st.lists(st.booleans(), min_size=40, max_size=40), st.lists(st.integers(0, 2), min_size=40))
def test_innermost_of_some_events_says_their_values(rows: Pairs, wanted: list[bool], values: list[int]) -> None:
    chosen = np.flatnonzero(wanted[: len(rows)])
    plain = innermost(*arrays([rows[i] for i in chosen])).at(instants)
    steps = innermost(*arrays(rows), chosen, np.array(values[: len(rows)], np.int8))
    assert steps.at(instants).tolist() == [values[chosen[i]] if i != NONE else NONE for i in plain]
    assert (steps.value[1:] != steps.value[:-1]).all()


@quick
@given(anything | dense)
def test_last_to_end_is_the_open_event_with_the_largest_end(rows: Pairs) -> None:
    found = last_to_end(*arrays(rows), np.arange(len(rows))).at(instants).tolist()
    assert found == [
        max(((e, i) for i, (s, e) in enumerate(rows) if s <= t < e), default=(0, NONE))[1] for t in instants
    ]


@quick
@given(anything, st.integers(-2, HORIZON), st.integers(-2, HORIZON))
def test_within_is_the_same_function_on_less_time(rows: Pairs, low: int, high: int) -> None:
    steps = innermost(*arrays(rows))
    inside = (instants >= low) & (instants < high)
    assert steps.within(low, high).at(instants).tolist() == np.where(inside, steps.at(instants), NONE).tolist()


@quick
@given(nested() | anything | dense, blocks)
def test_parent_is_the_innermost_other_event_around_an_event(rows: Pairs, block: int) -> None:
    with mock.patch("tprof.intervals._BLOCK", block):
        found = parents(*arrays(rows)).tolist()
    for i, (start, end) in enumerate(rows):
        if start == end:
            assert found[i] == NONE
            continue
        # Of equal intervals the later row is the inner one.
        around = [
            (s, -e, j) for j, (s, e) in enumerate(rows) if s <= start and end <= e and (s, -e, j) < (start, -end, i)
        ]
        assert found[i] == (max(around)[2] if around else NONE)


@quick
@given(anything, anything)
def test_steps_over_a_set_partition_it(rows: Pairs, other: Pairs) -> None:
    steps, (start, end) = innermost(*arrays(rows)), union(*arrays(other))
    s, e, value, owner = steps.over(start, end)
    found = [t for a, b in pairs(s, e) for t in range(a, b)]
    assert sorted(found) == sorted(instants_of(other))
    assert len(found) == len(set(found))
    assert ((start[owner] <= s) & (e <= end[owner])).all()
    for a, b, v in zip(s.tolist(), e.tolist(), value.tolist(), strict=True):
        assert steps.at(np.arange(a, b)).tolist() == [v] * (b - a)


@quick
@given(anything, anything)
def test_or_else_fills_only_what_is_open(rows: Pairs, other: Pairs) -> None:
    mine, theirs = innermost(*arrays(rows)), innermost(*arrays(other))
    shifted = Steps(theirs.bounds, np.where(theirs.value == NONE, NONE, theirs.value + 100))
    first, second = mine.at(instants), shifted.at(instants)
    assert mine.or_else(shifted).at(instants).tolist() == np.where(first != NONE, first, second).tolist()


def test_nothing_stays_nothing() -> None:
    none = arrays([])
    assert [
        len(x) for x in (*union(*none), *subtract(none, none), *gaps(*none), parents(*none), innermost(*none).value)
    ] == [0] * 8
    assert innermost(*none).over(np.array([3]), np.array([7]))[2].tolist() == [NONE]


@needs_numba
@pytest.mark.usefixtures("code_folder")
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(anything | nested() | dense, st.data())
def test_machine_code_says_what_numpy_says(pairs: Pairs, data: st.DataObject) -> None:
    start, end = arrays(pairs)
    chosen = data.draw(st.none() | st.lists(st.sampled_from(range(len(pairs))), unique=True) if pairs else st.none())
    rows = None if chosen is None else np.array(chosen, np.int64)
    value = data.draw(st.sampled_from([None, np.arange(len(pairs), dtype=np.int16) % 3]))
    found = []
    for setting in ("off", "on"):
        with mock.patch.dict(os.environ, TPROF_SCANNER=setting):
            steps = innermost(start, end, rows, value)
            found.append((steps.bounds.tolist(), steps.value.tolist(), steps.value.dtype, parents(start, end).tolist()))
    assert found[0] == found[1]


@needs_numba
@pytest.mark.usefixtures("code_folder")
def test_more_events_open_at_once_than_machine_code_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    start = np.arange(20, dtype=np.int64)
    end = 100 - start
    monkeypatch.setattr(stacks, "_OPEN", 8)
    monkeypatch.setenv("TPROF_SCANNER", "on")
    assert parents(start, end).tolist() == [-1, *range(19)]
    assert innermost(start, end).value.tolist() == [*range(20), *range(18, -1, -1)]
