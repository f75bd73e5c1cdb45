from __future__ import annotations

import shutil
import sqlite3
import subprocess
from contextlib import closing
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from nsight_files import good, nvtx, unpack, write

from tprof import nsys
from tprof.errors import SourceError
from tprof.events import TABLES
from tprof.read import expand, read_file
from tprof.read.nsight import read_nsight

if TYPE_CHECKING:
    from pathlib import Path

    from tprof.model import Trace

FORMS = ("_pqtdir", "_arwdir", ".arrows")
UNSIGNED = ("globalTid", "globalPid", "nameId", "textId", "uint64Value")


def arrow_tables(database: Path) -> dict[str, pa.Table]:
    """The tables of an export in the types that `nsys export` gives them."""
    found = {}
    with closing(sqlite3.connect(database)) as db:
        db.text_factory = bytes
        names = [n.decode() for (n,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for name in names:
            rows = db.execute(f'SELECT * FROM "{name}"')
            columns = [c[0] for c in rows.description]
            values = list(zip(*rows.fetchall(), strict=True)) or [()] * len(columns)
            found[name] = pa.table({c: _column(c, v) for c, v in zip(columns, values, strict=True)})
    return found


def _column(name: str, values: tuple[Any, ...]) -> pa.Array:
    if any(isinstance(v, bytes) for v in values):
        return pa.array([v if v is None or isinstance(v, bytes) else str(v).encode() for v in values]).view(pa.string())
    if name in UNSIGNED:
        return pa.array(values, pa.int64()).view(pa.uint64())
    return pa.array(values, pa.float64() if any(isinstance(v, float) for v in values) else pa.int64())


def export(tables: dict[str, pa.Table], stem: Path, form: str) -> Path:
    """Write an export as `nsys export` would."""
    path = stem.with_name(stem.name + form)
    if form == ".arrows":
        with pa.OSFile(str(path), "wb") as sink:
            for name, data in tables.items():
                with pa.ipc.new_stream(sink, data.schema.with_metadata({"table_name": name})) as writer:
                    writer.write_table(data)
        return path
    path.mkdir()
    for name, data in tables.items():
        if form == "_pqtdir":
            pq.write_table(data, path / f"{name}.parquet", compression="none")
        else:
            with pa.ipc.new_stream(path / f"{name}.arrow", data.schema) as writer:
                writer.write_table(data)
    return path


def same(one: Trace, other: Trace) -> None:
    for name in TABLES:
        assert getattr(one, name).equals(getattr(other, name)), name
    for field in {f.name for f in fields(one)} - {*TABLES}:
        assert getattr(one, field) == getattr(other, field), field


@pytest.mark.parametrize("form", FORMS)
def test_every_real_export_reads_the_same_as_sqlite(cases: Path, tmp_path: Path, form: str) -> None:
    for packed in sorted((cases / "nsight").rglob("*.sqlite.gz")):
        database = unpack(packed, tmp_path)
        path = export(arrow_tables(database), tmp_path / packed.name.split(".sqlite")[0], form)
        same(read_nsight(path, "typed"), read_nsight(database, "typed"))


@pytest.mark.parametrize("form", FORMS)
def test_odd_values(tmp_path: Path, form: str) -> None:
    odd = [
        nvtx(10, 400, text="step", uint64Value=-1), nvtx(20, 30, text=None, textId=3), nvtx(40, 35, text="inverted"),
        nvtx(50, 60, text=None, textId=99, doubleValue=1.5), nvtx(70, None, text="open"), nvtx(80, None, kind=34),
    ]  # fmt: skip
    database = write(tmp_path / "t.sqlite", {**good(), "NVTX_EVENTS": odd})
    with closing(sqlite3.connect(database)) as db:
        db.execute("UPDATE NVTX_EVENTS SET text = CAST(x'6261ff64' AS TEXT) WHERE text = 'step'")
        db.commit()
    same(read_nsight(export(arrow_tables(database), tmp_path / "t", form), "typed"), read_nsight(database, "typed"))


def test_the_form_that_reads_fastest_is_taken(tmp_path: Path) -> None:
    database = write(tmp_path / "t.sqlite", good())
    (tmp_path / "t.nsys-rep").write_bytes(b"report")
    assert expand([tmp_path]) == [database]
    parquet = export(arrow_tables(database), tmp_path / "t", "_pqtdir")
    assert expand([tmp_path]) == [parquet]
    arrow = export(arrow_tables(database), tmp_path / "t", "_arwdir")
    assert expand([tmp_path]) == [arrow]
    assert read_file(arrow).sources["path"].to_pylist() == [str(arrow)]


def test_damaged_exports_are_named(tmp_path: Path) -> None:
    tables = arrow_tables(write(tmp_path / "t.sqlite", good()))
    for form, file in (("_pqtdir", "StringIds.parquet"), ("_arwdir", "StringIds.arrow")):
        broken = export(tables, tmp_path / f"broken{form}", form) / file
        broken.write_bytes(broken.read_bytes()[:40])
        with pytest.raises(SourceError, match="damaged export") as caught:
            read_file(broken.parent)
        assert "\n" not in str(caught.value)
    bare = export({"StringIds": tables["StringIds"]}, tmp_path / "bare", "_arwdir")
    assert read_file(bare).host.num_rows == 0
    with pytest.raises(SourceError, match="give the folder"):
        read_file(export(tables, tmp_path / "one", "_pqtdir") / "StringIds.parquet")


@pytest.mark.parametrize("kind", ["arrowdir", "parquetdir", "arrow"])
def test_what_nsys_itself_exports(traces: Path, tmp_path: Path, kind: str) -> None:
    reports = sorted(traces.rglob("*.nsys-rep"))
    programs = [p for p in nsys.programs() if kind in subprocess.run(
        [p, "export", "--help"], capture_output=True, text=True, check=False).stdout]  # fmt: skip
    if not reports or not programs:
        pytest.skip(f"needs a report, and an nsys that exports {kind}")
    outs = [tmp_path / "t.sqlite", tmp_path / "t.out"]
    for form, out in zip(("sqlite", kind), outs, strict=True):
        run = [programs[0], "export", "--type", form, "--output", out, reports[0]]
        if subprocess.run(run, capture_output=True, check=False).returncode:
            shutil.rmtree(tmp_path)
            pytest.skip("nsys is older than the report")
    same(read_nsight(outs[1], "typed"), read_nsight(outs[0], "typed"))
