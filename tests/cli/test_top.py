"""`tprof top` on journals that are still being written."""

from __future__ import annotations

import json
import os
import pty
import socket
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from support.terminal import read_terminal

from tprof.record import live, live_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SECOND = 1_000_000_000


def journal(folder: Path, *records: dict[str, Any], pid: int | None = None, cut: str = "") -> Path:
    """The journal of a process that began 100 s ago, by default this one; times of records in seconds since then."""
    folder.mkdir(exist_ok=True)
    pid = pid or os.getpid()
    start = time.perf_counter_ns() - 100 * SECOND
    lines = [
        {
            "type": "process",
            "pid": pid,
            "host": socket.gethostname(),
            "program": "serve.py",
            "t_ns": time.perf_counter_ns() if pid == os.getpid() else start,
            "versions": {},
        }
    ]
    lines += [{**r, "t_ns": start + int(r["t_ns"] * SECOND)} if "t_ns" in r else r for r in records]
    path = folder / f"process-{pid}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + cut)
    return path


def begin(
    id_: int, kind: str, name: str, t: float, parent: int = 0, phase: str | None = "compile", **more: Any
) -> dict[str, Any]:
    return {
        "type": "begin",
        "id": id_,
        "parent": parent,
        "kind": kind,
        "phase": phase,
        "name": name,
        "tid": 7,
        "request": more.pop("request", 0),
        "t_ns": t,
        "attrs": more,
    }


def end(id_: int, t: float, *, ok: bool = True, **attrs: Any) -> dict[str, Any]:
    return {"type": "end", "id": id_, "t_ns": t, "ok": ok, "attrs": attrs}


TUNING = (
    begin(1, "request", "generate", 1, phase=None, request_id="r1"),
    begin(2, "jit", "add", 10, request=1),
    begin(3, "stage", "add/cubin", 11, 2),
    end(3, 14),
    end(2, 15, cache_hit=False),
    begin(4, "jit", "add", 20),
    end(4, 21, cache_hit=True),
    begin(5, "autotune", "matmul", 30, phase="autotune", request=1),
    begin(6, "candidate", "matmul", 31, 5, "autotune", text="BM: 32"),
    end(6, 33, timings_ms=None, failed="OutOfResources"),
    begin(7, "candidate", "matmul", 40, 5, "autotune", text="BM: 64", request=1),
    begin(8, "jit", "matmul\x1b[31m", 60, 7, request=1),
    {"type": "thread", "tid": 7, "name": "MainThread"},
)


def test_what_is_going_on(tmp_path: Path) -> None:
    journal(tmp_path / "run", *TUNING, cut='{"type":"end","id":8')
    look = live.Watch(tmp_path / "run").look()
    assert look["done"] == {
        "compiles": 1,
        "disk_hits": 1,
        "loads": 0,
        "searches": 0,
        "candidates": 1,
        "failed": 1,
        "launches": 0,
    }
    assert look["phases_ns"] == {"compile": 6 * SECOND, "autotune": 2 * SECOND}
    (row,) = look["now"]
    assert [s["kind"] for s in row["what"]] == ["autotune", "candidate", "jit"]
    assert 39 < row["for_ns"] / SECOND < 60
    assert 69 < row["since_ns"] / SECOND < 90
    assert (row["request"], row["request_id"], row["thread"], row["phase"]) == (
        "generate",
        "r1",
        "MainThread",
        "compile",
    )


def test_text_says_who_is_at_what_for_how_long(tmp_path: Path, tprof: Callable) -> None:
    journal(tmp_path / "run", *TUNING)
    done = tprof("top", tmp_path / "run")
    head, so_far, now = done.out.splitlines()
    assert (
        head == f"{tmp_path / 'run'}: 1 process, 1 running; 1 compile, 1 disk hit, 1 candidate (1 failed), 0 launches"
    )
    assert so_far == "done so far: compile 6.0 s, autotune 2.0 s"
    assert f"pid {os.getpid()} thread 7 MainThread: " in now
    assert now.endswith(
        "tuning matmul > candidate of matmul [BM: 64] > compiling matmul\ufffd[31m, for request generate r1"
    )


def test_json(tmp_path: Path, tprof: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "FRESH_NS", 0)
    journal(tmp_path / "run", *TUNING)
    said = json.loads(tprof("top", tmp_path / "run", "--format", "json").out)
    assert said["schema_version"] == 1
    assert (said["now"][0]["pid"], said["processes"][0]["state"]) == (os.getpid(), "silent")


def test_only_what_was_added_is_read(tmp_path: Path) -> None:
    path = journal(tmp_path / "run", *TUNING)
    watch = live.Watch(tmp_path / "run")
    assert watch.look()["now"][0]["phase"] == "compile"
    with path.open("a") as file:
        half = json.dumps(
            {"type": "end", "id": 8, "t_ns": time.perf_counter_ns(), "ok": True, "attrs": {"cache_hit": False}}
        )
        file.write(half[:20])
        file.flush()
        assert watch.look()["done"]["compiles"] == 1
        file.write(half[20:] + "\n")
        file.flush()
        look = watch.look()
    assert (look["done"]["compiles"], look["processes"][0]["state"], look["now"][0]["phase"]) == (
        2,
        "running",
        "autotune",
    )


def test_a_terminal_is_refreshed_until_all_have_ended(root: Path, tmp_path: Path) -> None:
    path = journal(tmp_path / "run", *TUNING)
    pid, terminal = pty.fork()
    if not pid:
        line = [sys.executable, "-m", "tprof", "top", str(tmp_path / "run"), "--every", "0.1"]
        os.execve(sys.executable, line, {**os.environ, "PYTHONPATH": str(root), "TERM": "xterm", "COLUMNS": "200"})
    said = b""
    while b"compiling" not in said:
        said += read_terminal(terminal)
    with path.open("a") as file:
        file.write(json.dumps({"type": "close", "t_ns": time.perf_counter_ns()}) + "\n")
    while b"nothing is being compiled" not in said:
        said += read_terminal(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(terminal)


def test_states(tmp_path: Path) -> None:
    gone = 4_194_303  # the largest pid there is
    journal(tmp_path / "run", *TUNING, pid=gone)
    journal(tmp_path / "run", begin(1, "jit", "add", 99), {"type": "close", "t_ns": 100})
    look = live.Watch(tmp_path / "run").look()
    assert {p["pid"]: p["state"] for p in look["processes"]} == {gone: "killed", os.getpid(): "ended"}
    (row,) = look["now"]  # what the killed one was at, up to when it last wrote; a recording that ended is at nothing
    assert (row["pid"], row["state"], row["for_ns"]) == (gone, "killed", 0)
    assert "KILLED IN tuning matmul" in live_text.lines(look)[-1]


def test_a_later_process_of_the_same_pid_is_another(tmp_path: Path) -> None:
    path = journal(tmp_path / "run", *TUNING)
    first, *rest = path.read_text().splitlines()
    earlier = json.dumps({**json.loads(first), "t_ns": 1})
    path.write_text("\n".join([earlier, *rest]) + "\n")
    assert live.Watch(tmp_path / "run").look()["processes"][0]["state"] == "killed"


def test_damaged_lines_are_left_out(tmp_path: Path) -> None:
    path = journal(tmp_path / "run", *TUNING)
    path.write_bytes(
        path.read_bytes()
        + b'[1]\nnull\n{"type": "end", "id": 99, "t_ns": 1}\n{"type": "begin"}\n\xff\n{"type":"end"}\n{"t_ns":"x"}\n'
    )
    assert live.Watch(tmp_path / "run").look()["done"]["compiles"] == 1


def test_a_run_that_was_put_away_gzipped(tmp_path: Path, tprof: Callable, sample_traces: Path) -> None:
    said = json.loads(tprof("top", sample_traces / "ranks", "-f", "json").out)
    cold = json.loads(tprof("summary", sample_traces / "ranks", "-f", "json").out)["cold"]
    assert [row["rank"] for row in said["processes"]] == [0, 1]
    assert (said["done"]["compiles"], said["done"]["disk_hits"]) == (cold["compiles"], cold["disk_hits"])
    assert said["done"]["launches"] > 0
    whole = (sample_traces / "ranks" / "process-787.jsonl.gz").read_bytes()
    (tmp_path / "process-787.jsonl.gz").write_bytes(whole[: len(whole) // 2])  # what of it can be read is told
    assert "1 process, " in tprof("top", tmp_path).out


def test_what_is_no_run(tmp_path: Path, tprof: Callable) -> None:
    assert "does not exist" in tprof("top", tmp_path / "nothing").err
    (tmp_path / "file").write_text("")
    assert "is no run directory" in tprof("top", tmp_path / "file").err
    refused = tprof("top", tmp_path)
    assert (refused.code, refused.out) == (1, "")
    assert "holds no run" in refused.err


@pytest.mark.parametrize(("ns", "text"), [(0, "0 ms"), (999_499_999, "999 ms"), (1_500_000_000, "1.5 s")])
def test_durations(ns: int, text: str) -> None:
    assert live_text.seconds(ns) == text
