"""Starts the processes that judge a kernel, and reads what they found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tprof.accept.compiling import Compiling
from tprof.accept.report import Found, report
from tprof.errors import CANNOT_JUDGE, TprofError
from tprof.facade import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from tprof.analyze import Result


def judge(target: str, *, cpu: bool = False, progress: Callable[[], None] = lambda: None) -> Result:
    """Judge every kernel of a target.

    Args:
        target: `module` (all its SPECS), `module:attribute` or a file, of `KernelSpec`s.
        cpu: do what needs no GPU: numbers in Triton's interpreter, compiling for a stub driver.
        progress: called after each of five steps; of four where `cpu` is set.

    Returns:
        Tables `verdicts`, `parts`, `failures`, `cost`, `variants`, `performance`, `requests`, `made_on`.

    Raises:
        TprofError: torch or triton is not installed, there is no GPU, or a process ended otherwise than it should.
        UsageError: the target is none.
    """
    if missing := [name for name in ("torch", "triton") if find_spec(name) is None]:
        raise TprofError(
            f"{' and '.join(missing)} not installed; run pip install 'triton-tprof[record]'", exit_code=CANNOT_JUDGE
        )
    with TemporaryDirectory(prefix="tprof-accept-") as folder:
        work = _Work(target, Path(folder), "cpu" if cpu else "gpu", progress)
        calls = work.do("cost", "first")  # first of all, for the disk cache must be empty
        work.do("cost", "again")
        cache_bytes = sum(path.stat().st_size for path in (work.folder / "cache").rglob("*") if path.is_file())
        compiling = Compiling(load(work.folder / "first", cache=False), load(work.folder / "again", cache=False))
        progress()
        numbers = work.do("numbers", TRITON_INTERPRET="1" if cpu else "0")
        return report(target, Found(numbers, calls, compiling, cache_bytes, None if cpu else work.do("speed")))


class _Work:
    """What the processes of one target share: a folder with a disk cache that begins empty."""

    def __init__(self, target: str, folder: Path, device: str, progress: Callable[[], None]) -> None:
        self.target, self.folder, self.device, self.progress = target, folder, device, progress

    def do(self, kind: str, run: str = "", **environment: str) -> dict[str, Any]:
        """One kind of work in a process of its own; what it found."""
        out = self.folder / f"{kind}.json"
        command = [sys.executable, "-W", "ignore", "-m", "tprof.accept.worker", f"{kind}-{self.device}", self.target]
        inherited = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
        caches = {"TRITON_CACHE_DIR": str(self.folder / "cache"), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        done = subprocess.run(  # noqa: S603 - this Python, and the target as it was typed
            [*command, str(out), *([str(self.folder / run)] if run else [])],
            env=inherited | caches | environment, capture_output=True, text=True, errors="replace", check=False,
        )  # fmt: skip
        found: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
        if "refused" in found:
            raise TprofError(found["refused"], exit_code=done.returncode)
        if done.returncode or not found:
            last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise TprofError(f"{self.target}: judging its {kind} ended with code {done.returncode}: {last}")
        self.progress()
        return found
