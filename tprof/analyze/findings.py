"""What a team should look at first, ranked by cost: each with its figure, its denominator, why, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tprof.events import COLD_PHASES

if TYPE_CHECKING:
    from tprof.analyze.result import Row

_MATTERS = 0.01  # of the window; less is not worth a line
_IDLE_MATTERS = 0.1  # of the device's span
_COLD = {
    "compile": ("kernels were compiled", "compile the served shapes before traffic arrives and keep the disk cache"),
    "cache": ("kernels were looked up on disk", "keep the disk cache on a local disk; a network file system is slow"),
    "launcher_build": (
        "launchers were built by a C compiler",
        "keep the disk cache: a launcher is built once per signature",
    ),
    "module_load": ("kernels were loaded onto the device", "launch each kernel once before traffic arrives"),
    "autotune": (
        "autotuners timed candidates",
        "pin the winners of the hot shapes: tuning runs again in every process",
    ),
    "graph_compile": (
        "a graph compiler ran",
        "compile at start-up, mark changing sizes dynamic, keep the compiler's cache",
    ),
    "graph_capture": ("CUDA graphs were captured", "capture at start-up for the batch sizes that are served"),
    "init": ("contexts and libraries were initialised", "create the context and the library handles at start-up"),
}
_WARM = {
    "host": (
        "the launching thread ran other code",
        "see what it did: a CPU profiler, or ranges around the stages of a request",
    ),
    "framework": ("the launching thread was in operator code", "launch less: fuse, compile, or replay a CUDA graph"),
    "launch": ("launches took their time", "launch less: fuse, or replay a CUDA graph"),
    "sync": (
        "the launching thread waited for a device",
        "remove the synchronization, or enqueue the next work before it",
    ),
    "memory": ("the launching thread allocated or copied", "reuse buffers, and copy from pinned memory asynchronously"),
    "collective": ("the launching thread was in a collective", "compare the ranks: one of them came late"),
    "turnaround": ("kernels followed one another", "fuse short kernels, or replay a CUDA graph"),
    "dependency": ("work waited for other work", "look for events or streams that serialize the device"),
    "graph": ("nodes of a CUDA graph waited for one another", "look at the graph's dependencies"),
}


def findings(devices: list[Row], cold: Row, requests: list[Row], kernels: list[Row], wall_ns: int) -> list[Row]:
    """Ranked findings.

    Args:
        devices: rows of `summary`.
        cold: totals of the cold start.
        requests: request budgets.
        kernels: kernel rows, all purposes.
        wall_ns: length of the window.

    Returns:
        Rows of code, title, cost_ns, share (of `of`), of, kernel, shape_key, why, fix, basis; largest cost first.
    """
    found = [*_phases(cold, wall_ns), *_requests(requests), *_tuning_on_top(kernels, wall_ns)]
    found += [*_idle(devices), *_unattributed(devices)]
    return sorted(found, key=lambda row: -row["cost_ns"])


def _finding(code: str, title: str, cost_ns: int, of: str, of_ns: int, **rest: Any) -> Row:
    head = {"code": code, "title": title, "cost_ns": cost_ns, "share": cost_ns / of_ns if of_ns else 0.0, "of": of}
    return head | {"kernel": None, "shape_key": None, "why": None, "fix": None, "basis": "recorded"} | rest


def _phases(cold: Row, wall_ns: int) -> list[Row]:
    """Cold phases that took more than a hundredth of the window."""
    found = []
    for phase in COLD_PHASES:
        ns = cold[f"{phase}_ns"]
        if ns and ns >= _MATTERS * wall_ns:
            title, fix = _COLD[phase]
            found.append(
                _finding(
                    f"cold-{phase}",
                    title,
                    ns,
                    "window",
                    wall_ns,
                    why=_counted(cold, phase),
                    fix=fix,
                    basis=cold["basis"],
                )
            )
    return found


def _counted(cold: Row, phase: str) -> str | None:
    """How many things a phase was spent on, where that is known."""
    loading = "first compiles or loads (the trace cannot tell them apart)" if cold["compile_includes"] else "compiles"
    what = {"compile": ("compiles", loading), "autotune": ("candidates", "candidates timed")}
    key, noun = (what | {"module_load": ("module_loads", "module loads")}).get(phase, ("", ""))
    return f"{cold[key]} {noun}" if key and cold[key] is not None else None


def _requests(requests: list[Row]) -> list[Row]:
    """Requests that were mostly cold."""
    fix = "compile, tune and load for this shape before the request arrives; `tprof cold` lists the kernels"
    return [
        _finding(
            "cold-request",
            f"{row['name']} was cold",
            row["cold_tax_ns"],
            "request",
            row["wall_ns"],
            why=", ".join(f"{phase} {ns / row['wall_ns']:.0%}" for phase, ns in _cold_parts(row)),
            fix=fix,
            basis=row["basis"],
        )
        for row in requests
        if row["cold_tax_ns"] > row["wall_ns"] / 2
    ]


def _cold_parts(row: Row) -> list[tuple[str, int]]:
    """Cold phases that made up more than a hundredth of a request."""
    return [(p, ns) for p, ns in row["phases"].items() if p in COLD_PHASES and ns > _MATTERS * row["wall_ns"]]


def _tuning_on_top(kernels: list[Row], wall_ns: int) -> list[Row]:
    """The busiest kernel is a benchmark's, not the workload's."""
    if not kernels or kernels[0]["purpose"] != "tuning":
        return []
    tuned = sum(row["total_ns"] for row in kernels if row["purpose"] == "tuning")
    top = kernels[0]
    why = f"the top kernel's {top['calls']} executions are an autotuner's repetitions and flushes, not the workload's"
    fix = "read `tprof kernels` by purpose; pin the winners"
    title = "most device time is tuning, not work"
    return [
        _finding(
            "tuning-tops-kernels",
            title,
            tuned,
            "window",
            wall_ns,
            kernel=top["name"],
            why=why,
            fix=fix,
            basis="inferred",
        )
    ]


def _idle(devices: list[Row]) -> list[Row]:
    """The largest warm cause of idle time on each device."""
    found = []
    for row in devices:
        warm = {phase: ns for phase, ns in row["idle_by_phase"].items() if phase in _WARM}
        if not warm:
            continue
        phase, ns = max(warm.items(), key=lambda item: item[1])
        if ns > _IDLE_MATTERS * row["span_ns"]:
            title, fix = _WARM[phase]
            why = f"device {row['device']} was idle meanwhile, between its first and last event"
            found.append(_finding(f"idle-{phase}", title, ns, "device span", row["span_ns"], why=why, fix=fix))
    return found


def _unattributed(devices: list[Row]) -> list[Row]:
    """Idle time that the trace cannot explain, where it is the larger part."""
    return [
        _finding(
            "unattributed",
            f"idle time of device {row['device']} cannot be explained",
            row["idle_by_phase"]["unattributed"],
            "device idle",
            row["idle_ns"],
            why=f"{row['unlinked']} device events have no recorded launch",
            fix="record the whole run, with host activity, from before the first launch",
            basis="unattributed",
        )
        for row in devices
        if row["idle_by_phase"].get("unattributed", 0) > row["idle_ns"] / 2
    ]
