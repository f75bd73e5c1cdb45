"""Which view a table of a result has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tprof.present.batch_views import BATCH_VIEWS
from tprof.present.cold_views import COLD_VIEWS
from tprof.present.columns import View, table
from tprof.present.data_views import DATA_VIEWS
from tprof.present.time_views import TIME_VIEWS

if TYPE_CHECKING:
    from tprof.analyze import Result

VIEWS: Final = TIME_VIEWS | COLD_VIEWS | BATCH_VIEWS | DATA_VIEWS


def view(result: Result, name: str) -> View:
    """How to show a table of a result; one that is not known shows all its columns."""
    keys = dict.fromkeys(key for row in result.tables[name] for key in row)
    return VIEWS.get((result.title, name)) or table(name.replace("_", " "), " | ".join(keys))
