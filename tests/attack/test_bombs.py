"""Files that inflate, nest or number without end: bounded memory, and an answer or one sentence.

`TPROF_ATTACK=whole` takes the sizes of docs/trust.md.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import subprocess
import sys
import zipfile
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tprof.errors import TprofError
from tprof.prepare import bundle, plan_file
from tprof.read import inflate, read_file
from tprof.read.run_journal import read_journal

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

WHOLE = os.environ.get("TPROF_ATTACK") == "whole"
MB = 1 << 20
EVENT = b'{"ph":"X","cat":"%s","name":"%s","pid":%d,"tid":%d,"ts":%d,"dur":1,"args":{}}'


def document(path: Path, middle: Iterable[bytes]) -> Path:
    """A gzipped trace of one event, what is given, and another event."""
    with gzip.open(path, "wb", 1) as file:
        file.write(b'{"traceEvents":[\n' + EVENT % (b"cpu_op", b"first", 1, 1, 1) + b",\n")
        file.writelines(middle)
        file.write(EVENT % (b"cpu_op", b"last", 1, 1, 9) + b"\n]}")
    return path


def asked(path: Path, most_bytes: int, verb: str = "summary") -> subprocess.CompletedProcess[str]:
    """Ask the command line, with so much memory."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_DATA, (most_bytes, most_bytes))  # noqa: E731
    command = [sys.executable, "-m", "tprof", verb, path, "-f", "json", "--no-cache"]
    return subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limit, timeout=1200)


def test_one_endless_string(tmp_path: Path) -> None:
    size = 1024 if WHOLE else 160
    string = (b"x" * MB for _ in range(size))
    path = document(
        tmp_path / "x.json.gz", [b'{"ph":"X","cat":"cpu_op","name":"', *string, b'","pid":1,"tid":1,"ts":3,"dur":1},\n']
    )
    done = asked(path, 700 * MB)
    assert done.returncode == 0, done.stderr
    assert "too-long" in {w["code"] for w in json.loads(done.stdout)["warnings"]}
    assert json.loads(done.stdout)["sources"][0]["rows_read"] == 2


def test_nothing_but_blanks(tmp_path: Path) -> None:
    path = document(tmp_path / "x.json.gz", (b" " * MB for _ in range(4096 if WHOLE else 160)))
    done = asked(path, 700 * MB)
    assert json.loads(done.stdout)["sources"][0]["rows_read"] == 2
    assert json.loads(done.stdout)["sources"][0]["rows_dropped"] == 0


def test_many_processes(tmp_path: Path) -> None:
    count = 1_000_000 if WHOLE else 5_000
    path = document(tmp_path / "x.json.gz", (EVENT % (b"cpu_op", b"a", n, n, n) + b",\n" for n in range(2, count)))
    done = asked(path, (3 << 30) if WHOLE else 1536 * MB)
    assert json.loads(done.stdout)["sources"][0]["rows_read"] == count


def test_many_names(tmp_path: Path) -> None:
    count = 1_000_000 if WHOLE else 100_000
    path = document(tmp_path / "x.json.gz", (EVENT % (b"kernel", b"k%d" % n, 0, 7, n) + b",\n" for n in range(count)))
    done = asked(path, (8 << 30) if WHOLE else 1024 * MB, "kernels")
    assert len(json.loads(done.stdout)["kernels"]) == count


def test_a_database_that_inflates_beyond_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.sqlite.gz"
    path.write_bytes(gzip.compress(b"SQLite format 3\0" + bytes(64 * MB)))
    room = inflate.shutil.disk_usage(tmp_path)._replace(free=10 * MB)
    monkeypatch.setattr(inflate.shutil, "disk_usage", lambda _: room)
    monkeypatch.setattr(inflate.tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    with pytest.raises(TprofError, match="90 % of the room"):
        read_file(path)
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_bundle_that_inflates(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    (cache / "KEY").mkdir(parents=True)
    (cache / "KEY" / "mm.cubin").write_bytes(bytes(32 * MB))
    bundle.pack(tmp_path / "b.zip", {"triton": cache})
    with pytest.raises(TprofError, match="inflates to more"):
        bundle.unpack(tmp_path / "b.zip", {"triton": tmp_path / "out"}, trust=True)
    assert not (tmp_path / "out").exists()


DEEP = b"[" * 200_000


def test_nesting_without_end(tmp_path: Path) -> None:
    for name, content, reads in (
        ("plan.json", b'{"format": "tprof-plan", "x": ' + DEEP, plan_file.load),
        ("x.json", b'{"traceEvents": [' + EVENT % (b"cpu_op", b"a", 1, 1, 1) + b"," + DEEP, read_file),
        ("y.json", b'{"x": ' + DEEP + b', "traceEvents": [', read_file),
    ):
        (tmp_path / name).write_bytes(content)
        with suppress(TprofError):  # or it is read
            reads(tmp_path / name)
    (tmp_path / "process-1.jsonl").write_bytes(b'{"type": "note", "x": ' + DEEP + b"\n")
    assert read_journal(tmp_path / "process-1.jsonl").cut_lines == 1
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr("manifest.json", DEEP)
    with pytest.raises(TprofError, match="no bundle"):
        bundle.unpack(tmp_path / "b.zip", {"triton": tmp_path / "out"}, trust=True)
