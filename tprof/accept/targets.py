"""Which kernels are meant: `module`, `module:attribute` or a file, and the specs in it."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tprof.errors import UsageError
from tprof.kernelspec import KernelSpec

if TYPE_CHECKING:
    from types import ModuleType


def find_specs(target: str) -> list[KernelSpec]:
    """The specs that a target names: its attribute, else the module's `SPECS`.

    Args:
        target: `tprof_kernels.softmax`, `my.module:SPEC`, `kernels.py` or `kernels.py:SPEC`.

    Raises:
        UsageError: there is no such module, or no spec in it.
    """
    place, _, attribute = target.partition(":")
    module = _module(place)
    found = getattr(module, attribute or "SPECS", None)
    specs = [found] if isinstance(found, KernelSpec) else list(found) if isinstance(found, Iterable) else []
    if not specs or not all(isinstance(spec, KernelSpec) for spec in specs):
        raise UsageError(
            f"{place} has no {attribute or 'SPECS'} of KernelSpec; declare one as docs/accept.md shows, or name it: "
            f"{place}:NAME"
        )
    return specs


def _module(place: str) -> ModuleType:
    if place.endswith(".py"):
        return _file(Path(place))
    if "" not in sys.path:
        sys.path.insert(0, "")  # a script's path begins with its own folder, not with where it was started
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        raise UsageError(f"{place}: {error}; give a module that Python finds from here, or a file") from error


def _file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"{path} is no file; give a file or a module with KernelSpecs")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} cannot be imported as Python; give a .py file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.parent.absolute()))
    spec.loader.exec_module(module)
    return module
