"""Device time of one launch in many, by a pair of CUDA events around it; read later, so that nothing waits."""

from __future__ import annotations

import sys
from collections import deque
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tprof.record.threads import ThreadState

MAX_PENDING: Final = 256  # samples whose events the device has not reached; more are not taken


class Samples:
    """Takes every n-th launch of a Triton kernel through Triton's own launcher, tuning and graph capture left out.

    Args:
        every: n.
    """

    def __init__(self, every: int) -> None:
        self._every, self._seen = every, 0
        self._pending: deque[tuple[str, str, Any, Any]] = deque()

    def due(self, state: ThreadState) -> bool:
        """Whether the launch that begins is to be timed."""
        self._seen += 1  # threads may lose a count: every n-th is about every n-th
        return not self._seen % self._every and not state.candidate and len(self._pending) < MAX_PENDING

    def take(self, state: ThreadState, kernel: str, bucket: str) -> None:
        """Put an event before the launch, and see to it that one follows."""
        from triton.runtime import driver  # noqa: PLC0415 - a kernel is being launched

        if _is_capturing():
            return
        event = driver.active.get_device_interface().Event
        start, end = event(enable_timing=True), event(enable_timing=True)
        start.record()

        def launched() -> None:
            end.record()
            self._pending.append((kernel, bucket, start, end))

        state.sample = launched

    def finished(self) -> Iterator[tuple[str, str, float]]:
        """Take (kernel, bucket, seconds) of the samples that the device is done with, oldest first."""
        while self._pending and self._pending[0][3].query():
            kernel, bucket, start, end = self._pending.popleft()
            yield kernel, bucket, start.elapsed_time(end) / 1e3


def _is_capturing() -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_initialized() and bool(torch.cuda.is_current_stream_capturing())
