"""`tprof cache`: what was kept of large traces, so that they open at once the next time."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import typer

from tprof.cli import output, question
from tprof.cli.options import Ask, Force, OutFormat, Output
from tprof.errors import DONE

program = typer.Typer(name="cache", help="Traces that were read before, kept so that they open at once.")


@program.command("ls")
def show(format_: OutFormat = None, output_file: Output = None, force: Force = False) -> int:
    """What is kept of which source, its size, and when it was last used."""
    from tprof.analyze import Result  # noqa: PLC0415  keeps `--help` quick
    from tprof.read import cache  # noqa: PLC0415  as above

    ask = question.settled(Ask(format=format_, output=output_file, force=force))
    output.check(ask)
    found = cache.entries()
    rows = [
        {"source": e.source or None, "kept_bytes": e.size, "used_utc": _moment(e.used_ns), "file": str(e.file)}
        for e in found
    ]
    kept = sum(entry.size for entry in found)
    total = {"folder": str(cache.folder()), "kept_bytes": kept, "limit_bytes": cache.limit()}
    output.write(ask, Result("cache", {"entries": rows, "total": [total]}, {**total, "entries": rows}))
    return DONE


@program.command()
def clear() -> int:
    """Remove everything that is kept; the sources are not touched."""
    from tprof.present.units import size  # noqa: PLC0415  keeps `--help` quick
    from tprof.read import cache  # noqa: PLC0415  as above

    count, freed = cache.clear()
    sys.stdout.write(f"removed {count} kept trace{'' if count == 1 else 's'}, {size(freed)}\n")
    return DONE


def _moment(ns: int) -> str:
    return datetime.fromtimestamp(ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S")
