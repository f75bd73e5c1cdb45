"""Inductor's compile workers record for the process that they compile for, and hand back what they always did."""

from __future__ import annotations

import json
import pickle
import sys

import pytest
from support import rundir
from support.skips import needs_triton

from tprof.record import trace

pytestmark = needs_triton

POOL = """
import functools, json, os, sys
from pathlib import Path
import torch, tprof
import torch._inductor.async_compile as async_compile
from support import inductor_kernels

out, folder = sys.argv[1:]
pool = async_compile.AsyncCompile.process_pool()
pool.submit(async_compile.AsyncCompile._get_ready).result(timeout=100)  # its workers are older than the recording
original = async_compile._worker_compile_triton
environment = {"TRITON_CACHE_DIR": os.environ["TRITON_CACHE_DIR"]}

def compiled(name, **options):
    (Path(folder) / name).mkdir()
    load = functools.partial(inductor_kernels.load, inductor_kernels.write(Path(folder) / name, **options))
    task = pool.submit(async_compile._worker_compile_triton, load, environment, {})
    return task.result(timeout=100)[0]

with tprof.trace(out):
    kernel = compiled("right")
    handed_back = set(vars(kernel))
    with inductor_kernels.pretended_gpu():
        getattr(kernel, "restore_after_unpickle", lambda _: None)(None)
        kernel.precompile(reload_kernel=lambda: None)
    try:
        compiled("wrong", body=inductor_kernels.BROKEN)
    except Exception as error:
        text = str(error)
assert async_compile._worker_compile_triton is original
plain = compiled("again")
print(json.dumps({
    "pid": os.getpid(), "text": text, "kinds": inductor_kernels.launcher_kinds(kernel),
    "added": sorted(handed_back ^ set(vars(plain))),
}))
async_compile.shutdown_compile_workers()
"""


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    """What the pool's parent said, and the processes of the run."""
    import os
    import subprocess
    from pathlib import Path

    from support import inductor_kernels

    if inductor_kernels.static_kernel() is None:
        pytest.skip("the workers of this torch are asked otherwise")
    folder = tmp_path_factory.mktemp("workers")
    root = Path(__file__).resolve().parents[2]
    paths = [str(root), str(root / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {
        **os.environ, "TRITON_CACHE_DIR": str(folder / "cache"), "TORCHINDUCTOR_COMPILE_THREADS": "2",
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"), "PYTHONPATH": os.pathsep.join(paths),
    }  # fmt: skip
    command = [sys.executable, "-c", POOL, str(folder / "run"), str(folder)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), rundir.read_run(folder / "run")


def test_a_worker_writes_a_journal_for_its_parent(pool):
    said, (parent, *workers) = pool
    assert parent.of("process")[0]["worker_of"] is None
    assert {w.of("process")[0]["worker_of"] for w in workers} == {said["pid"]}
    compiles = [s for w in workers for s in w.kind("jit")]
    assert sorted((s["ok"], s["attrs"].get("launcher")) for s in compiles) == [
        (False, None), (True, "static"), (True, "static"),
    ]  # fmt: skip
    assert sum(len(w.kind("stage")) for w in workers) == 13, "six each, and the one that failed"
    assert all(parent.records[0]["t_ns"] < s["t_ns"] < s["end"] < parent.records[-1]["t_ns"] for s in compiles)


def test_a_compile_that_fails_in_a_worker_has_its_error(pool):
    said, (_, *workers) = pool
    (failed,) = [s for w in workers for s in w.kind("jit") if not s["ok"]]
    assert "it is broken" in failed["error"]
    assert "it is broken" in said["text"], "and the workload gets it"


def test_the_parent_loads_what_the_worker_compiled(pool):
    _, (parent, *workers) = pool
    assert parent.kind("jit") == []
    loads = parent.kind("load")
    hashes = {k["hash"] for w in workers for k in w.of("kernel")}
    assert len(loads) == 2
    assert {s["attrs"]["hash"] for s in loads} == hashes
    assert {k["id"]: k["hash"] for k in parent.of("kernel")} == {
        s["attrs"]["kernel"]: s["attrs"]["hash"] for s in loads
    }


def test_what_comes_back_is_what_it_would_be(pool):
    said, _ = pool
    assert said["kinds"] == ["StaticTritonCompileResult"] * 2
    assert said["added"] == []


def test_a_worker_without_tprof_compiles_as_ever(tmp_path, monkeypatch):
    import tprof
    from tprof.record.in_worker import InWorker
    from tprof.record.worker import WorkerCompile

    replaced = WorkerCompile(json.dumps)
    assert pickle.loads(pickle.dumps(replaced)) is json.dumps, "nothing is being recorded"
    with trace(tmp_path / "run"):
        sent = pickle.dumps(replaced)
    assert isinstance(pickle.loads(sent), InWorker)
    monkeypatch.setattr(tprof.__spec__, "origin", "/elsewhere/tprof/__init__.py")
    assert pickle.loads(sent) is json.dumps, "another package of that name"


def test_a_process_that_is_recorded_already_needs_no_journal_more(tmp_path):
    from tprof.record.worker import WorkerCompile

    with trace(tmp_path / "run"):
        assert pickle.loads(pickle.dumps(WorkerCompile(json.dumps)))([1]) == "[1]"
    assert len(rundir.read_run(tmp_path / "run")) == 1


def test_a_worker_that_cannot_write_compiles_all_the_same(tmp_path, caplog):
    from tprof.record.worker import WorkerCompile

    with trace(tmp_path / "run"):
        sent = pickle.dumps(WorkerCompile(json.dumps))
    for file in (tmp_path / "run").iterdir():
        file.unlink()
    (tmp_path / "run").rmdir()
    (tmp_path / "run").write_text("a file")
    assert pickle.loads(sent)([1]) == "[1]"
    assert "'worker' failed" in caplog.text
