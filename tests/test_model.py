from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.skips import needs_numba

from tprof.events import TABLES
from tprof.model import distinct, first_rows, refine, schema, table

NUMBERS = st.integers(-5, 5) | st.integers(-(1 << 40), 1 << 40)  # few between, or too many for a table of all of them
PAIRS = st.lists(st.tuples(NUMBERS, NUMBERS))


def columns(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    array = np.array(pairs, np.int64).reshape(-1, 2)
    return array[:, 0], array[:, 1]


@given(PAIRS)
def test_refine_numbers_pairs_as_they_first_come(pairs: list[tuple[int, int]]) -> None:
    first, second = columns(pairs)
    key = refine(np.zeros(len(pairs), np.int64), first)
    seen: dict[tuple[int, int], int] = {}
    assert refine(key, second).tolist() == [seen.setdefault(pair, len(seen)) for pair in pairs]


@given(PAIRS)
def test_first_rows(pairs: list[tuple[int, int]]) -> None:
    code = refine(*columns(pairs))
    assert first_rows(code).tolist() == sorted(code.tolist().index(c) for c in set(code.tolist()))


@given(st.lists(NUMBERS))
def test_distinct(values: list[int]) -> None:
    assert distinct(np.array(values, np.int64)).tolist() == sorted(set(values))


def test_refine_of_narrow_numbers_does_not_wrap() -> None:
    key, part = np.repeat(np.arange(100, dtype=np.int8), 100), np.tile(np.arange(100), 100)
    assert len(set(refine(key, part).tolist())) == 10_000


@pytest.mark.parametrize("name", TABLES)
def test_columns_that_are_not_given_are_all_null(name: str) -> None:
    required = {c.name: 0 if c.dtype in ("int64", "int32") else "x" for c in TABLES[name] if not c.nullable}
    made = table(name, required, 5)
    made.validate(full=True)
    assert made.schema == schema(name)
    for column in TABLES[name]:
        assert made[column.name].null_count == (5 if column.nullable else 0)
        if column.nullable:
            assert made[column.name].combine_chunks() == pa.nulls(5, made[column.name].type)


@needs_numba
@pytest.mark.usefixtures("code_folder")
@pytest.mark.parametrize("values", [3, 1 << 12, 1 << 40])
def test_machine_code_numbers_pairs_as_numpy_does(values: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(values)
    key, part = draw.integers(-1, 1 << 15, 20_000), draw.integers(-5, values, 20_000)
    found = []
    for setting in ("off", "on"):
        monkeypatch.setenv("TPROF_SCANNER", setting)
        found += [refine(key, part).tolist(), refine(part, (key % 2).astype(np.int16)).tolist()]
    assert found[:2] == found[2:]
