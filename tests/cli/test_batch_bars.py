from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.console import Console

from tprof.analyze import Options
from tprof.batch.paths import Source
from tprof.batch.work import Task
from tprof.cli.batch_bars import Bars

if TYPE_CHECKING:
    from pathlib import Path


def test_all_and_each(tmp_path: Path) -> None:
    tasks = [Task(Source(n, n, 5 << 20, (n, 0, 0)), str(tmp_path), Options(), {}) for n in ("a.json", "b.json")]
    console = Console(file=io.StringIO(), force_terminal=True, width=90)
    (tmp_path / "a.json.progress").write_text("30 60")
    (tmp_path / "b.json.progress").write_text("3")  # half written
    (tmp_path / "old.progress").write_text("1 2")  # of a run that was killed
    with Bars(console, tasks, tmp_path) as bars:
        bars.look()
        bars.done(tasks[1])
        with console.capture() as shown:
            console.print(bars.whole, bars.each)
    text = " ".join(shown.get().split())
    assert "1 of 2 sources" in text
    assert "5.2/10.5 MB" in text
    assert "a.json" in text
    assert "50%" in text
    assert "old" not in text
