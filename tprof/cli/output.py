"""Where a result goes: stdout or a file, in one of the formats; warnings of a table go to stderr."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from tprof.cli.options import Ask, Format
from tprof.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from tprof.analyze import Result

_SUFFIXES = {
    ".json": Format.JSON,
    ".csv": Format.CSV,
    ".parquet": Format.PARQUET,
    ".md": Format.MARKDOWN,
    ".txt": Format.TABLE,
}


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
    if ask.format is Format.PARQUET:
        _write_parquet(ask, result)
    elif ask.output is not None:
        ask.output.write_text(_text(ask, result), encoding="utf-8", errors="backslashreplace")
    elif ask.format is Format.TABLE:
        _print(ask, result)
    else:
        sys.stdout.write(_text(ask, result))
    sys.stdout.flush()
    if ask.format not in {Format.JSON, Format.MARKDOWN} and result.notes:
        _warn(result)


def page(ask: Ask, result: Result, *left_out: str) -> Result:
    """The result without tables for which a page has no room; files of one table, and JSON, keep all."""
    if ask.format not in {Format.TABLE, Format.MARKDOWN}:
        return result
    return replace(result, tables={k: v for k, v in result.tables.items() if k not in left_out})


def _print(ask: Ask, result: Result) -> None:
    from tprof.present import text  # noqa: PLC0415  keeps `--help` quick

    text.show(result, text.console(), every_row=ask.top is not None)


def _text(ask: Ask, result: Result) -> str:
    from tprof.present import markdown, tabular, text  # noqa: PLC0415  as above

    if ask.format is Format.JSON:
        return tabular.json_text(result) + "\n"
    if ask.format is Format.CSV:
        return tabular.csv_text(result, ask.table)
    if ask.format is Format.MARKDOWN:
        return markdown.render(result)
    return text.plain(result, every_row=ask.top is not None)


def _write_parquet(ask: Ask, result: Result) -> None:
    from tprof.present.tabular import parquet_bytes  # noqa: PLC0415  as above

    data = parquet_bytes(result, ask.table)
    if ask.output is not None:
        ask.output.write_bytes(data)
    else:
        sys.stdout.buffer.write(data)


def _warn(result: Result) -> None:
    from tprof.present import text  # noqa: PLC0415  as above

    text.console(sys.stderr).print(text.warnings(result.notes))
