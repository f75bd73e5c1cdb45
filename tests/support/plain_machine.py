"""A pytest plugin: what tprof has as machine code runs as the Python that it is written in, so that coverage sees it.

    NUMBA_DISABLE_JIT=1 coverage run -m pytest -p support.plain_machine tests/read/test_torch_scan.py ...

With that variable numba hands functions back as they are; memory is read by ctypes in place of numba's intrinsics.
"""

from __future__ import annotations

import ctypes
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from tprof import machine
from tprof.read import torch_scan, torch_scan_json

if TYPE_CHECKING:
    from collections.abc import Callable, Container


def signed(value: int) -> int:
    """What an int64 keeps of an integer."""
    return (int(value) + (1 << 63)) % (1 << 64) - (1 << 63)


def byte(p: int) -> int:
    return ctypes.c_uint8.from_address(int(p)).value


def word(p: int) -> int:
    return ctypes.c_int64.from_address(int(p)).value


def store(p: int, value: int) -> None:
    ctypes.c_int64.from_address(int(p)).value = signed(value)


def before(stops: Container[int]) -> Callable[[int], int]:
    """How many of 16 bytes come before the first of `stops`; 16: there is none."""
    return lambda p: next((n for n, c in enumerate(ctypes.string_at(int(p), 16)) if c in stops), 16)


def call(native: machine.Native, **_: object) -> Callable[..., int]:
    """In place of `machine.load`: the function itself, of integers that wrap around."""
    function = getattr(import_module(native.module), native.name)

    def run(first: Any, *args: Any) -> int:
        if getattr(first, "dtype", None) == np.uint8:  # a file's: numpy would keep what becomes of a byte in a byte
            first = first.astype(np.int64)
        with np.errstate(over="ignore"):
            return int(function(first, *args))

    return run


IN_TEXT = {*range(32), *b'"\\'}
for module in (torch_scan, torch_scan_json):
    vars(module).update(byte=byte, word=word)
vars(torch_scan_json).update(
    _store=store,
    _solid=before({*range(256)} - set(b" \n\r\t")),
    special=before(IN_TEXT),
    _not_plain=before({*IN_TEXT, *range(128, 256)}),
)
hashed, count = torch_scan._hash, torch_scan_json._count
vars(torch_scan_json).update(_count=lambda p, so_far: (count(p, so_far)[0], signed(count(p, so_far)[1])))
vars(torch_scan).update(
    _hash=lambda kind, spans: signed(hashed(kind, spans)),  # within, integers may grow
    MASKS=torch_scan_json.MASKS.tolist(),
)
vars(machine).update(load=call)
