"""Cold phases from module-load calls and subprocesses: what an Nsight capture (or a HIP trace) can tell apart.

A load call ends the stretch in which its kernel was compiled or looked up. A ptxas subprocess (posix_spawn, then
waitpid) in the stretch says compile; none says disk cache; a long waitpid without posix_spawn is a C compiler that
builds a launcher.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tprof.align.calls import LOAD
from tprof.align.infer.thread import Cold, FirstUse, Layer, Pair, ThreadView
from tprof.intervals import NONE

QUIET_NS = 1_000_000  # a stretch worth explaining where only the stretch is evidence
C_COMPILER_NS = 20_000_000  # waitpid this long without posix_spawn
PROBE_READ_NS = 15_000_000  # read this long before a short waitpid: `gcc --version` and the like
SPAWN_TO_WAIT_NS = 5_000_000
LOAD_TO_LAUNCH_NS = 50_000_000


@dataclass(frozen=True)
class Subprocesses:
    """Operating-system calls of one thread that start or await another process; arrays have shape (calls,)."""

    start: np.ndarray
    end: np.ndarray
    name: np.ndarray  # of str
    recorded: bool  # whether the capture recorded such calls at all

    def _within(self, low: int, high: int, *names: str) -> np.ndarray:
        return np.flatnonzero((self.start >= low) & (self.end <= high) & np.isin(self.name, names))

    def ptxas(self, low: int, high: int) -> list[Pair]:
        """Spawned tools that were awaited: (begin of the spawn, end of the wait)."""
        found = []
        for i in self._within(low, high, "posix_spawn", "posix_spawnp"):
            wait = self._first_after(int(self.end[i]), "waitpid", "wait4")
            if wait is not None and self.start[wait] < self.end[i] + SPAWN_TO_WAIT_NS:
                found.append((int(self.start[i]), int(self.end[wait])))
        return found

    def c_compilers(self, low: int, high: int) -> list[Pair]:
        """Long waits for a process that was not started by posix_spawn."""
        found = []
        for i in self._within(low, high, "waitpid", "wait4"):
            begin, end = int(self.start[i]), int(self.end[i])
            spawned = (
                np.isin(self.name, ("posix_spawn", "posix_spawnp"))
                & (self.end <= begin)
                & (self.end > begin - SPAWN_TO_WAIT_NS)
            )
            if end - begin >= C_COMPILER_NS and not spawned.any():
                found.append((begin, end))
        return found

    def probes(self, low: int, high: int) -> list[Pair]:
        """Tools that were only asked for something: a pipe, a long read, a short wait."""
        found = []
        for i in self._within(low, high, "pipe2"):
            read, wait = (self._first_after(int(self.end[i]), *names) for names in (("read",), ("waitpid", "wait4")))
            if read is None or wait is None or self.start[read] >= self.end[i] + SPAWN_TO_WAIT_NS:
                continue
            if self.end[read] - self.start[read] < PROBE_READ_NS:
                continue
            if self.end[wait] - self.start[wait] < QUIET_NS and self.start[wait] - self.end[read] < 10 * QUIET_NS:
                found.append((int(self.start[i]), int(self.end[wait])))
        return found

    def _first_after(self, instant: int, *names: str) -> int | None:
        found = np.flatnonzero((self.start >= instant) & np.isin(self.name, names))
        return int(found[0]) if len(found) else None


def load_layers(view: ThreadView, host_name: np.ndarray, init_calls: np.ndarray, os: Subprocesses, cold: Cold) -> None:
    """Layers, first uses and graph-compile segments that the module loads of a thread show.

    Args:
        view: the thread's calls and benchmarks.
        host_name: API name of each token, shape (tokens,) of str.
        init_calls: begin of every library-initialisation call on the thread, sorted.
        os: the thread's subprocess calls.
        cold: takes what is found.
    """
    for j in np.flatnonzero(view.tokens.kind == LOAD).tolist():
        launch = view.next(view.triton, j + 1)
        from_file = host_name[j] == "cuModuleLoad"  # Inductor's static launcher
        graph = from_file or (launch is not None and bool(view.inductor[launch]))
        if graph:
            launch = view.next(view.inductor, j + 1)
        low = view.stretch_start(j, int(view.tokens.start[j]), graph=graph)
        make = _graph_load if graph else _kernel_load
        new, hit = make(view, j, launch, low, os)
        cold.layers += new
        if graph:
            cold.segments.append((low, int(view.tokens.start[j])))
            cold.layers += _library_init(view, j, init_calls)
        candidate = int(view.member[launch]) if launch is not None else NONE
        cold.uses.append(FirstUse(low, _usable(view, j, launch), view.kernel(launch), graph, hit, 1, candidate))


def _usable(view: ThreadView, load: int, launch: int | None) -> int:
    """When the kernel could be launched: its first launch if that follows the load closely, else the load's end."""
    end = int(view.tokens.end[load])
    close = launch is not None and view.tokens.start[launch] - end < LOAD_TO_LAUNCH_NS
    return int(view.tokens.start[launch]) if close else end


def _kernel_load(
    view: ThreadView, load: int, launch: int | None, low: int, os: Subprocesses
) -> tuple[list[Layer], bool | None]:
    """The stretch before one kernel's load: compile or disk lookup, launcher build, tool probes, then the load."""
    at, kernel = int(view.tokens.start[load]), view.kernel(launch)
    spawned, built = os.ptxas(low, at), os.c_compilers(low, at)
    compiled = bool(spawned) or not os.recorded
    evidence = "ptxas ran" if spawned else "no ptxas ran" if os.recorded else "stretch before a module load"
    layers = [Layer(low, at, "compile" if compiled else "cache", evidence, kernel)]
    done = spawned[-1][1] if spawned else None
    for begin, end in built:
        layers.append(
            Layer(done if done and begin > done else begin, end, "launcher_build", "C compiler awaited", kernel)
        )
    if built and done and built[-1][0] > done:
        layers.append(Layer(built[-1][1], at, "module_load", "after the launcher's build", kernel))
    layers += [Layer(*pair, "init", "tool probe", kernel) for pair in os.probes(low, at)]
    layers.append(Layer(at, _usable(view, load, launch), "module_load", "module load call", kernel))
    return layers, None if not os.recorded else not compiled


def _graph_load(
    view: ThreadView, load: int, launch: int | None, low: int, os: Subprocesses
) -> tuple[list[Layer], bool | None]:
    """The stretch before a load of a generated kernel: the graph compiler, with the tools it awaited on top."""
    at, kernel = int(view.tokens.start[load]), view.kernel(launch)
    spawned = os.ptxas(low, at)
    layers = [Layer(low, at, "graph_compile", "stretch before a generated kernel's load")]
    layers += [Layer(*pair, "compile", "ptxas ran", kernel) for pair in spawned]
    layers += [Layer(*pair, "launcher_build", "C compiler awaited", kernel) for pair in os.c_compilers(low, at)]
    layers.append(Layer(at, int(view.tokens.end[load]), "module_load", "module load call", kernel))
    return layers, None if not os.recorded else not spawned


def _library_init(view: ThreadView, load: int, init_calls: np.ndarray) -> list[Layer]:
    """What happened between a generated kernel's load and the first launch of its graph."""
    first = view.next(view.launches & (view.member == NONE), load + 1)
    if first is None:
        return []
    begin, end = int(view.tokens.end[load]), int(view.tokens.start[first])
    calls = init_calls[(init_calls >= begin) & (init_calls < end)]
    if len(calls):
        at = int(calls[0])
        return [
            Layer(begin, at, "graph_compile", "between module load and first call"),
            Layer(at, end, "init", "library initialisation"),
        ]
    if end - begin > QUIET_NS:
        return [Layer(begin, end, "graph_compile", "between module load and first call")]
    return []
