"""What is fuzzed: for every format how an input is made from a `random.Random`, and what must hold of it.

Nothing but a `TprofError` of one sentence may be raised; the reading paths of a format agree with each other and with
a slow reader; and whatever is answered adds up.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import zipfile
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from fuzz import mutate, reference, seeds

import tprof
from tprof.errors import TprofError
from tprof.events import TABLES
from tprof.prepare import bundle, plan, plan_file
from tprof.present import html, markdown, tabular, text
from tprof.read import inflate, read_file, torch_document, torch_scan_columns
from tprof.read.sqlite import Database
from tprof.scrub import scrub
from tprof.scrub.words import Words

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from random import Random

    from tprof.model import Trace


@dataclass(frozen=True)
class Target:
    """One format: `make` writes an input into an empty folder, `check` raises where a property fails."""

    make: Callable[[Random, Path], Path]
    check: Callable[[Path, Random], None]


# ---- what must hold of every source


def answered(path: Path, rng: Random) -> None:
    """Read and ask everything; now and then also write every answer in every format, and scrub the source."""
    try:
        trace = tprof.load(path, cache=False)
        results = [trace.summary(), trace.idle(), trace.cold(), trace.kernels(), trace.requests(), trace.shapes()]
        adds_up(trace, results[0].to_dict())
        if rng.random() < 0.1:
            results += [trace.autotune(), trace.advise()]
            written(results)
        if rng.random() < 0.1:
            scrubbed(path)
    except TprofError as error:
        one_sentence(error)


def scrubbed(path: Path) -> None:
    """A copy is written or refused; nothing else is left."""
    copy = path.with_name("scrubbed")
    try:
        scrub(path, copy, Words())
    finally:
        shutil.rmtree(copy) if copy.is_dir() else copy.unlink(missing_ok=True)


def adds_up(trace: Trace, said: dict[str, Any]) -> None:
    """Every partition of DESIGN 4 sums to what it is a part of, and nothing is negative."""
    wall = said["window"]["wall_ns"]
    for row in said["devices"]:
        for parts, whole in (
            ("idle_by_phase", row["idle_ns"]),
            ("busy_by_purpose", row["busy_ns"]),
            ("wall_by_phase", wall),
        ):
            assert sum(row[parts].values()) == whole, (parts, row[parts], whole)
            assert all(ns >= 0 for ns in row[parts].values()), row[parts]
        assert row["span_ns"] == row["busy_ns"] + row["idle_ns"]
    for row in said["requests"]:
        assert sum(row["phases"].values()) == row["wall_ns"], row
    lengths = zip(trace.device["start_ns"].to_pylist(), trace.device["end_ns"].to_pylist(), strict=True)
    assert sum(row["sum_ns"] for row in said["devices"]) == sum(end - start for start, end in lengths)


def written(results: list[Any]) -> None:
    """Every answer in every format; nothing of the trace is markup in any of them."""
    for result in results:
        json.loads(tabular.json_text(result), parse_constant=lambda c: pytest_fail(f"{c} in JSON"))
        tabular.csv_text(result, next(iter(result.tables)))
        tabular.parquet_bytes(result, next(iter(result.tables)))
        assert "\x1b" not in text.plain(result)
        assert "<script" not in markdown.render(result)
    page = html.report([html.Chapter("t", results[0], results[1], results[2], results[3])], "1")
    assert "<script" not in page
    page.encode()


def pytest_fail(problem: str) -> None:
    """Fail from within a call back."""
    raise AssertionError(problem)


def one_sentence(error: TprofError) -> None:
    """What, where, what to do: no second line, no control characters."""
    said = str(error)
    assert said
    assert "\n" not in said, said


def reading(path: Path, read: Callable[[Path], Trace]) -> dict[str, Any] | str:
    """All that is known of a source, or what is wrong with it."""
    try:
        trace = read(path)
    except TprofError as error:
        one_sentence(error)
        return str(error)
    said = {f.name: getattr(trace, f.name) for f in fields(trace)}
    return {k: v.to_pydict() if k in TABLES else repr(v) for k, v in said.items()}


def same_totals(found: dict[str, Any] | str, expected: reference.Totals | None) -> None:
    """Events and their summed lengths by kind are those of the slow reader."""
    if expected is None or isinstance(found, str):
        return
    device = found["device"]
    rows = zip(device["kind"], device["start_ns"], device["end_ns"], strict=True)
    assert reference._totals([(kind, end - start) for kind, start, end in rows]) == expected


# ---- torch.profiler


def make_torch(rng: Random, folder: Path) -> Path:
    content = mutate.dumps(rng, mutate.several(rng, seeds.torch(rng.randrange(16))))
    if rng.random() < 0.4:
        content = mutate.damaged(rng, content)
    path = folder / rng.choice(("x.json", "x.json.gz", "x.sqlite", "x"))
    path.write_bytes(mutate.packed(rng, content) if rng.random() < 0.15 else content)
    return path


def check_torch(path: Path, rng: Random) -> None:
    """The readings agree, and what is answered adds up."""
    agree_torch(path, rng)
    answered(path, rng)


def agree_torch(path: Path, rng: Random) -> None:
    """Decoder, scanners side by side and small blocks give one reading, and the slow reader the same totals."""
    block = rng.choice((64, 300, 1500))
    sizes = {"whole": (1 << 21, 1 << 16, 1 << 15), "blocks": (block, block, block)}
    found = []
    torch_scan_columns.LOAD_BYTES = 0  # side by side, however small
    pa.set_cpu_count(3)
    for setting, (size, window, piece) in (("off", sizes["whole"]), ("off", sizes["blocks"]), ("on", sizes["blocks"])):
        os.environ["TPROF_SCANNER"] = setting
        torch_document.BLOCK_BYTES, torch_document._WINDOW, inflate.READ_BYTES = size, window, piece
        found.append(reading(path, read_file))
    os.environ["TPROF_SCANNER"] = "off"
    torch_document.BLOCK_BYTES, torch_document._WINDOW, inflate.READ_BYTES = sizes["whole"]
    assert found[1] == found[2], "scanner and decoder differ"
    content = path.read_bytes()
    expected = reference.torch(content) if content[:1] in (b"{", b"[") else None
    if expected is not None:
        assert without_notes(found[0]) == without_notes(found[1]), "whole and in blocks differ"
    for one in found:
        same_totals(one, expected)


def without_notes(found: dict[str, Any] | str) -> Any:
    """A reading without its warnings: of a small file more is looked at."""
    return found if isinstance(found, str) else {k: v for k, v in found.items() if k not in ("notes", "sources")}


# ---- Nsight


def make_sqlite(rng: Random, folder: Path) -> Path:
    content = mutate.database(rng, seeds.sqlite(rng.randrange(4) == 0))
    path = folder / rng.choice(("x.sqlite", "x.sqlite.gz", "x.json"))
    path.write_bytes(mutate.packed(rng, content) if rng.random() < 0.1 else content)
    return path


def check_sqlite(path: Path, rng: Random) -> None:
    """The readings agree, and what is answered adds up."""
    agree_sqlite(path, rng)
    answered(path, rng)


def agree_sqlite(path: Path, rng: Random) -> None:
    """Pages by machine code and by numpy, ADBC and sqlite3 give one reading, and the slow reader the same totals."""
    os.environ["TPROF_SCANNER"] = rng.choice(("on", "off"))
    found = reading(path, read_file)
    os.environ["TPROF_SCANNER"] = "off"
    paged, arrow = Database._paged, Database._arrow
    Database._paged = lambda *_: None  # type: ignore[method-assign]
    try:
        by_driver = reading(path, read_file)
        Database._arrow = lambda *_: None  # type: ignore[method-assign]
        by_python = reading(path, read_file)
    finally:
        Database._paged, Database._arrow = paged, arrow  # type: ignore[method-assign]
    if path.read_bytes()[:2] != b"\x1f\x8b":
        expected = reference.nsight(path)
        for one in (found, by_driver, by_python):
            same_totals(one, expected)
        if expected is not None:
            assert found == by_driver, "pages and ADBC differ"
            assert by_driver == by_python, "ADBC and sqlite3 differ"


def make_arrow(rng: Random, folder: Path) -> Path:
    from read.test_nsight_arrow import FORMS, arrow_tables, export

    database = folder / "x.sqlite"
    database.write_bytes(seeds.sqlite(0))
    tables = {name: data for name, data in arrow_tables(database).items() if rng.random() > 0.05}
    database.unlink()
    for _ in range(rng.randrange(4)):
        name = rng.choice(list(tables))
        tables[name] = _changed(rng, tables[name])
    path = export(tables, folder / "x", rng.choice(FORMS))
    if rng.random() < 0.5:
        file = rng.choice(sorted(path.iterdir())) if path.is_dir() else path
        file.write_bytes(mutate.damaged(rng, file.read_bytes(), (b"\xff\xff\xff\xff", bytes(8), b"PAR1", b"ARROW1")))
    return path


def _changed(rng: Random, data: pa.Table) -> pa.Table:
    """A table with one column of another name, type or content, or without it."""
    at = rng.randrange(data.num_columns)
    name, rows = data.column_names[at], data.num_rows
    values = [mutate.odd(rng) for _ in range(rows)]
    as_text = pa.array([None if v is None else repr(v).encode() for v in values], pa.binary())
    whole = pa.array([v if type(v) is int and -(2**63) <= v < 2**63 else None for v in values], pa.int64())
    kinds = (as_text, whole, pa.nulls(rows), whole.cast(pa.float64(), safe=False), as_text.dictionary_encode(),
             pa.array([[1]] * rows), pa.array([{"a": 1}] * rows), pa.array([True] * rows), whole.view(pa.uint64()),
             whole.view(pa.timestamp("ns")))  # fmt: skip
    action = rng.random()
    if action < 0.15 and data.num_columns > 1:
        return data.drop_columns([name])
    if action < 0.3:
        return data.rename_columns([f"{n}_" if n == name else n for n in data.column_names])
    return data.set_column(at, name, rng.choice(kinds))


# ---- run directories


def make_run(rng: Random, folder: Path) -> Path:
    files = dict(seeds.run(rng.randrange(3)))
    for name in list(files):
        action = rng.random()
        if action < 0.05:
            del files[name]
        elif name.endswith(".jsonl"):
            files[name] = mutate.lines(rng, files[name])
        elif name == "run.json" and action < 0.3:
            files[name] = mutate.dumps(rng, mutate.several(rng, json.loads(files[name])))
        elif action < 0.5:
            files[name] = mutate.damaged(rng, files[name], (b"CHNK", b"\xff" * 4, b"\xff" * 8, bytes(8)))
    journals = [name for name in files if name.endswith(".jsonl")]
    if len(journals) > 1 and rng.random() < 0.2:  # two processes that wrote into one file
        files[journals[0]] = _interleaved(rng, files[journals[0]], files[journals[1]])
    path = folder / "run"
    path.mkdir()
    for name, content in files.items():
        pack = rng.random() < 0.1
        (path / (f"{name}.gz" if pack else name)).write_bytes(gzip.compress(content, 1) if pack else content)
    return path


def _interleaved(rng: Random, one: bytes, other: bytes) -> bytes:
    left, right = one.splitlines(keepends=True), other.splitlines(keepends=True)
    out = []
    while left or right:
        out.append((left if left and (not right or rng.random() < 0.5) else right).pop(0))
    return b"".join(out)


def check_run(path: Path, rng: Random) -> None:
    answered(path, rng)
    try:
        made = plan.make([path], plan.Limits())
        plan_file.load(_written(path.with_name("plan.json"), made.text()))
    except TprofError as error:
        one_sentence(error)


def _written(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


# ---- plans and bundles


def make_plan(rng: Random, folder: Path) -> Path:
    content = mutate.dumps(rng, mutate.several(rng, seeds.plan()))
    path = folder / "plan.json"
    path.write_bytes(mutate.damaged(rng, content) if rng.random() < 0.3 else content)
    return path


def check_plan(path: Path, _: Random) -> None:
    """A plan is read whole or refused; what was read is written and read again as the same."""
    try:
        found = plan_file.load(path)
    except TprofError as error:
        one_sentence(error)
        return
    path.write_text(found.text(), encoding="utf-8")
    assert plan_file.load(path) == found


def make_bundle(rng: Random, folder: Path) -> Path:
    cache = folder / "cache" / "KEY"
    cache.mkdir(parents=True)
    (cache / "mm.cubin").write_bytes(b"\x7fELF" + bytes(100))
    (cache / "__grp__mm.json").write_text(json.dumps({"child_paths": {"mm.cubin": str(cache / "mm.cubin")}}))
    path = folder / "b.zip"
    bundle.pack(path, {"triton": folder / "cache"})
    if rng.random() < 0.6:
        _rezipped(rng, path)
    if rng.random() < 0.6:
        path.write_bytes(mutate.damaged(rng, path.read_bytes(), (b"PK\x01\x02", b"PK\x05\x06", bytes(4), b"\xff" * 4)))
    return path


def _rezipped(rng: Random, path: Path) -> None:
    """The manifest, names or contents changed, in a sound archive."""
    with zipfile.ZipFile(path) as old:
        entries = {name: old.read(name) for name in old.namelist()}
    manifest = json.loads(entries["manifest.json"])
    entries["manifest.json"] = json.dumps(mutate.several(rng, manifest)).encode("utf-8", "surrogatepass")
    with zipfile.ZipFile(path, "w") as new:
        for name, content in entries.items():
            other = rng.choice(("../../x", "/etc/x", "triton/../../x", "triton/a\\b", "triton/" + "n" * 300, "triton"))
            new.writestr(other if rng.random() < 0.1 else name, content)


def check_bundle(path: Path, _: Random) -> None:
    """It is unpacked below its folder or refused, and nothing appears beside it."""
    target = path.with_name("out")
    before = {*path.parent.iterdir()}
    try:
        bundle.unpack(path, {"triton": target}, trust=True)
    except TprofError as error:
        one_sentence(error)
    assert {*path.parent.iterdir()} <= before | {target}
    shutil.rmtree(target, ignore_errors=True)


TARGETS = {
    "torch": Target(make_torch, check_torch),
    "sqlite": Target(make_sqlite, check_sqlite),
    "arrow": Target(make_arrow, answered),
    "run": Target(make_run, check_run),
    "plan": Target(make_plan, check_plan),
    "bundle": Target(make_bundle, check_bundle),
}
