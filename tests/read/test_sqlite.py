from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from nsight_files import write

from tprof.errors import SourceError
from tprof.read.columns import Pick
from tprof.read.sqlite import Database

KNOWN = {"t": ("i", "r", "s"), "u": ("i",)}
Row = dict[str, Any]


def _fetch(path: Path, rows: list[Row]) -> tuple[list[Row], int, int]:
    with Database(write(path, {"t": rows}), "typed", KNOWN) as db:
        data = db.fetch("t", ("i",), ("s",), ("r",))
        assert data.schema == pa.schema([("i", pa.int64()), ("s", pa.string()), ("r", pa.float64())])
        return data.to_pylist(), db.bad_values, db.bad_texts


def test_columns_have_the_types_that_were_asked_for(tmp_path: Path) -> None:
    rows = [{"i": 1 << 62, "r": 2.5, "s": "a"}, {"i": None, "r": None, "s": None}, {"i": -1, "r": 1.0, "s": "ü"}]
    assert _fetch(tmp_path / "a", rows) == (
        [{"i": 1 << 62, "s": "a", "r": 2.5}, {"i": None, "s": "", "r": None}, {"i": -1, "s": "ü", "r": 1.0}], 0, 0
    )  # fmt: skip


@pytest.mark.parametrize(
    ("value", "kept"),
    [("abc", None), ("12", None), (b"\x01", None), (3.0, 3), (3.5, None), (1e30, None), (float("inf"), None)],
)
def test_a_value_that_is_no_integer(tmp_path: Path, value: object, kept: int | None) -> None:
    rows = [{"i": (1 << 60) + 1, "r": 0.0, "s": ""}, {"i": value, "r": 0.0, "s": ""}]
    data, bad, _ = _fetch(tmp_path / "a", rows)
    assert [r["i"] for r in data] == [(1 << 60) + 1, kept]
    assert bad == (kept is None)


def test_values_of_another_type_far_down(tmp_path: Path) -> None:
    rows: list[Row] = [{"i": n, "r": None, "s": None} for n in range(70_000)]
    rows += [{"i": "x", "r": 2.5, "s": "late"}, {"i": 1, "r": "y", "s": 7}]
    data, bad, _ = _fetch(tmp_path / "a", rows)
    assert data[69_999:] == [
        {"i": 69_999, "s": "", "r": None}, {"i": None, "s": "late", "r": 2.5}, {"i": 1, "s": "7", "r": None},
    ]  # fmt: skip
    assert bad == 1


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    path = write(tmp_path / "a", {"t": [{"i": 1, "r": 1.0, "s": "fine"}]})
    with closing(sqlite3.connect(path)) as db:
        db.execute("INSERT INTO t VALUES (2, 2.0, CAST(x'62ff64' AS TEXT))")
        db.commit()
    with Database(path, "typed", KNOWN) as opened:
        assert opened.fetch("t", texts=("s",))["s"].to_pylist() == ["fine", "b\ufffdd"]
        assert opened.bad_texts == 1


def test_absent_is_not_empty(tmp_path: Path) -> None:
    with Database(write(tmp_path / "a", {"t": [{"i": 1}]}), "typed", KNOWN) as db:
        assert ("t" in db, "u" in db) == (True, False)
        assert (db.columns("t"), db.columns("u")) == (("i",), ())
        assert db.fetch("t", ("i", "r")).to_pylist() == [{"i": 1, "r": None}]
        assert db.fetch("u", ("i",)).num_rows == 0
        assert (db.count("t"), db.count("u"), db.guess("t"), db.guess("u")) == (1, 0, 1, 0)


def test_a_condition(tmp_path: Path) -> None:
    with Database(write(tmp_path / "a", {"t": [{"i": n} for n in range(5)]}), "typed", KNOWN) as db:
        assert db.fetch("t", ("i",), where=[Pick("i", (3, 9)), Pick("i", (4,))])["i"].to_pylist() == [3, 4]
        assert db.count("t", [Pick("i", (3, 4))]) == 2
        assert db.count("t", [Pick("i", ())]) == 0


def test_a_view_is_no_table(tmp_path: Path) -> None:
    path = write(tmp_path / "a", {"x": [{"i": 5}]})
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE VIEW t AS WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c) SELECT i FROM c")
    with Database(path, "typed", KNOWN) as opened:
        assert "t" not in opened


def test_a_table_without_row_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (i INTEGER PRIMARY KEY) WITHOUT ROWID")
        db.execute("INSERT INTO t VALUES (5)")
        db.commit()
    with Database(path, "typed", KNOWN) as opened:
        assert opened.fetch("t", ("i",))["i"].to_pylist() == [5]
        assert (opened.count("t"), opened.guess("t")) == (1, 0)


def test_names_in_the_file_never_reach_sql(tmp_path: Path) -> None:
    hostile = 't"; DROP TABLE t; --'
    path = tmp_path / "a"
    with closing(sqlite3.connect(path)) as db:
        db.execute(f'CREATE TABLE "{hostile.replace(chr(34), chr(34) * 2)}" (i)')
        db.execute(f'CREATE TABLE t (i, "{hostile.replace(chr(34), chr(34) * 2)}")')
        db.commit()
    with Database(path, "typed", KNOWN) as opened:
        assert opened.columns("t") == ("i",)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b"{}", "is not a SQLite database"),
        (b"SQLite format 3\0" + b"x" * 20, r"is cut short \(36 bytes\)"),
        (b"SQLite format 3\0" + bytes(4096), "is not a SQLite database"),
    ],
)
def test_a_file_that_is_no_database(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=f"^typed: ({problem})"):
        Database(path, "typed", KNOWN)


def test_a_directory_and_nothing(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"^typed: cannot be read \(Is a directory\)$"):
        Database(tmp_path, "typed", KNOWN)
    with pytest.raises(SourceError, match=r"^typed: cannot be read \(No such file or directory\)$"):
        Database(tmp_path / "absent", "typed", KNOWN)
    assert not (tmp_path / "absent").exists()


def test_a_cut_file_says_how_much_is_missing(tmp_path: Path) -> None:
    path = write(tmp_path / "a", {"t": [{"i": n, "s": "x" * 99} for n in range(1000)]})
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(SourceError, match=rf"^typed: is cut short \({len(whole) // 2} of {len(whole)} bytes\)"):
        Database(path, "typed", KNOWN)


def test_damage_in_the_middle(tmp_path: Path) -> None:
    path = write(tmp_path / "a", {"t": [{"i": n, "s": "x" * 99} for n in range(1000)]})
    whole = bytearray(path.read_bytes())
    whole[8192:40960] = b"\xff" * (40960 - 8192)
    path.write_bytes(whole)
    with Database(path, "typed", KNOWN) as db, pytest.raises(SourceError, match=r"^typed: is a damaged SQLite"):
        db.fetch("t", ("i",))


def test_rows_still_in_a_wal_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode=wal")
        writer.execute("CREATE TABLE t (i)")
        writer.execute("INSERT INTO t VALUES (7)")
        writer.commit()
        assert path.with_name("a-wal").stat().st_size
        with Database(path, "typed", KNOWN) as db:
            assert db.fetch("t", ("i",))["i"].to_pylist() == [7]


def test_a_database_in_wal_mode_needs_no_side_files(tmp_path: Path) -> None:
    path = write(tmp_path / "a", {"t": [{"i": 7}]})
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode=wal")
    with Database(path, "typed", KNOWN) as opened:
        assert opened.fetch("t", ("i",))["i"].to_pylist() == [7]
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_locked_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tprof.read.sqlite._BUSY_SECONDS", 0.05)
    path = write(tmp_path / "a", {"t": [{"i": 7}]})
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        writer.execute("INSERT INTO t VALUES (8)")
        assert path.with_name("a-journal").exists()
        with pytest.raises(SourceError, match=r"^typed: is locked by another program"):
            Database(path, "typed", KNOWN)


def test_a_read_only_folder(tmp_path: Path) -> None:
    path = write(tmp_path / "a", {"t": [{"i": 7}]})
    path.chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        with Database(path, "typed", KNOWN) as db:
            assert db.fetch("t", ("i",))["i"].to_pylist() == [7]
    finally:
        tmp_path.chmod(0o700)


def test_a_path_with_signs_of_its_own(tmp_path: Path) -> None:
    path = write(tmp_path / "50% of a?b#c&mode=rwc d.sqlite", {"t": [{"i": 7}]})
    with Database(path, "typed", KNOWN) as db:
        assert db.fetch("t", ("i",))["i"].to_pylist() == [7]
    assert len(list(tmp_path.iterdir())) == 1


def test_nothing_stays_open(tmp_path: Path) -> None:
    path = write(tmp_path / "a", {"t": [{"i": 7}]})

    def opened() -> list[Path]:
        with Database(path, "typed", KNOWN) as db:
            db.fetch("t", ("i",))
        return [p for p in Path("/proc/self/fd").iterdir() if p.exists() and p.resolve() == path]

    assert opened() == []


def test_errors_are_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"no")
    with pytest.raises(SourceError) as caught:
        Database(path, "typed", KNOWN)
    assert re.fullmatch(r"typed: [^\n]+", str(caught.value))
