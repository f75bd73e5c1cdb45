"""A fresh start on the stub driver: nothing in memory, an empty disk cache, and the program not ready."""

from __future__ import annotations

import contextlib

from support.record_demo import SHARED
from support.record_kernels import add, forget, pick

from tprof.record import listen
from tprof.testing.stub import stub_driver


@contextlib.contextmanager
def cold_stub(monkeypatch, folder, **options):
    """The stub driver; compiled kernels go to `folder`."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(folder))
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")  # 3.9 warns where it is unset
    monkeypatch.setattr(listen, "ready_ns", 0)
    forget(add)
    forget(pick)
    with stub_driver(max_shared_mem=SHARED, **options) as driver:
        yield driver
