"""Runs in every Python process beneath `tprof record`, before the program: waits for Triton, then records.

It imports nothing that is not built in, so that a process that never imports Triton pays well below a millisecond.
Python 3.7 and newer must be able to read it; only 3.11 and newer are recorded.
"""

from __future__ import annotations

import os
import sys
from time import perf_counter_ns as now

TYPE_CHECKING = False  # as of `typing`, which costs more than all of this; so does `pathlib`
if TYPE_CHECKING:
    from typing import Any

HERE = os.path.dirname(__file__)  # noqa: PTH120 - the very text of the entry of sys.path
PACKAGE = os.path.dirname(os.path.dirname(HERE))  # noqa: PTH120 - the folder `tprof`
OLDEST = (3, 11)
LEAST, MOST = 1_000_000, 200  # shorter imports, ns, are not listed; nor are more than so many


class Watcher:
    """On `sys.meta_path`: finds nothing itself, and begins to record right after a module of `wanted` was imported.

    It times those imports, and every other that is made by no module that is being imported, in `imports`: (module,
    begin, end), ns. After the last of `wanted` it goes on for `MOST` of them.

    `tprof.record.imports` has its like. It stands here again because this file must run before tprof can be found, in
    Pythons too old for it, and may import nothing that a process without Triton would pay for.
    """

    def __init__(self, wanted: set[str]) -> None:
        self.wanted = wanted
        self.imports: list[tuple[str, int, int]] = [("", now(), now())]  # without a name: this file runs
        self.within = False  # an import that is timed
        self.left = MOST

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """What the other finders find; Python then runs the module, and after it `_imported`."""
        if name not in self.wanted and (self.within or path is not None):
            return None
        others = [getattr(finder, "find_spec", None) for finder in sys.meta_path if finder is not self]
        found = (find(name, path, target) for find in others if find is not None)
        spec = next((spec for spec in found if spec is not None), None)
        loader = getattr(spec, "loader", None)
        if hasattr(loader, "exec_module") and isinstance(getattr(loader, "__dict__", None), dict):
            self._time(loader, name)
        return spec

    def _time(self, loader: Any, name: str) -> None:
        """Have the loader call us once; afterwards it is as it was."""
        run = loader.exec_module

        def exec_module(module: Any) -> None:
            loader.__dict__.pop("exec_module", None)
            outermost, self.within, start = not self.within, True, now()
            try:
                run(module)
            finally:
                self.within = not outermost
            self._timed(name, start)

        loader.__dict__["exec_module"] = exec_module

    def _timed(self, name: str, start: int) -> None:
        end = now()
        if name in self.wanted or end - start >= LEAST:
            self.imports.append((name, start, end))
            self.left -= 1
        if name in self.wanted:
            self._imported(name)
        elif not self.wanted and not self.left and self in sys.meta_path:
            sys.meta_path.remove(self)

    def _imported(self, name: str) -> None:
        self.wanted.discard(name)
        if name == "triton" or not self.wanted:  # all else only makes the recording begin sooner
            self.wanted.clear()
        autoload = import_tprof("tprof.record.autoload")
        if autoload is not None and autoload.imported(name, self.imports):
            say("refused")


def import_tprof(name: str) -> Any:
    """A module of the recorder: of the tprof that this Python has, else of the one that started the recording.

    Returns:
        The module; None where the name `tprof` belongs to something else here.
    """
    import importlib.util  # noqa: PLC0415 - whoever imports Triton has it

    try:
        spec = importlib.util.find_spec("tprof")
        if spec is None:
            _load_package()
        elif not any(_is_ours(place) for place in spec.submodule_search_locations or ()):
            say("another-tprof")  # PyPI has another project of that name
            return None
        return importlib.import_module(name)
    except (ImportError, ValueError):
        say("broken-tprof")
        return None


def _load_package() -> None:
    """Make `tprof` importable without making anything else of its folder importable."""
    import importlib.util  # noqa: PLC0415 - as above

    file = PACKAGE + "/__init__.py"
    spec = importlib.util.spec_from_file_location("tprof", file, submodule_search_locations=[PACKAGE])
    if spec is not None and spec.loader is not None:
        sys.modules["tprof"] = package = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(package)


def _is_ours(place: str) -> bool:
    return os.path.exists(place + "/record/autoload.py")  # noqa: PTH110 - as above


def say(what: str) -> None:
    """Add a line about this process to the run directory: pid, Python, and `started` or why it cannot be recorded."""
    line = "%d %d.%d %s\n" % (os.getpid(), sys.version_info[0], sys.version_info[1], what)  # noqa: UP031 - see above
    try:
        file = os.open(os.environ["TPROF_RECORD"] + "/started", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(file, line.encode())
        os.close(file)
    except OSError:  # the directory is gone: nothing can be recorded, and the program does not mind
        return


def begin() -> None:
    """Watch for what makes a process worth recording."""
    if "TPROF_RECORD" not in os.environ:
        return
    if sys.version_info < OLDEST:
        say("old-python")
        return
    say("started")
    wanted = {"triton", "tprof.record"}
    if os.environ.get("TPROF_TORCH_PROFILER", "off") != "off":
        wanted.add("torch")
    sys.meta_path.insert(0, Watcher(wanted))


def chain() -> None:
    """Run the `sitecustomize` that Python would have found without us, in our place."""
    places = [place for place in sys.path if place != HERE]
    finder = next(f for f in sys.meta_path if getattr(f, "__name__", "") == "PathFinder")
    spec = finder.find_spec("sitecustomize", places)
    if spec is not None and spec.loader is not None:
        module = type(sys)("sitecustomize")
        module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, spec.origin
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


begin()
chain()
