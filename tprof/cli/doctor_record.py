"""What `tprof doctor` says about recording: what can be recorded on this machine, and why not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tprof.record import nsys, support
from tprof.record.bootstrap import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

Row = dict[str, Any]
_ENOUGH_BYTES: Final = 100 << 20
_ALSO_HOOK: Final = {
    "tritonparse": "it uses Triton's hooks too: tprof chains them",
    "triton-dejavu": "its autotuner replaces Triton's: its candidates are not recorded, its compiles and launches are",
    "triton-runner": "it replaces Triton's launch: kernels that it runs are not recorded",
}


def rows() -> list[Row]:
    """Checks of recording: rows of item, state, value, advice."""
    found = [*_platform(), *_libraries(), *_nsight(nsys.find()), *_gpu(), *_disk(), *_others()]
    return [_verdict(found), *found]


def row(item: str, state: str, value: str | None, advice: str = "") -> Row:
    """One check; its state is ok, missing (it is needed), absent (it is not), or conflict."""
    return {"item": item, "state": state, "value": value, "advice": advice}


def have(item: str, value: str | None, otherwise: str, state: str = "absent") -> Row:
    """Something that is there, or is not: then the advice and another state."""
    return row(item, "ok", value) if value else row(item, state, value, otherwise)


def _verdict(found: list[Row]) -> Row:
    """The first line: what `tprof record` can do here."""
    wrong = {check["item"] for check in found if check["state"] != "ok"}
    if stops := [item for item in ("platform", "triton", "working directory", "TRITON_INTERPRET") if item in wrong]:
        return row(
            "tprof record",
            "conflict",
            None,
            f"see {', '.join(stops)}; a command of another environment brings its own Triton",
        )
    limits = [item for item in ("nsys", "nvtx") if item in wrong]
    advice = f"see {', '.join(limits)} for --nsys" if limits else ""
    return row("tprof record", "ok", f"tprof record {'' if limits else '--nsys '}-o RUN -- COMMAND", advice)


def _platform() -> Iterator[Row]:
    refusal = support.refusal()
    value = "NVIDIA" if refusal is None else "not NVIDIA"
    system = "" if sys.platform == "linux" else "recording is made for Linux"
    yield row("platform", "conflict" if refusal or system else "ok", value, refusal or system)


def _libraries() -> Iterator[Row]:
    """In the environment of this `tprof`; a command of another environment brings its own."""
    triton = support.version("triton")
    old = triton is not None and support.numbers(triton)[:2] < support.OLDEST_TRITON
    yield row(
        "triton", "absent" if triton is None else "conflict" if old else "ok", triton, support.triton_advice(triton)
    )
    yield have("torch", support.version("torch"), "torch.profiler and Inductor cannot be recorded")


def _nsight(profilers: list[nsys.Nsys]) -> Iterator[Row]:
    if not profilers:
        yield row("nsys", "absent", None, f"for --nsys {nsys.GET_IT}")
    for i, found in enumerate(profilers):
        state = "conflict" if found.problem and i == 0 else "ok" if not found.problem else "absent"
        yield row(
            "nsys" if i == 0 else "another nsys", state, f"{found.version} {found.program}".strip(), found.problem
        )
    nvtx, used = support.version("nvtx"), profilers[0].version if profilers else None
    advice = support.nvtx_advice(nvtx, used)
    yield row("nvtx", "absent" if nvtx is None else "conflict" if advice else "ok", nvtx, advice)


def _gpu() -> Iterator[Row]:
    """By nvidia-smi; a kernel needs a GPU to run, not to be compiled."""
    smi = shutil.which("nvidia-smi")
    advice = "kernels can be compiled and recorded on tprof.testing's stub driver"
    if smi is None:
        yield row("GPU", "absent", None, advice)
        return
    query = [smi, "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        said = subprocess.run(query, capture_output=True, text=True, timeout=20, check=False)  # noqa: S603 - of PATH
    except (OSError, subprocess.TimeoutExpired) as error:
        yield row("GPU", "absent", None, f"nvidia-smi does not answer ({error}); {advice}")
        return
    names = [line.strip() for line in said.stdout.splitlines() if line.strip()]
    yield have("GPU", "; ".join(names) if said.returncode == 0 and names else None, advice)


def _disk() -> Iterator[Row]:
    here = Path.cwd()
    free = shutil.disk_usage(here).free
    problem = "" if free > _ENOUGH_BYTES else "little room: name a run directory on another disk with -o"
    if not os.access(here, os.W_OK):
        problem = "not writable: name a run directory elsewhere with -o"
    yield row("working directory", "conflict" if problem else "ok", f"{free >> 20:,} MiB free", problem)


def _others() -> Iterator[Row]:
    """Other tools on the same hooks, and settings that keep a process from being recorded."""
    for name, advice in _ALSO_HOOK.items():
        if version := support.version(name):
            yield row(name, "ok", version, advice)
    if os.environ.get("TRITON_INTERPRET") == "1":
        yield row(
            "TRITON_INTERPRET", "conflict", "1", "kernels run in Python: there is no compile, load or launch to record"
        )
    if outer := os.environ.get(VARIABLE):
        yield row("tprof record", "ok", outer, "this shell runs within a recording already")
