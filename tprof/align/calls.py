"""What a device API call does, by its name: the one place that knows CUDA's, HIP's and Level Zero's spellings."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from tprof.model import codes, labels

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

LAUNCH, GRAPH, COPY, RECORD, QUERY, DESTROY, SYNC, LOAD, LIBRARY, CAPTURE, ALLOC, INIT, OTHER = range(13)
NOT_A_CALL: Final = -1
ENQUEUES: Final = (LAUNCH, GRAPH, COPY)
BOOKKEEPING: Final = ("overhead", "mark")  # kinds of `host` rows that are no activity of their thread

_RULES: Final = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        ((r"^(cu|cuda|hip)(Ext)?(Module)?Launch(Cooperative)?(Kernel|HostFunc)|^urEnqueueKernelLaunch|^zeCommandListAppendLaunchKernel"
         r"|^hipExtModuleLaunchKernel|^(cuda|hip)Launch|^runFunction"), LAUNCH),
        (r"^(cu|cuda|hip)GraphLaunch", GRAPH),
        (r"^(cu|cuda|hip)(Memcpy|Memset)|^urEnqueue(USM)?(Mem|Fill)", COPY),
        (r"^(cu|cuda|hip)EventRecord", RECORD),
        (r"^(cu|cuda|hip)Event(Query|ElapsedTime)", QUERY),
        (r"^(cu|cuda|hip)EventDestroy", DESTROY),
        (r"^(cu|cuda|hip)(Device|Stream|Event|Ctx)Synchronize|^urQueueFinish|^urEventWait", SYNC),
        (r"^(cu|hip)ModuleLoad", LOAD),
        (r"^(cu|cuda|hip)LibraryLoad", LIBRARY),
        (r"^(cu|cuda|hip)(StreamBeginCapture|StreamEndCapture|GraphInstantiate)", CAPTURE),
        ((r"^(cu|cuda|hip)(Malloc|Free|MemAlloc|Mem(Create|Map|Unmap|Release|Free|AddressReserve)"
          r"|Host(Alloc|Register|Unregister|Free))"), ALLOC),
        (r"^(cuInit|hipInit|cuDevicePrimaryCtxRetain|cuCtxCreate)", INIT),
    )
)  # fmt: skip


@lru_cache(maxsize=4096)
def call_class(name: str) -> int:
    """Class of one API name, e.g. LAUNCH for `cudaLaunchKernelExC`."""
    return next((kind for pattern, kind in _RULES if pattern.search(name)), OTHER)


def call_classes(host: pa.Table) -> np.ndarray:
    """Class of each host row, shape (rows,) int8; NOT_A_CALL where the row is no device API call."""
    code, names = codes(host, "name")
    by_name = np.array([call_class(name) for name in names] or [OTHER], np.int8)
    is_call = is_kind(host, "runtime", "driver")
    return np.where(is_call, by_name[code] if len(code) else by_name[:0], np.int8(NOT_A_CALL))


def is_kind(host: pa.Table, *wanted: str) -> np.ndarray:
    """Whether each row's `kind` is one of those wanted, shape (rows,) bool."""
    return holds(host, "kind", wanted.__contains__)


def holds(data: pa.Table, column: str, test: Callable[[str], bool]) -> np.ndarray:
    """Whether a test holds for each row's label, shape (rows,) bool; for a null it does not."""
    code, values = codes(data, column)
    return np.array([*map(test, values), False], bool)[code]


def constant(rows: int, value: str) -> pa.DictionaryArray:
    """A label column that says one thing."""
    return labels(np.zeros(rows, np.int32), [value])
