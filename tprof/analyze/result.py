"""The common shape of every answer: named tables of flat rows, a JSON payload, and what must be said beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from tprof.events import Note
    from tprof.model import Trace

Row = dict[str, Any]


@dataclass(frozen=True)
class Result:
    """An answer.

    Attributes:
        title: what was asked.
        tables: named lists of flat rows; `_ns` columns are nanoseconds, `_share` a fraction, `_bytes` bytes.
        payload: the result as the command line's JSON shows it.
        notes: warnings of the trace.
        sources: what was read, one row per source.
    """

    title: str
    tables: dict[str, list[Row]]
    payload: Row
    notes: tuple[Note, ...] = ()
    sources: list[Row] = field(default_factory=list)

    @property
    def frame(self) -> pd.DataFrame:
        """The first table as a DataFrame with Arrow dtypes."""
        import pandas as pd  # noqa: PLC0415  only notebooks and DataFrame users pay for pandas
        import pyarrow as pa  # noqa: PLC0415

        rows = next(iter(self.tables.values()), [])
        return pa.Table.from_pylist([flat(row) for row in rows]).to_pandas(types_mapper=pd.ArrowDtype)

    def to_dict(self) -> Row:
        """The JSON payload."""
        return self.payload


def flat(row: Row) -> Row:
    """A row without what is nested in it."""
    return {key: value for key, value in row.items() if not isinstance(value, (dict, list))}


def source_rows(trace: Trace) -> list[Row]:
    """Sources as the JSON shows them."""
    return [{k: v for k, v in row.items() if k != "rows_skipped"} for row in trace.sources.to_pylist()]


def weakest(rows: Iterable[Row]) -> str:
    """Basis of what is made of all of these rows: recorded only if each of them is."""
    return "recorded" if all(row["basis"] == "recorded" for row in rows) else "inferred"


def few(names: Iterable[str], most: int = 3) -> str:
    """The first of some names, each once, and how many more there are."""
    found = list(dict.fromkeys(names))
    return ", ".join(found[:most]) + (f" and {len(found) - most} more" if len(found) > most else "")
