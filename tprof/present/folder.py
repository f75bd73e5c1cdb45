"""A trace and what is said of it as a folder of Parquet or CSV files, with a page that explains every column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from tprof.present import reference, tabular

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tprof.analyze import Result
    from tprof.events import Column


def write(
    folder: Path,
    tables: Mapping[str, tuple[pa.Table, tuple[Column, ...]]],
    results: Mapping[str, tuple[Result, str]],
    *,
    csv: bool,
) -> None:
    """Write one file per table, and `columns.md`.

    Args:
        folder: exists.
        tables: of the trace by file name, each with what its columns mean.
        results: by file name, a result and the name of its table.
        csv: CSV instead of Parquet.
    """
    for name, (data, _) in tables.items():
        if csv:
            pyarrow.csv.write_csv(_texts(data), folder / f"{name}.csv")
        else:
            pq.write_table(data, folder / f"{name}.parquet", compression="zstd")
    for name, (result, table) in results.items():
        if csv:
            (folder / f"{name}.csv").write_text(tabular.csv_text(result, table), encoding="utf-8")
        else:
            (folder / f"{name}.parquet").write_bytes(tabular.parquet_bytes(result, table))
    page = reference.page({name: columns for name, (_, columns) in tables.items()}, results)
    (folder / "columns.md").write_text(page, encoding="utf-8")


def _texts(data: pa.Table) -> pa.Table:
    """With plain columns that CSV can hold: sizes as `x y z`, and no text that a spreadsheet would run."""
    return pa.table({name: _text(data[name]) for name in data.column_names})


def _text(column: pa.ChunkedArray) -> Any:
    kind = column.type
    if pa.types.is_fixed_size_list(kind):
        sizes = pc.cast(column, pa.list_(pa.int32()))
        return pc.binary_join(pc.cast(sizes, pa.list_(pa.string())), " ")
    if pa.types.is_dictionary(kind):
        column = pc.cast(column, pa.string())
    return pc.replace_substring_regex(column, r"^([=+\-@\t\r])", r"'\1") if pa.types.is_string(column.type) else column
