"""`tprof diff`: what changed between two recordings, or two folders of repeats."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tprof.cli import output, question
from tprof.cli.options import Ask, Format
from tprof.errors import DONE, UsageError

if TYPE_CHECKING:
    from tprof.analyze import Attribution, Result


def diff(ask: Ask) -> int:
    """What changed from A to B, each a recording or a folder of repeats: times beyond noise, paths, fusions."""
    if len(ask.sources) != 2:
        raise UsageError(
            f"diff compares two sources, not {len(ask.sources)}; put the repeats of each side into a folder"
        )
    if ask.window:
        raise UsageError("diff compares whole recordings; cut them when they are recorded, or name a --range")
    ask = question.settled(ask)
    result = _of_batches(ask) or _of_recordings(ask)
    if ask.format is Format.TABLE and ask.output is None and not any(result.tables.values()):
        alone = len(result.payload["before"]) + len(result.payload["after"]) == 2
        sys.stdout.write("Nothing differs" + (".\n" if alone else " beyond the noise of the repeats.\n"))
    output.write(ask, result)
    return DONE


def _of_recordings(ask: Ask) -> Result:
    from tprof.analyze import Options  # noqa: PLC0415  keeps `--help` quick
    from tprof.analyze.diff import diff as compare  # noqa: PLC0415  as above

    before, after = (repeats(ask, source) for source in ask.sources)
    return compare(before, after, Options(None, ask.ranges, ask.devices, ask.ranks, ask.top))


def _of_batches(ask: Ask) -> Result | None:
    """Of what two batches hold; None where neither source is a batch."""
    from tprof.batch import Folder, compare, is_batch  # noqa: PLC0415  as above

    batches = [is_batch(source) for source in ask.sources]
    if not any(batches):
        return None
    if not all(batches):
        raise UsageError(f"{ask.sources[batches.index(True)]} is a batch; compare it with another batch")
    before, after = map(Folder, ask.sources)
    return compare.diff(before, after, ask.top)


def repeats(ask: Ask, source: str) -> list[Attribution]:
    """Every recording of one side, each on its own.

    Raises:
        UsageError: there is none.
    """
    from tprof.read import expand  # noqa: PLC0415  as above

    if not (paths := expand([Path(source)])):
        raise UsageError(f"{source}: no trace lies there; name a file or a directory of traces")
    return [question.load_trace(replace(ask, sources=[str(path)])).attribution for path in paths]
