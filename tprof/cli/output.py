"""Where a result goes: stdout or a file, in one of the formats; warnings of a table go to stderr."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from tprof import __version__
from tprof.cli.options import Ask, Format
from tprof.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tprof.analyze import Options, Result
    from tprof.facade import Trace

_SUFFIXES = {
    ".json": Format.JSON,
    ".csv": Format.CSV,
    ".parquet": Format.PARQUET,
    ".md": Format.MARKDOWN,
    ".txt": Format.TABLE,
}
_UNWRITABLE = "backslashreplace"  # half of a surrogate pair, in a name


def format_of(path: Path | None) -> Format | None:
    """The format that a file's name asks for, if any."""
    return _SUFFIXES.get(path.suffix.lower()) if path else None


def check(ask: Ask, *more: Path | None) -> None:
    """Refuse before the work is done what would fail after it.

    Raises:
        UsageError: a file exists and may not be overwritten, has no folder, or Parquet would go to a terminal.
    """
    for path in (ask.output, *more):
        if path is None:
            continue
        if path.is_dir():
            raise UsageError(f"{path} is a directory; name a file")
        if path.exists() and not ask.force:
            raise UsageError(f"{path} exists; give --force to overwrite it")
        if not path.absolute().parent.is_dir():
            raise UsageError(f"{path}: the folder {path.parent} does not exist; create it first")
    if ask.format is Format.PARQUET and ask.output is None and sys.stdout.isatty():
        raise UsageError("Parquet is binary: name a file with -o, or send stdout somewhere")


def write(ask: Ask, result: Result) -> None:
    """Write a result as asked, and its warnings to stderr where the format does not carry them."""
    from tprof.present import tabular, text  # noqa: PLC0415  keeps `--help` quick

    if ask.format is Format.TABLE and ask.output is None:
        text.show(result, text.console(), every_row=ask.top is not None)
    elif ask.format is not Format.PARQUET and ask.output is None:
        sys.stdout.write(_text(ask, result))
    else:
        parquet = ask.format is Format.PARQUET
        data = tabular.parquet_bytes(result, ask.table) if parquet else _text(ask, result).encode(errors=_UNWRITABLE)
        _ = ask.output.write_bytes(data) if ask.output else sys.stdout.buffer.write(data)
    sys.stdout.flush()
    if ask.format not in {Format.JSON, Format.MARKDOWN} and result.notes:
        text.console(sys.stderr).print(text.warnings(result.notes))


def page(ask: Ask, result: Result, *left_out: str) -> Result:
    """The result without tables for which a page has no room; files of one table, and JSON, keep all."""
    if ask.format not in {Format.TABLE, Format.MARKDOWN}:
        return result
    return replace(result, tables={k: v for k, v in result.tables.items() if k not in left_out})


def _text(ask: Ask, result: Result) -> str:
    from tprof.present import markdown, tabular, text  # noqa: PLC0415  as above

    if ask.format is Format.JSON:
        return tabular.json_text(result) + "\n"
    if ask.format is Format.CSV:
        return tabular.csv_text(result, ask.table)
    if ask.format is Format.MARKDOWN:
        return markdown.render(result)
    return text.plain(result, every_row=ask.top is not None)


def write_report(traces: Mapping[str, Trace], path: Path, options: Options | None = None) -> None:
    """Write a report with one chapter per trace.

    Args:
        traces: by the chapter's title; an empty title shows none.
        path: where to; overwritten.
        options: of the analyses.
    """
    from tprof.present.html import Chapter, report  # noqa: PLC0415  as above

    chapters = [
        Chapter(title, trace.summary(options), trace.idle(options), trace.cold(options), trace.kernels(options))
        for title, trace in traces.items()
    ]
    path.write_text(report(chapters, __version__), encoding="utf-8", errors=_UNWRITABLE)
