"""Paths that are no files, files that change, folders that cannot be written: one sentence, at once."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tprof
from tprof.errors import TprofError
from tprof.machine import cache_folder
from tprof.prepare import bundle, plan_file
from tprof.read import expand, inflate, read_file, read_source

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "two-processes"
NOT_ROOT = pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run directory of its own."""
    return Path(shutil.copytree(SAMPLE, tmp_path / "run"))


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A trace large enough to be read in pieces and to be kept."""
    event = '{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":%d,"dur":1}'
    path = tmp_path / "x.json"
    path.write_text('{"traceEvents":[' + ",\n".join(event % n for n in range(60_000)) + "]}")
    os.utime(path, (1, 1))
    return path


def cli(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "tprof", *map(str, arguments)], capture_output=True, text=True,
                          check=False, timeout=120, env={**os.environ, **environment})  # fmt: skip


def refused(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/full", "/dev/null"])
def test_a_device(device: str) -> None:
    with pytest.raises(TprofError, match="no regular file"):
        read_file(device)


def test_a_pipe_is_never_waited_for(tmp_path: Path, run: Path) -> None:
    processes = len(read_source(run))
    for name in ("run.json", "process-9.jsonl", "process-9.torch.json"):
        (run / name).unlink(missing_ok=True)
        os.mkfifo(run / name)
    assert len(read_source(run)) == processes
    export = tmp_path / "x_pqtdir"
    export.mkdir()
    (export / "META_DATA_EXPORT.parquet").write_bytes(b"PAR1")
    os.mkfifo(export / "StringIds.parquet")
    os.mkfifo(tmp_path / "pipe")
    for reads in (lambda: read_file(export), lambda: plan_file.load(tmp_path / "pipe"),
                  lambda: bundle.unpack(tmp_path / "pipe", {}, trust=True)):  # fmt: skip
        with pytest.raises(TprofError):
            reads()


def test_links_that_lead_in_circles(tmp_path: Path) -> None:
    (tmp_path / "a.json").symlink_to(tmp_path / "b.json")
    (tmp_path / "b.json").symlink_to(tmp_path / "a.json")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "up").symlink_to(tmp_path)
    with pytest.raises(TprofError, match="cannot be read"):
        read_file(tmp_path / "a.json")
    assert expand([tmp_path]) == []


def test_a_file_that_vanishes_or_shrinks_while_it_is_read(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inflate, "PLAIN_BYTES", 1 << 16)
    whole = tprof.load(trace).host.num_rows

    def cut(done: int, _total: int) -> None:
        if done > 1 << 20:
            os.truncate(trace, 1 << 20)

    found = tprof.load(trace, progress=cut)
    assert 0 < found.host.num_rows < whole
    assert "cut-json" in {note.code for note in found.notes}
    trace.write_text('{"traceEvents":[{"ph":"X"},')
    kept = inflate.Source.pieces
    monkeypatch.setattr(inflate.Source, "pieces", lambda self: (trace.unlink(missing_ok=True), kept(self))[1])
    with pytest.raises(TprofError, match="cannot be read"):
        tprof.load(trace)


def test_a_run_directory_that_vanishes(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tprof.read import run as module

    kept = module.read_journal
    monkeypatch.setattr(module, "read_journal", lambda file: (kept(file), shutil.rmtree(run, ignore_errors=True))[0])
    with pytest.raises(TprofError, match="cannot be read"):
        read_source(run)


@NOT_ROOT
def test_no_permission(trace: Path) -> None:
    trace.chmod(0)
    with pytest.raises(TprofError, match="Permission denied"):
        read_file(trace)


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("TPROF_CACHE_DIR", "XDG_CACHE_HOME", "TRITON_CACHE_DIR", "TRITON_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", home)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as for a user whom the system does not know
    assert cache_folder().name == f"tprof-{os.getuid()}"
    with pytest.raises(TprofError, match="this user has no home"):
        bundle.folders()


def test_a_relative_or_empty_cache_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TPROF_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(name, "")
    assert cache_folder().is_absolute()


def test_a_cache_that_cannot_be_written(trace: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = cli("summary", trace, "-f", "json", TPROF_CACHE="1", TPROF_CACHE_DIR=str(tmp_path / "file" / "below"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["sources"][0]["rows_read"] == 60_000
    assert "Traceback" not in done.stderr


def test_a_full_disk(trace: Path, tmp_path: Path) -> None:
    """`ulimit -f` ends a write as a full disk does; the file that stood there before stays."""
    alone = "unset COVERAGE_PROCESS_CONFIG"  # what `make coverage` writes meets the limit, too
    limited = f"{alone}; ulimit -f 8; trap '' XFSZ; exec {sys.executable} -m tprof"
    cache = f"TPROF_CACHE=1 TPROF_CACHE_DIR={tmp_path / 'cache'}"
    done = subprocess.run(["bash", "-c", f"export {cache}; {limited} summary {trace} -f json"], capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert json.loads(done.stdout)["sources"][0]["rows_read"] == 60_000, done.stderr
    done = subprocess.run(["bash", "-c", f"{limited} scrub {trace} -o {tmp_path / 'out.json'}"], capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert "File too large" in refused(done)


def test_a_packed_run_that_was_cut(run: Path) -> None:
    journal = next(run.glob("*.jsonl.gz"))
    journal.write_bytes(gzip.compress(gzip.decompress(journal.read_bytes()))[:-200])
    assert sum(t.sources["rows_dropped"][0].as_py() for t in read_source(run)) >= 1
