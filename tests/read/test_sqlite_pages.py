from __future__ import annotations

import os
import random
import sqlite3
from typing import TYPE_CHECKING
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tprof import machine
from tprof.read import sqlite, sqlite_pages
from tprof.read.columns import Pick
from tprof.read.sqlite import Database
from tprof.read.sqlite_pages import integers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np

pytestmark = pytest.mark.usefixtures("code_folder")
KNOWN = {"t": ("a", "b", "c")}
EDGES = [0, 1, -1, *(sign * (1 << bits) + more for bits in (7, 15, 23, 31, 47, 62) for sign in (1, -1)
                     for more in (-1, 0, 1)), (1 << 63) - 1, -(1 << 63), None]  # fmt: skip


def made(path: Path, rows: Sequence[Sequence[object]], *, columns: str = "a INTEGER, b INTEGER, c INTEGER",
         page: int = 4096, more: Sequence[str] = ()) -> Path:  # fmt: skip
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as database:
        database.execute(f"PRAGMA page_size = {page}")
        database.execute(f"CREATE TABLE t ({columns})")
        database.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(rows[0]))})", rows)
        for statement in more:
            database.execute(statement)
    database.close()
    return path


def read(path: Path, wanted: Sequence[int] = (0, 1, 2), width: int = 3) -> list[tuple[object, ...]] | None:
    with sqlite3.connect(path) as database:
        (root,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 't'").fetchone()
    database.close()
    found = []
    for setting in ("off", "on") if machine.can_compile() else ("off",):
        with mock.patch.dict(os.environ, TPROF_SCANNER=setting):
            found.append(rows_of(integers(path, root, width, wanted)))
    assert found[0] == found[-1], "machine code differs"
    return found[0]


def rows_of(found: list[tuple[np.ndarray, np.ndarray]] | None) -> list[tuple[object, ...]] | None:
    if found is None:
        return None
    columns = [[None if n else v for v, n in zip(a.tolist(), m.tolist(), strict=True)] for a, m in found]
    return list(zip(*columns, strict=True))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(*[st.sampled_from(EDGES) | st.integers(-(1 << 63), (1 << 63) - 1)] * 3), min_size=1))
def test_every_integer_comes_back(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int | None, ...]]) -> None:
    assert read(made(tmp_path_factory.mktemp("pages") / "x.sqlite", rows)) == rows


@pytest.mark.parametrize("page", [512, 4096, 65536])
def test_trees_of_several_levels_in_order(tmp_path: Path, page: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_pages, "_LEAVES", 7)
    monkeypatch.setattr(pa, "cpu_count", lambda: 3)  # machine code takes three parts side by side
    draw = random.Random(1)
    rows = [(n, draw.choice(EDGES), draw.randrange(1 << draw.randrange(1, 60))) for n in range(20_000)]
    path = made(tmp_path / "x.sqlite", rows, page=page, more=["DELETE FROM t WHERE a % 3 = 1 AND a > 300"])
    assert read(path) == [row for row in rows if row[0] % 3 != 1 or row[0] <= 300]
    assert read(path, [1]) == [(row[1],) for row in rows if row[0] % 3 != 1 or row[0] <= 300]


def test_row_ids_of_every_length(tmp_path: Path) -> None:
    rows = [(1 << bits, bits) for bits in range(63)]
    path = made(tmp_path / "x.sqlite", rows, columns="id INTEGER PRIMARY KEY, b INTEGER")
    assert read(path, [1], 2) == [(bits,) for bits in range(63)]


def test_columns_that_are_not_wanted_may_hold_anything(tmp_path: Path) -> None:
    rows = [(n, x, -n) for n, x in enumerate([None, 1.5, "text", b"bytes", 7, "", "x" * 50])]
    path = made(tmp_path / "x.sqlite", rows, columns="a, b, c")
    assert read(path, [0, 2]) == [(a, c) for a, _, c in rows]


@pytest.mark.parametrize(
    "rows",
    [
        [(1, 2, 3), (1, 2.5, 3)],
        [(1, 2, 3), (1, "2", 3)],
        [(1, 2, 3), (1, b"", 3)],
        [(1, 2, 3), ("long " * 20, 2, 3)],  # its type takes two bytes
        [(1, 2, 3), (1, 2, "x" * 5000)],  # it runs over its page
    ],
)
def test_what_is_not_plain_is_left_to_the_driver(tmp_path: Path, rows: list[tuple[object, ...]]) -> None:
    assert read(made(tmp_path / "x.sqlite", rows, columns="a, b, c"), [1, 0]) is None


def test_rows_older_than_a_column_are_left_to_the_driver(tmp_path: Path) -> None:
    path = made(tmp_path / "x.sqlite", [(1, 2)], columns="a INTEGER, b INTEGER",
                more=["ALTER TABLE t ADD COLUMN c INTEGER DEFAULT 9"])  # fmt: skip
    assert read(path) is None
    with Database(path, "x", KNOWN) as db:
        assert db.fetch("t", ints=("a", "b", "c")).to_pylist() == [{"a": 1, "b": 2, "c": 9}]


def test_tables_without_rows_or_row_ids(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "x.sqlite") as database:
        database.execute("CREATE TABLE t (a INTEGER, b INTEGER, c INTEGER)")
    database.close()
    with Database(tmp_path / "x.sqlite", "x", KNOWN) as db:
        assert db.fetch("t", ints=("a",)).num_rows == 0
    path = made(tmp_path / "y.sqlite", [(1, 2, 3)], columns="a INTEGER, b INTEGER, c INTEGER, PRIMARY KEY (a)) "
                "WITHOUT ROWID; --")  # fmt: skip
    assert read(path) is None


def test_keys_and_computed_columns_are_sqlites(tmp_path: Path) -> None:
    key = made(tmp_path / "k.sqlite", [(5, 6, 7)], columns="a INTEGER PRIMARY KEY, b INTEGER, c INTEGER")
    with Database(key, "x", KNOWN) as db:
        assert db.fetch("t", ints=("a", "b")).to_pylist() == [{"a": 5, "b": 6}]
    made_up = tmp_path / "c.sqlite"
    with sqlite3.connect(made_up) as database:
        database.execute("CREATE TABLE t (a INTEGER, b INTEGER AS (a + 1), c INTEGER)")
        database.execute("INSERT INTO t VALUES (1, 3)")
    database.close()
    with Database(made_up, "x", KNOWN) as db:
        assert db.fetch("t", ints=("a", "c")).to_pylist() == [{"a": 1, "c": 3}]


def test_a_database_in_use_goes_through_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(tmp_path / "x.sqlite", [(1, 2, 3)])
    monkeypatch.setattr(sqlite, "integers", lambda *_: pytest.fail("its pages may change"))
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("INSERT INTO t VALUES (4, 5, 6)")
    writer.commit()
    with Database(path, "x", KNOWN) as db:
        assert db.fetch("t", ints=("a",))["a"].to_pylist() == [1, 4]
    writer.close()


PICKED = [Pick("a", tuple(range(0, 5000, 2))), Pick("a", (1,))]


@pytest.mark.parametrize("split", [1, 1 << 40])
def test_two_connections_give_the_same_rows(tmp_path: Path, split: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "_SPLIT_ROWS", split)
    rows = [(n, f"text {n}", n / 3) for n in range(5000)]
    path = made(tmp_path / "x.sqlite", rows, columns="a INTEGER, b TEXT, c REAL")
    with Database(path, "x", KNOWN) as db:
        found = db.fetch("t", ints=("a",), texts=("b",), reals=("c",), where=PICKED)
    assert list(zip(*(found[c].to_pylist() for c in "abc"), strict=True)) == [
        row for row in rows if row[0] % 2 == 0 or row[0] == 1
    ]
