"""`tprof version`."""

from __future__ import annotations

import sys

from tprof import __version__
from tprof.errors import DONE


def version() -> int:
    """Print the version."""
    sys.stdout.write(f"tprof {__version__}\n")
    return DONE
