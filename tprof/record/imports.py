"""Call back when a module has been imported, so that a library is wrapped only where it is used."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from tprof.record import guard

if TYPE_CHECKING:
    import importlib.machinery

Callback = Callable[[ModuleType], None]


class Watcher:
    """A finder that finds nothing by itself: it lets the others find, and watches the loading of some modules."""

    def __init__(self) -> None:
        self._wanted: dict[str, list[Callback]] = {}
        self._lock = threading.RLock()

    def watch(self, name: str, callback: Callback) -> None:
        """Call `callback(module)` now if the module `name` is there, else when it has been imported."""
        module = sys.modules.get(name)
        if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
            guard.call(f"import:{name}", callback, module)
            return
        with self._lock:
            self._wanted.setdefault(name, []).append(callback)
            if self not in sys.meta_path:
                sys.meta_path.insert(0, self)

    def forget(self, callbacks: Sequence[Callback]) -> None:
        """Call none of `callbacks` any more."""
        with self._lock:
            for name in list(self._wanted):
                self._wanted[name] = [callback for callback in self._wanted[name] if callback not in callbacks]
                if not self._wanted[name]:
                    del self._wanted[name]
            if not self._wanted and self in sys.meta_path:
                sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """What the other finders find; its loader will tell us when it is done."""
        if name not in self._wanted:
            return None
        finders = [finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec")]
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in finders)), None)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            guard.call("imports", self._after, spec.loader)
        return spec

    def _after(self, loader: Any) -> None:
        """Have the loader tell us when it has executed its module; afterwards it is as it was."""
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            loader.__dict__.pop("exec_module", None)
            execute(module)
            self._loaded(module)

        loader.__dict__["exec_module"] = exec_module

    def _loaded(self, module: ModuleType) -> None:
        for callback in self._wanted.get(module.__name__, ()):
            guard.call(f"import:{module.__name__}", callback, module)


watcher: Final = Watcher()
