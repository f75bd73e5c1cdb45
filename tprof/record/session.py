"""One recording of one process: its files, its tables, and the thread that writes them."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tprof.record import beacons, clock, guard, rundir, spans, startup, usr1
from tprof.record.journal import Journal, LaunchFile
from tprof.record.nvtx import Ranges
from tprof.record.tables import Tables
from tprof.record.threads import ThreadState, local, registry

if TYPE_CHECKING:
    from collections.abc import Callable

    from tprof.record.settings import Settings

_RANKS = {"rank": "RANK", "local_rank": "LOCAL_RANK", "world_size": "WORLD_SIZE"}

active: Session | None = None  # the recording that hooks write to; None makes every hook pass through


class Session:
    """Files and tables of a recording.

    Args:
        settings: what was asked for.
        directory: an existing run directory; None: there are no files, and only `listen.listeners` hear of anything.
        forked_from: pid of the parent whose recording this one continues.
        worker_of: pid of the process that this one, a compile worker of Inductor, works for.

    Raises:
        OSError: if the files cannot be made.
    """

    def __init__(
        self, settings: Settings, directory: Path | None, forked_from: int | None = None, worker_of: int | None = None
    ) -> None:
        self.settings, self.pid, self.written = settings, os.getpid(), directory is not None
        self.directory = directory or Path(os.devnull)
        self.journal, stem = rundir.claim(directory, Journal, ".jsonl") if directory else (Journal(None), "")
        self.launches = LaunchFile(directory / f"{stem}.launches" if directory else None)
        self.nvtx = Ranges(wanted=settings.nvtx and self.written)
        self.successor: Session | None = None  # in a forked child: the recording that took this one's place
        self.inherited: set[int] = set()  # open ranges of the parent that this one, of its child, goes on with
        self.profiler = sys.modules.get("torch.autograd.profiler")  # looked for again with every beacon
        self.records_launches = self.written  # until the hook of launches fails
        self.search_closer: Callable[[ThreadState], None] | None = None  # set by what opens searches
        self.counts: Counter[str] = Counter()
        self.stem = stem
        self.listener: usr1.Listener | None = None  # answers SIGUSR1
        self.tables = Tables(self)
        self._devices_known = False
        self._writer: threading.Thread | None = None
        self._wake = threading.Event()
        self._drain_lock = threading.RLock()
        if self.written:
            self.journal.add_now(self._process_record(forked_from, worker_of))

    def _process_record(self, forked_from: int | None, worker_of: int | None) -> dict[str, Any]:
        env = os.environ
        ranks = {name: int(env[key]) for name, key in _RANKS.items() if env.get(key, "").isdigit()}
        return {
            "type": "process", "format_version": rundir.FORMAT_VERSION, "pid": self.pid, "ppid": os.getppid(),
            "host": socket.gethostname(), "program": rundir.program(), "launches": f"{self.stem}.launches",
            "forked_from": forked_from, "worker_of": worker_of, "versions": rundir.versions(), **ranks,
            "started_ns": guard.call("startup", startup.started_ns),
            **clock.pair()._asdict(),
        }  # fmt: skip

    # ---- the thread that writes

    def start(self) -> None:
        """Start writing in the background."""
        self._wake.clear()
        self._writer = threading.Thread(target=self._write, name="tprof-writer", daemon=True)
        self._writer.start()

    def stop(self) -> None:
        """Stop writing in the background; what was recorded so far is on disk afterwards."""
        self._wake.set()
        if self._writer is not None and self._writer is not threading.current_thread():
            self._writer.join(timeout=2)
        self._writer = None
        self.flush()

    def _write(self) -> None:
        beat = clock.now()
        while not self._wake.wait(self.settings.interval):
            if guard.call("writer", self.flush) is None:
                self.records_launches = False  # nobody would take them off the threads
            if self.listener is not None:
                guard.call("signal", self.listener.poll)
            if clock.now() - beat >= 1_000_000_000:
                beat = clock.now()
                self.beacon("tick")

    def flush(self) -> bool:
        """Put everything that waits on disk. Returns True."""
        with self._drain_lock:
            t_ns = clock.now()
            for tid, flat in registry.drain():
                self.launches.write(tid, t_ns, flat)
            for tid, name in registry.names():
                self.journal.add({"type": "thread", "tid": tid, "name": name, "t_ns": t_ns})
            self.journal.flush()
        return True

    def beacon(self, when: str) -> None:
        """Say what time it is to the journal, to NVTX and to torch.profiler."""
        self.journal.add(beacons.emit(self.nvtx, when))
        self.profiler = sys.modules.get("torch.autograd.profiler")
        if not self._devices_known and (devices := guard.call("devices", beacons.devices)):
            self._devices_known = True
            self.journal.add({"type": "devices", "devices": devices})

    # ---- what hooks need

    def note(self, code: str, message: str) -> None:
        """Record a warning."""
        self.counts[f"note:{code}"] += 1
        if self.counts[f"note:{code}"] <= 100:
            self.journal.add({"type": "note", "code": code, "message": message, "t_ns": clock.now()})

    def close_launch(self, state: ThreadState) -> None:
        """Close a launch of this thread that was entered and never left: it failed on the way to the driver."""
        key = state.open
        if key is None:
            return
        state.open = None
        if key.attributes is not None:
            self.nvtx.pop()
        if state.marker is not None:
            state.marker.__exit__(None, None, None)
            state.marker = None
        state.launches += (state.t_enter, -1, key.id, state.candidate or state.cold, spans.request_id.get())

    def close_search(self, state: ThreadState) -> None:
        """Close the autotuner's search that this thread has left."""
        if self.search_closer is not None:
            guard.call("autotune:end", self.search_closer, state)

    def close(self) -> None:
        """End the recording: last flush, and how much was written or lost."""
        self.close_launch(local.state)
        if spans.at_search(local.state):
            self.close_search(local.state)
        self.stop()
        if self.listener is not None:
            guard.call("signal", self.listener.close)
        guard.call("startup", startup.write, self)
        launches = self.launches
        lost = {"launches": launches.file.lost, "records": self.journal.file.lost}
        written = launches.rows - launches.file.lost
        self.journal.add_now({"type": "close", **clock.pair()._asdict(), "launches": written, "lost": lost})
        launches.file.close()
        self.journal.file.close()
