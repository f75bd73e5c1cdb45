"""What served a call where several things could: counted here, and named as a range in the recording."""

from __future__ import annotations

from collections import Counter
from typing import Final

# (kernel, bucket or None outside all, choice) -> calls; names are from bounded sets
counts: Final[Counter[tuple[str, str | None, str]]] = Counter()
