"""Level of detail against counting every nanosecond."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tprof.analyze import lod
from tprof.analyze.lod import Blocks, pixels

CODES = 3


@pytest.fixture(autouse=True, scope="module")
def small_blocks():
    """Blocks of four and chunks of two blocks, so that a few intervals already have several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lod, "_BLOCK", 4)
        patch.setattr(lod, "_CHUNK", 8)
        yield


@st.composite
def lanes(draw):
    steps = draw(
        st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9), st.integers(0, CODES - 1)), min_size=1, max_size=40)
    )
    gap, length, code = (np.array(column) for column in zip(*steps, strict=True))
    end = np.cumsum(gap + length)
    return end - length, end, code


windows = st.tuples(st.integers(0, 300), st.integers(1, 200)).map(lambda w: (w[0], w[0] + w[1]))
wanted = st.lists(st.booleans(), min_size=CODES, max_size=CODES).map(np.array)


def _painted(start, end, code):
    """The code of each nanosecond, -1 for none."""
    line = np.full(600, -1)
    for s, e, c in zip(start, end, code, strict=True):
        line[s:e] = c
    return line


@given(lanes(), windows, st.integers(1, 50))
def test_spent_is_what_counting_finds(lane, window, most) -> None:
    line, edges = _painted(*lane), pixels(*window, most)
    spent = Blocks(*lane, CODES).spent(edges)
    expected = [[(line[a:b] == c).sum() for a, b in pairwise(edges)] for c in range(CODES)]
    assert spent.tolist() == expected


@given(lanes(), windows, wanted)
def test_count_is_what_reaches_in(lane, window, codes) -> None:
    start, end, code = lane
    inside = (start < window[1]) & (end > window[0]) & codes[code]
    assert Blocks(*lane, CODES).count(*window, codes) == inside.sum()


@given(lanes(), windows, wanted, st.integers(1, 50))
def test_longest_are_the_longest(lane, window, codes, most) -> None:
    start, end, code = lane
    inside = np.flatnonzero((start < window[1]) & (end > window[0]) & codes[code])
    rows = Blocks(*lane, CODES).longest(*window, most, codes)
    assert set(rows) <= set(inside)
    lengths = sorted((end - start)[inside], reverse=True)[:most]
    assert (end - start)[rows].tolist() == lengths


def test_pixels_are_whole_nanoseconds_and_tile_the_window() -> None:
    assert pixels(10, 13, 1000).tolist() == [10, 11, 12, 13]
    assert pixels(5, 5 + 10**18, 4).tolist() == [5 + 10**18 * i // 4 for i in range(5)]
    assert pixels(7, 7, 10).tolist() == [7, 7]
