from __future__ import annotations

import gzip
import json
import os
from typing import TYPE_CHECKING

import pytest

from tprof.errors import SourceError
from tprof.read import expand, read_file
from tprof.read.detect import SQLITE_MAGIC, detect

if TYPE_CHECKING:
    from pathlib import Path

TRACE = b'{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":1}]}'


def make(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("a.json", TRACE, "torch"),
        ("a.sqlite", TRACE, "torch"),
        ("a", b"\xef\xbb\xbf \n" + TRACE, "torch"),
        ("a.nsys-rep", TRACE, "torch"),
        ("a.json", SQLITE_MAGIC + bytes(100), "nsight"),
        ("a.nsys-rep", b"\x00\x01binary", "report"),
        ("a.qdrep", b"\x00\x01binary", "report"),
        ("a.qdstrm", b"\x00\x01binary", "report"),
    ],
)
def test_content_first(tmp_path: Path, name: str, content: bytes, found: str) -> None:
    assert detect(make(tmp_path / name, content)) == found
    assert detect(make(tmp_path / f"{name}.gz", gzip.compress(content))) == found


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (gzip.compress(b""), "gzip file that holds nothing"),
        (gzip.compress(TRACE)[:10], "gzip file that holds nothing"),
        (TRACE[:9], "ends before its list of events begins"),
        (b"PAR1....", "Parquet"),
        (b"PK\x03\x04...", "zip archive"),
        (b"\x28\xb5\x2f\xfd...", "zstd"),
        (TRACE.decode().encode("utf-16"), "UTF-16"),
        (b"hello", "no trace that tprof knows"),
        (b'{"a": 1}', "has no traceEvents"),
        (b'{"schema": "1.1", "nodes": []}', "execution trace"),
        (b'{"a": "\\"traceEvents\\": [", "b": 1}', "has no traceEvents"),
    ],
)
def test_what_is_no_trace_is_refused_in_one_sentence(tmp_path: Path, content: bytes, problem: str) -> None:
    path = make(tmp_path / "x.json", content)
    with pytest.raises(SourceError, match=problem) as caught:
        read_file(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_places_that_hold_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "x.json"
    folder.mkdir()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    parquet = make(tmp_path / "p" / "KERNEL.parquet", b"PAR1").parent
    for path, problem in (
        (tmp_path / "none", "does not exist"),
        (folder, "is a directory"),
        (pipe, "no regular file"),
        (parquet, "no export of Nsight Systems"),
        (tmp_path / "pipe" / "below", "cannot be read"),
        (tmp_path / ("n" * 300), "cannot be read"),
    ):
        with pytest.raises(SourceError, match=problem):
            read_file(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path: Path) -> None:
    path = make(tmp_path / "x.json", TRACE)
    path.chmod(0)
    with pytest.raises(SourceError, match="Permission denied"):
        read_file(path)


def test_expand_takes_traces_of_a_folder(tmp_path: Path) -> None:
    wanted = [
        make(tmp_path / "[rank 0].json", TRACE),
        make(tmp_path / "a.nsys-rep", b"\x00binary"),
        make(tmp_path / "b" / "x.json.gz", gzip.compress(TRACE)),
        make(tmp_path / "b" / "y.sqlite", SQLITE_MAGIC),
        make(tmp_path / "c.json" / "bare", b'[{"ph": "X"}]'),
    ]
    make(tmp_path / "b" / "y.nsys-rep", b"\x00binary")  # its export lies beside it
    make(tmp_path / "config.json", b'{"a": 1}')
    make(tmp_path / "notes.txt", b"hello")
    make(tmp_path / "empty.json", b"")
    (tmp_path / "b" / "loop").symlink_to(tmp_path)
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    assert expand([tmp_path]) == sorted(wanted)


def test_expand_keeps_files_and_their_order(tmp_path: Path) -> None:
    one = make(tmp_path / "z[1].json", b"not looked at")
    two = make(tmp_path / "a.json", TRACE)
    assert expand([one, str(two), tmp_path / "none", one]) == [one, two, tmp_path / "none"]


def test_progress_reaches_the_end(tmp_path: Path) -> None:
    path = make(tmp_path / "x.json", TRACE)
    seen: list[tuple[int, int]] = []
    read_file(path, lambda done, total: seen.append((done, total)))
    assert seen[-1] == (len(TRACE), len(TRACE))


def test_gzipped_sqlite_leaves_no_temporary_file(cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    exports = sorted((cases / "nsight").rglob("*.sqlite*"), key=lambda p: p.stat().st_size)
    content = exports[0].read_bytes()
    packed = content if content[:2] == b"\x1f\x8b" else gzip.compress(content, 1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    trace = read_file(make(tmp_path / "x.gz", packed))
    assert trace.sources["format"].to_pylist() == ["nsight"]
    assert trace.sources["path"].to_pylist() == [str(tmp_path / "x.gz")]
    assert list((tmp_path / "tmp").iterdir()) == []
    assert json.loads(trace.sources["rows_skipped"][0].as_py()) is not None
