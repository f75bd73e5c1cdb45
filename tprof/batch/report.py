"""The one report over all sources of a batch, from its folder alone."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from tprof.analyze import Result
from tprof.batch.ranks import duplicate_findings, duplicate_rows, rank_findings, rank_rows
from tprof.errors import SourceError
from tprof.events import SCHEMA_VERSION, Note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tprof.analyze import Row
    from tprof.batch.folder import Folder
    from tprof.batch.work import Outcome

OVERALL: Final = "overall.json"
TOP: Final = 20
_SUMS: Final = {
    "shapes": (
        ("kernel", "shape", "bucket"),
        ("calls", "misses", "request_misses", "candidates", "cold_ns", "compile_ns", "autotune_ns"),
    ),
    "buckets": (
        ("bucket",),
        ("keys", "calls", "misses", "compiles", "disk_hits", "candidates", "cold_ns", "compile_ns", "autotune_ns"),
    ),
}
_TOTALS: Final = ("wall_ns", "busy_ns", "idle_ns", "cold_ns", "requests", "cold_requests")
_WORST: Final = ("trace", "name", "id", "start_ns", "wall_ns", "cold_tax_ns", "cold_exposed_ns", "cause", "basis")


def report(folder: Folder, failed: Sequence[Outcome] = (), top: int | None = None) -> Result:
    """Every source on a line, ranks compared, shapes and buckets over all, and the requests that paid most.

    Args:
        folder: of the batch.
        failed: sources that could not be analysed.
        top: rows of a ranked table.
    """
    most = top or TOP
    records = {slug: record for slug in folder.slugs() if (record := folder.finished(slug))}
    rows = [{"source": record["state"][0], "trace": slug, **record["row"]} for slug, record in records.items()]
    ranks = rank_rows(folder)
    together = Counter(row["job"] for row in ranks)
    duplicates = duplicate_rows(folder, ranks)
    findings = [*rank_findings(ranks), *duplicate_findings(duplicates, ranks)]
    tables = {
        "sources": rows,
        "findings": sorted(findings, key=lambda f: -f["cost_ns"]),
        "ranks": [row for row in ranks if together[row["job"]] > 1],
        "duplicates": duplicates[:most],
        "shapes": _summed(folder, "shapes", most),
        "buckets": _summed(folder, "buckets", None),
        "requests": _worst(folder, most),
    }
    lost = [{"source": o.source.path, "message": o.message, "exit_code": o.exit_code} for o in failed]
    notes = tuple(Note("unreadable-source", o.message, 1, o.source.path) for o in failed)
    sources = [source for record in records.values() for source in record["sources"]]
    compared = tables["ranks"]
    totals = {
        "sources": len(rows), "failed": len(lost),
        "processes": len(compared), "jobs": len({r["job"] for r in compared}),
        **{name: sum(row[name] for row in rows) for name in _TOTALS},
    }  # fmt: skip
    rest = {name: table for name, table in tables.items() if name != "sources"}
    return Result("batch", tables, {"totals": totals, "results": rows, "failed": lost, **rest}, notes, sources)


def saved(folder: Folder) -> Result:
    """The report that a batch wrote when it was done.

    Raises:
        SourceError: it is not done, or the file is of another version or damaged.
    """
    again = "; run the same `tprof batch` again"
    try:
        said = json.loads((folder.path / OVERALL).read_bytes())
        if said.pop("schema_version") != SCHEMA_VERSION:
            raise SourceError(folder.path, f"is a batch of another version of tprof{again}")
        notes, sources = tuple(Note(**note) for note in said.pop("warnings")), said.pop("sources")
        tables = {"sources": said["results"], **{n: rows for n, rows in said.items() if n not in ("results", "totals")}}
    except OSError as error:
        raise SourceError(folder.path, f"is a batch that is not finished{again}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SourceError(folder.path, f"is a batch whose {OVERALL} is damaged{again}") from error
    return Result("batch", tables, said, notes, sources)


def _summed(folder: Folder, table: str, most: int | None) -> list[Row]:
    """Rows of all sources that have the same key as one, the most cold time first; memory grows with the keys only."""
    keys, sums = _SUMS[table]
    names = [*keys, "sources", *sums]
    kinds = [pa.string()] * len(keys) + [pa.int64()] * (len(sums) + 1)
    schema = pa.schema(list(zip(names, kinds, strict=True)))
    whole = schema.empty_table()
    for _, data in folder.parts(table):
        part = data.append_column("sources", pa.array([1] * len(data), pa.int64())).select(names).cast(schema)
        whole = _grouped(pa.concat_tables([whole, _grouped(part, keys, sums, "max")]), keys, sums, "sum")
    order = [("cold_ns", "descending"), ("calls", "descending"), *((key, "ascending") for key in keys)]
    return whole.sort_by(order)[:most].to_pylist() if most else whole.sort_by(order).to_pylist()


def _grouped(data: pa.Table, keys: Sequence[str], sums: Sequence[str], sources: str) -> pa.Table:
    """One row per key; a source counts once for a key, however many rows it has."""
    found = data.group_by(list(keys), use_threads=False).aggregate(
        [("sources", sources), *((name, "sum") for name in sums)]
    )
    return found.select([*keys, f"sources_{sources}", *(f"{name}_sum" for name in sums)]).rename_columns(
        [*keys, "sources", *sums]
    )


def _worst(folder: Folder, most: int) -> list[Row]:
    """Requests of all sources that paid most for cold start, then the longest."""
    worst: list[Row] = []
    for slug, data in folder.parts("requests"):
        order = pc.sort_indices(data, [("cold_tax_ns", "descending"), ("wall_ns", "descending")])[:most]
        worst += [{"trace": slug, **row} for row in data.take(order).to_pylist()]
        worst = sorted(worst, key=lambda r: (-r["cold_tax_ns"], -r["wall_ns"], r["trace"]))[:most]
    return [{name: row.get(name) for name in _WORST} for row in worst]
