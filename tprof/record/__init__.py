"""Recording: runs inside the user's process; needs the standard library, and torch, triton and nvtx where present."""

from __future__ import annotations

from tprof.record.api import trace
from tprof.record.guard import RefusedError
from tprof.record.ranges import annotate, ready, request

__all__ = ["RefusedError", "annotate", "ready", "request", "trace"]
