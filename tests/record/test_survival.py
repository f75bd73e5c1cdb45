"""Whatever happens to the process, the workload goes on as without tprof, and what was recorded can be read."""

from __future__ import annotations

import os
import signal
import textwrap
import threading
import time
from pathlib import Path

import pytest
from support import rundir
from support.skips import needs_triton
from support.until import until

pytestmark = needs_triton

SCRIPT = """
import sys, os, signal, threading, time
import torch
from support import record_kernels as kernels
from tprof.record import request, trace
from tprof.testing.stub import stub_driver
x, o = torch.ones(1024), torch.empty(1024)
def launch(n=1024):
    kernels.add[(8,)](x, x, o, n, B=128)
out = sys.argv[1]
"""


def _script(body: str) -> str:
    return SCRIPT + textwrap.dedent(body)


def _open_spans(out):
    (journal,) = out.glob("process-*.jsonl")
    text = journal.read_bytes()
    whole = text[: text.rindex(b"\n") + 1]
    journal.write_bytes(whole)
    return [s for s in rundir.only(out).spans.values() if s["end"] is None]


def test_kill_9_in_the_middle_of_a_compile_names_that_compile(python, tmp_path):
    import triton

    tools = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
    slow, hung = tmp_path / "ptxas", tmp_path / "hung"
    version = f'case "$*" in *--version*) exec {tools}/ptxas --version;; esac'
    slow.write_text(f"#!/bin/sh\n{version}\necho $$ >{hung}\nexec sleep 60\n")
    slow.chmod(0o755)
    script = _script("""
        with stub_driver(), trace(out), request("generate", id="r1"):
            launch()
        """)
    env = dict.fromkeys(("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"), str(slow))
    env["TRITON_CACHE_DIR"] = str(tmp_path / "cache")
    with python(script, tmp_path / "run", background=True, **env) as run:
        until(lambda: hung.exists() and hung.read_text().endswith("\n"))
        time.sleep(0.6)
        run.kill()
        os.kill(int(hung.read_text()), signal.SIGKILL)
    found = {s["kind"]: s["name"] for s in _open_spans(tmp_path / "run")}
    assert found == {"request": "generate", "serve": "generate", "jit": "add", "stage": "add/cubin"}


def test_sigterm_costs_half_a_second_at_most(python, tmp_path):
    script = _script("""
        with stub_driver(), trace(out):
            for _ in range(5):
                launch()
            time.sleep(0.6)
            print("ready", flush=True)
            time.sleep(60)
        """)
    with python(script, tmp_path / "run", background=True) as run:
        assert run.stdout.readline() == "ready\n"
        run.terminate()
    assert run.returncode == -signal.SIGTERM
    process = rundir.only(tmp_path / "run")
    assert len(process.launches) == 5
    assert process.of("close") == []


def test_a_program_that_exits_within_a_trace_is_whole(python, tmp_path):
    done = python(
        _script("""
            with stub_driver():
                recording = trace(out).__enter__()
                launch()
                sys.exit(3)
            """),
        tmp_path / "run",
    )
    assert done.returncode == 3
    process = rundir.only(tmp_path / "run")
    assert (len(process.launches), len(process.of("close"))) == (1, 1)


def test_forked_children_have_files_of_their_own(python, tmp_path):
    done = python(
        _script("""
            import multiprocessing
            with stub_driver(), trace(out), request("batch", id="b7"):
                launch(1000)
                children = [multiprocessing.get_context("fork").Process(target=launch) for _ in range(2)]
                for child in children: child.start()
                for child in children: child.join()
                raw = os.fork()
                if not raw:
                    launch(); launch(); time.sleep(0.7); os._exit(0)
                os.waitpid(raw, 0)
                launch(1000)
                print(threading.active_count())
            """),
        tmp_path / "run",
    )
    assert done.returncode == 0, done.stderr
    parent, *children = rundir.read_run(tmp_path / "run")
    assert len(parent.launches) == 2
    assert sorted(len(child.launches) for child in children) == [1, 1, 2]
    pid = parent.of("process")[0]["pid"]
    assert [child.of("process")[0]["forked_from"] for child in children] == [pid] * 3
    for child in children:
        (inherited,) = child.kind("request")
        assert inherited["attrs"] == {"request_id": "b7", "inherited": True}
        assert {launch["request"] for launch in child.launches} == {inherited["id"]}
    assert sum(len(child.of("close")) for child in children) == 2  # not of the one that left by os._exit


def test_a_child_that_runs_on_ends_what_it_inherited_in_its_own_file(python, tmp_path):
    done = python(
        _script("""
            with stub_driver(), trace(out):
                with request("batch", id="b7"):
                    child = not os.fork()
                    launch()
                launch()
            if not child:
                os.wait()
            """),
        tmp_path / "run",
    )
    assert done.returncode == 0, done.stderr
    parent, child = rundir.read_run(tmp_path / "run")
    for process in (parent, child):
        (request,) = process.kind("request")
        assert request["ok"]
        assert [launch["request"] for launch in process.launches] == [request["id"], 0]
        assert len(process.of("close")) == 1


def test_spawned_processes_record_into_the_same_directory(python, tmp_path):
    script = tmp_path / "spawner.py"
    script.write_text(
        _script("""
            import multiprocessing
            def work():
                with stub_driver(), trace(out):
                    launch()
            if __name__ == "__main__":
                with trace(out):
                    child = multiprocessing.get_context("spawn").Process(target=work)
                    child.start()
                    child.join()
            """)
    )
    code = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    done = python(code, script, tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert sorted(len(p.launches) for p in rundir.read_run(tmp_path / "run")) == [0, 1]


def test_eight_threads_lose_nothing(stub, tmp_path):
    import torch
    from support import record_kernels as kernels

    from tprof.record import trace

    x, o = torch.ones(1024), torch.empty(1024)

    def work():
        for _ in range(300):
            kernels.add[(8,)](x, x, o, 1024, B=128)

    with trace(tmp_path / "run", interval=0.01):
        threads = [threading.Thread(target=work, name=f"worker-{i}") for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    process = rundir.only(tmp_path / "run")
    per_thread = {}
    for launch in process.launches:
        assert launch["t_exit"] >= launch["t_enter"]
        per_thread[launch["tid"]] = per_thread.get(launch["tid"], 0) + 1
    assert sum(per_thread.values()) == 2400 == len(stub.launches)
    names = {t["name"] for t in process.of("thread")}
    assert {f"worker-{i}" for i in range(8)} <= names
    assert all(s["end"] is not None for s in process.spans.values())


def test_async_compile(cold_cache, tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    import torch
    import triton
    from support import record_kernels as kernels

    from tprof.record import trace
    from tprof.testing.stub import stub_driver

    if not hasattr(triton, "AsyncCompileMode"):
        pytest.skip("this triton has no AsyncCompileMode")
    x, o = torch.ones(1024), torch.empty(1024)
    with stub_driver(), trace(tmp_path / "run"), ThreadPoolExecutor(2) as pool, triton.AsyncCompileMode(pool):
        kernels.add.warmup(x, x, o, 1024, B=128, grid=(8,))
        kernels.add.warmup(x, x, o, 1000, B=128, grid=(8,))
    process = rundir.only(tmp_path / "run")
    assert [s["attrs"].get("async") for s in process.kind("jit")] == [True, True]
    stages = process.kind("stage")
    assert len(stages) == 12
    assert {s["parent"] for s in stages} == {0}
    assert {s["tid"] for s in stages}.isdisjoint({s["tid"] for s in process.kind("jit")})


def test_an_exception_of_the_workload_stays_as_it_is(stub, tmp_path):
    from tprof.record import trace

    with pytest.raises(KeyError, match="theirs"), trace(tmp_path / "run"):
        raise KeyError("theirs")
    assert len(rundir.only(tmp_path / "run").of("close")) == 1


def test_a_failed_launch_is_recorded_as_failed(cache, tmp_path):
    import torch
    from support import record_kernels as kernels

    from tprof.record import trace
    from tprof.testing.stub import stub_driver

    x, o = torch.ones(1024), torch.empty(1024)
    bad = []
    with stub_driver(fail_launch=lambda _: bool(bad)), trace(tmp_path / "run"):
        kernels.add[(8,)](x, x, o, 1024, B=128)
        bad.append(1)
        with pytest.raises(ValueError, match="cannot be accessed from Triton"):
            kernels.add[(8,)](x, x, o, 1024, B=128)
        bad.clear()
        kernels.add[(8,)](x, x, o, 1024, B=128)
        bad.append(1)
        with pytest.raises(ValueError, match="cannot be accessed from Triton"):
            kernels.add[(8,)](x, x, o, 1024, B=128)
    assert [launch["t_exit"] == -1 for launch in rundir.only(tmp_path / "run").launches] == [False, True, False, True]


def test_a_failed_load_is_recorded_with_its_text(cold_cache, tmp_path):
    import torch
    from support import record_kernels as kernels

    from tprof.record import trace
    from tprof.testing.stub import stub_driver

    x, o = torch.ones(1024), torch.empty(1024)
    failing = stub_driver(fail_load=lambda name: name == "add")
    with failing, trace(tmp_path / "run"), pytest.raises(RuntimeError, match="image is invalid"):
        kernels.add[(8,)](x, x, o, 1024, B=128)
    (load,) = rundir.only(tmp_path / "run").kind("load")
    assert load["ok"] is False
    assert "device kernel image is invalid" in load["error"]


def test_a_full_disk_costs_records_and_nothing_else(stub, tmp_path, monkeypatch, caplog):
    import torch
    from support import record_kernels as kernels

    from tprof.record import journal, trace

    x, o = torch.ones(1024), torch.empty(1024)
    with trace(tmp_path / "run"):
        kernels.add[(8,)](x, x, o, 1024, B=128)

        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(journal.os, "write", full)
        for _ in range(10):
            kernels.add[(8,)](x, x, o, 992, B=128)
    monkeypatch.undo()
    assert len(stub.launches) == 11
    assert "No space left on device" in caplog.text
    assert caplog.text.count("process-") <= 2  # once a file
    (path,) = (tmp_path / "run").glob("*.jsonl")
    assert len(rundir.read_process(path).kind("jit")) == 1


def test_an_unwritable_directory_is_a_warning(stub, tmp_path, caplog):
    import torch
    from support import record_kernels as kernels

    from tprof.record import trace

    (tmp_path / "file").write_text("")
    x, o = torch.ones(1024), torch.empty(1024)
    with trace(tmp_path / "file" / "run") as recording:
        kernels.add[(8,)](x, x, o, 1024, B=128)
    assert recording.path is None
    assert "nothing is recorded" in caplog.text
    assert len(stub.launches) == 1


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("describe", "kernel"),
        ("describe", "specialization"),
        ("describe", "arguments"),
        ("describe", "loaded"),
        ("triton_tune", "_candidate"),
        ("triton_tune", "_timings"),
        ("triton_tune", "_result"),
        ("spans", "begin_record"),
        ("triton_compile", "_ensure_launcher"),
    ],
)
def test_a_hook_that_raises_is_switched_off_and_named(module, name, cache, tmp_path, monkeypatch, caplog):
    import importlib

    from support import record_demo, record_kernels

    def broken(*_, **__):
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(importlib.import_module(f"tprof.record.{module}"), name, broken)
    record_kernels.forget(record_kernels.pick)
    driver = record_demo.demo(tmp_path / "run")
    assert len(driver.launches) == 12
    process = rundir.only(tmp_path / "run")
    assert "hook-disabled" in process.notes
    assert len(process.notes) == len({n["message"] for n in process.of("note")})
    assert "ZeroDivisionError: ours" in caplog.text
    assert len(process.of("close")) == 1


def test_trace_in_trace_joins_and_trace_after_trace_begins_anew(stub, tmp_path):
    import torch
    from support import record_kernels as kernels

    from tprof.record import trace

    x, o = torch.ones(1024), torch.empty(1024)

    @trace(tmp_path / "run")
    def launch():
        kernels.add[(8,)](x, x, o, 1024, B=128)

    with trace(tmp_path / "run") as outer, trace(tmp_path / "other") as inner:
        launch()
        assert inner.path == outer.path == tmp_path / "run"
    assert not (tmp_path / "other").exists()
    launch()
    launch()
    runs = rundir.read_run(tmp_path / "run")
    assert [len(p.launches) for p in runs] == [1, 1, 1]
    assert [p.of("shape")[0]["id"] for p in runs] == [1, 1, 1]  # each stem stands for itself
