"""What served a call where several things could: counted here, and named as a range in the recording."""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import Final

from tprof.record import session as live
from tprof.record.ranges import annotate

# (kernel, bucket or None outside all, choice) -> calls; names are from bounded sets
counts: Final[Counter[tuple[str, str | None, str]]] = Counter()


def decided(kernel: str, bucket: str | None, choice: str) -> contextlib.AbstractContextManager[object]:
    """Count a decision; within the block that is returned, the call is served.

    A recording shows the first call of each decision as a range, and every call that no bucket holds.
    """
    counts[kernel, bucket, choice] += 1
    if live.active is None or (bucket is not None and counts[kernel, bucket, choice] > 1):
        return contextlib.nullcontext()
    return annotate(f"{kernel}/{bucket or 'other'}: {choice}")
