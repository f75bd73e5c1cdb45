"""Large arrays in files instead of memory: what `--low-memory` switches on.

numpy lets a program say where arrays get their memory (NEP 49). Here one of `LARGE_BYTES` or more gets a mapping of a
nameless file in the cache folder. Nothing else changes, so every result stays what it is, but the system can write such
memory out and take it back at any time, which it cannot do with anonymous memory. It costs page faults: see
docs/benchmarks.md.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import tempfile
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tprof.errors import TprofError
from tprof.machine import cache_folder

if TYPE_CHECKING:
    from pathlib import Path

LARGE_BYTES: Final = 1 << 18
_SET_HANDLER: Final = 304  # place of PyDataMem_SetHandler in numpy's table of C functions, fixed since numpy 1.22
_SIZE, _POINTER = ctypes.c_size_t, ctypes.c_void_p


class _Handler(ctypes.Structure):
    """numpy's PyDataMem_Handler."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", _POINTER),
        ("malloc", ctypes.CFUNCTYPE(_POINTER, _POINTER, _SIZE)),
        ("calloc", ctypes.CFUNCTYPE(_POINTER, _POINTER, _SIZE, _SIZE)),
        ("realloc", ctypes.CFUNCTYPE(_POINTER, _POINTER, _POINTER, _SIZE)),
        ("free", ctypes.CFUNCTYPE(None, _POINTER, _POINTER, _SIZE)),
    )


def use() -> None:
    """From here on, large arrays of this thread lie in files.

    Raises:
        TprofError: there is no folder for them that can be written.
    """
    _install(_handler())


@functools.cache
def _handler() -> _Handler:
    folder = cache_folder() / "spill"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        message = f"{folder}: --low-memory needs a folder to write to ({error.strerror}); set TPROF_CACHE_DIR to one"
        raise TprofError(message) from error
    handler = _Handler(b"tprof", 1, None, *_Allocator(folder).functions())
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(handler))  # arrays may outlive everything else
    return handler


def _install(handler: _Handler) -> None:
    api = ctypes.pythonapi
    api.PyCapsule_GetPointer.restype, api.PyCapsule_GetPointer.argtypes = _POINTER, (ctypes.py_object, ctypes.c_char_p)
    api.PyCapsule_New.restype, api.PyCapsule_New.argtypes = ctypes.py_object, (_POINTER, ctypes.c_char_p, _POINTER)
    table = api.PyCapsule_GetPointer(np._core._multiarray_umath._ARRAY_API, None)  # type: ignore[attr-defined]  # noqa: SLF001  the C API has no other door
    place = ctypes.cast(table, ctypes.POINTER(_POINTER))[_SET_HANDLER]
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(place or 0)
    set_handler(api.PyCapsule_New(ctypes.addressof(handler), b"mem_handler", None))


class _Allocator:
    """malloc, calloc, realloc and free as numpy calls them; the first argument is of no use here."""

    def __init__(self, folder: Path) -> None:
        self._libc, self._folder = _libc(), folder
        self._sizes: dict[int, int] = {}  # of the mappings, by address

    def functions(self) -> tuple[Any, ...]:
        kinds: dict[str, Any] = dict(_Handler._fields_)
        return tuple(kinds[name](getattr(self, name)) for name in ("malloc", "calloc", "realloc", "free"))

    def malloc(self, _: object, size: int) -> int | None:
        found = _mapped(self._libc, self._folder, size) if size >= LARGE_BYTES else None
        if found is None:
            return self._libc.malloc(size)
        self._sizes[found] = size
        return found

    def calloc(self, _: object, count: int, each: int) -> int | None:
        if count * each < LARGE_BYTES:
            return self._libc.calloc(count, each)
        found = self.malloc(None, count * each)
        if found and found not in self._sizes:  # no room in the folder
            ctypes.memset(found, 0, count * each)
        return found

    def realloc(self, _: object, old: int | None, size: int) -> int | None:
        if old not in self._sizes and size < LARGE_BYTES:
            return self._libc.realloc(old, size)
        new = self.malloc(None, size)
        if new and old:
            ctypes.memmove(new, old, min(size, self._sizes.get(old) or self._libc.malloc_usable_size(old)))
            self.free(None, old, 0)
        return new

    def free(self, _: object, old: int | None, __: int) -> None:
        size = self._sizes.pop(old or 0, None)
        if size is None:
            self._libc.free(old)
        else:
            self._libc.munmap(old, size)


def _libc() -> Any:
    libc = ctypes.CDLL(None)
    for name, arguments, result in (
        ("malloc", (_SIZE,), _POINTER), ("calloc", (_SIZE, _SIZE), _POINTER), ("realloc", (_POINTER, _SIZE), _POINTER),
        ("free", (_POINTER,), None), ("munmap", (_POINTER, _SIZE), ctypes.c_int),
        ("mmap", (_POINTER, _SIZE, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long), _POINTER),
        ("malloc_usable_size", (_POINTER,), _SIZE),
    ):  # fmt: skip
        getattr(libc, name).argtypes, getattr(libc, name).restype = arguments, result
    return libc


def _mapped(libc: Any, folder: Path, size: int) -> int | None:
    """Address of a new mapping; None where the folder has no room for it."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, size)  # or a full disk would kill the process at the first touch
            found = libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, file.fileno(), 0)
    except OSError:
        return None
    return None if found == _POINTER(-1).value else int(found)
