"""A folder that `tprof record` puts first on PYTHONPATH: Python imports the `sitecustomize` in it as it starts."""

from __future__ import annotations

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).resolve().parent
VARIABLE: Final = "TPROF_RECORD"  # holds the run directory in every process beneath `tprof record`
