from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import tprof
from tprof.errors import TprofError, UsageError
from tprof.read import cache
from tprof.read.detect import is_trace

ROOT = Path(__file__).resolve().parents[2]
CASES = Path(os.environ.get("TPROF_CASES") or ROOT / "../shared/cases").resolve()
TRACES = (".json", ".json.gz", ".sqlite", ".sqlite.gz")
LONG_AGO = 1_700_000_000


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache, which keeps files of every size that have just been written."""
    monkeypatch.setenv("TPROF_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("TPROF_CACHE", raising=False)
    monkeypatch.delenv("TPROF_CACHE_SIZE", raising=False)
    monkeypatch.setattr(cache, "SMALL_BYTES", 1)
    monkeypatch.setattr(cache, "_RACY_NS", -1 << 62)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return written(tmp_path / "one.json", 1)


def written(path: Path, duration: int) -> Path:
    events = [
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 5, "tid": 5, "ts": 1000, "dur": 1,
         "args": {"correlation": 1}},
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1006, "dur": duration,
         "args": {"correlation": 1, "stream": 7, "device": 0, "context": 1}},
    ]  # fmt: skip
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def kept() -> list[Path]:
    return [entry.file for entry in cache.entries()]


def busy(path: Path) -> int:
    return tprof.load(path).summary().to_dict()["devices"][0]["busy_ns"]


def read_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether loading reads the source."""
    reads = []
    with monkeypatch.context() as patch:
        patch.setattr("tprof.facade.read_source", lambda *given: reads.append(given) or pytest.skip("read"))
        try:
            tprof.load(path)
        except pytest.skip.Exception:
            return True
    return False


@pytest.mark.parametrize("path", [p for p in sorted(CASES.rglob("*")) if p.name.endswith(TRACES)], ids=lambda p: p.name)
def test_every_case_is_the_same_from_the_cache(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        if not is_trace(path):
            pytest.skip("no trace")
        plain = tprof.load(path, cache=False)
    except TprofError:
        pytest.skip("cannot be read")
    first = tprof.load(path)
    assert not read_again(path, monkeypatch)
    again = tprof.load(path)
    for name in (f.name for f in fields(plain)):
        assert getattr(again, name) == getattr(first, name) == getattr(plain, name), name
    assert again.summary().to_dict() == plain.summary().to_dict()
    assert again.kernels().to_dict() == plain.kernels().to_dict()


def test_a_changed_source_is_read_again(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert busy(source) == busy(source) == 1000
    before = source.stat()
    written(source, 2)
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))  # same size, inode and time of content
    assert (source.stat().st_size, source.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert busy(source) == 2000
    assert len(kept()) == 1  # in the place of the entry before
    assert not read_again(source, monkeypatch)


def test_what_has_just_changed_is_not_kept(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_RACY_NS", 2_000_000_000)
    tprof.load(source)
    assert kept() == []
    os.utime(source, (LONG_AGO, LONG_AGO))
    tprof.load(source)
    assert kept() == []  # its inode was changed just now


def test_a_change_while_it_is_read_is_seen(source: Path) -> None:
    slot = cache.find(source)
    written(source, 2)
    assert slot is not None
    assert slot.kept(tprof.load(source, cache=False)) is None
    assert kept() == []


def test_options_have_entries_of_their_own(source: Path) -> None:
    tprof.load(source)
    tprof.load(source, phases={"x": "autotune"})
    tprof.load(source, requests=("x",))
    assert len(kept()) == 3


def test_other_code_has_no_use_for_an_entry(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tprof.load(source)
    monkeypatch.setattr(cache, "_code", lambda: "another version")
    assert read_again(source, monkeypatch)


@pytest.mark.parametrize("beside", ["-wal", "-journal"])
def test_a_database_in_use_is_not_kept(source: Path, beside: str) -> None:
    source.with_name(source.name + beside).touch()
    tprof.load(source)
    assert kept() == []


@pytest.mark.parametrize("off", ["0", "off"])
def test_off(source: Path, monkeypatch: pytest.MonkeyPatch, off: str) -> None:
    monkeypatch.setenv("TPROF_CACHE", off)
    tprof.load(source)
    assert kept() == []


def test_small_sources_are_not_kept(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "SMALL_BYTES", 2 << 20)
    tprof.load(source)
    assert kept() == []


@pytest.mark.parametrize("damage", [b"", b"no Arrow file", None])
def test_a_damaged_entry_is_replaced(source: Path, damage: bytes | None, monkeypatch: pytest.MonkeyPatch) -> None:
    tprof.load(source)
    [entry] = kept()
    entry.write_bytes(entry.read_bytes()[:-200] if damage is None else damage)
    assert read_again(source, monkeypatch)
    assert busy(source) == 1000
    assert not read_again(source, monkeypatch)


def test_private(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tprof.load(source)
    [entry] = kept()
    assert (entry.stat().st_mode & 0o777, entry.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    entry.chmod(0o666)  # anyone could have written it
    assert read_again(source, monkeypatch)


def test_a_folder_that_cannot_be_written_is_no_failure(source: Path, tmp_path: Path, monkeypatch, caplog) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TPROF_CACHE_DIR", str(tmp_path / "file"))
    assert busy(source) == 1000
    assert "could not be kept" in caplog.text


def test_the_least_recently_used_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [written(tmp_path / f"{n}.json", 1) for n in range(3)]
    for n, path in enumerate(sources):
        tprof.load(path)
        os.utime(cache.find(path, [{}, []]).file, (LONG_AGO + n, LONG_AGO + n))
    tprof.load(sources[0])  # used now
    size = cache.entries()[0].size
    monkeypatch.setenv("TPROF_CACHE_SIZE", str(3 * size))
    tprof.load(written(tmp_path / "3.json", 1))
    assert [Path(entry.source).name for entry in cache.entries()] == ["3.json", "0.json", "2.json"]
    monkeypatch.setenv("TPROF_CACHE_SIZE", "10")
    tprof.load(written(tmp_path / "4.json", 1))  # too large by itself: nothing makes room for it
    assert len(kept()) == 3


def test_size_of_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"": 20_000_000_000, "500MB": 500_000_000, "1.5 g": 1_500_000_000, "7": 7}
    for said, size in sizes.items():
        monkeypatch.setenv("TPROF_CACHE_SIZE", said)
        assert cache.limit() == size
    monkeypatch.setenv("TPROF_CACHE_SIZE", "much")
    with pytest.raises(UsageError, match="TPROF_CACHE_SIZE='much': write a size"):
        cache.limit()


def test_clear(source: Path) -> None:
    tprof.load(source)
    left = kept()[0].with_suffix(".part")  # of a writer that was killed
    left.touch()
    size = cache.entries()[0].size
    assert cache.clear() == (2, size)
    assert (kept(), source.exists(), left.exists()) == ([], True, False)


def test_what_a_killed_writer_left_goes_after_a_day(source: Path) -> None:
    tprof.load(source)
    new, old = (kept()[0].with_name(f"{name}.part") for name in ("new", "old"))
    new.touch()
    old.touch()
    os.utime(old, (LONG_AGO, LONG_AGO))
    tprof.load(source, requests=("x",))
    assert (new.exists(), old.exists()) == (True, False)


def test_processes_may_keep_the_same_source_at_once(source: Path, tmp_path: Path) -> None:
    code = (
        "import sys, tprof; from tprof.read import cache; cache.SMALL_BYTES, cache._RACY_NS = 1, -1 << 62\n"
        "for _ in range(20): cache.clear(); print(tprof.load(sys.argv[1]).summary().to_dict()['devices'][0]['busy_ns'])"
    )
    command = [sys.executable, "-c", code, str(source)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = [process.communicate(timeout=120)[0].split() for process in running]
    assert said == [["1000"] * 20] * 3
    assert not list((tmp_path / "cache" / "traces").glob("*.part"))
