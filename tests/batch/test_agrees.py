from __future__ import annotations

import json
import resource
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from tprof.analyze import Options
from tprof.batch.folder import Folder
from tprof.batch.paths import find
from tprof.batch.run import run
from tprof.batch.work import TABLES, Task, analyse
from tprof.errors import TprofError
from tprof.facade import load
from tprof.present import tabular

if TYPE_CHECKING:
    from pathlib import Path

    from tprof.analyze import Result


class Silent:
    def done(self, task: Task) -> None: ...

    def look(self) -> None: ...


def batch(sources: list[Path], out: Path) -> tuple[Folder, Result]:
    folder = Folder(out)
    folder.open()
    tasks = [Task(source, str(out), Options(), {}) for source in find(map(str, sources))]
    return folder, run(tasks, folder, lambda ts: map(analyse, ts), Silent())


@pytest.mark.parametrize("part", ["nsight", "torch_real"])
def test_with_the_verbs_of_one_source(cases: Path, tmp_path: Path, part: str) -> None:
    folder, result = batch([cases / part], tmp_path / "out")
    failed = {row["source"]: row["message"] for row in result.payload["failed"]}
    said = {}
    for source in find([str(cases / part)]):
        try:
            trace = load(source.path)
        except TprofError as error:
            said[source.path] = str(error)
            continue
        assert (folder.path / "summary" / f"{source.slug}.json").read_text() == tabular.json_text(
            trace.summary()
        ) + "\n"
        for name, (method, table) in TABLES.items():
            expected = tabular.arrow(getattr(trace, method)(), table).to_pylist()
            file = folder.path / name / f"trace={source.slug}" / "part.parquet"
            found = pq.ParquetFile(file).read().to_pylist() if file.exists() else []
            assert [{k: v for k, v in row.items() if v is not None} for row in found] == [
                {k: v for k, v in row.items() if v is not None} for row in expected
            ]
    assert failed == said


def test_every_table_reads_as_one_data_set(sample_traces: Path, tmp_path: Path) -> None:
    import pandas as pd

    folder, result = batch([sample_traces], tmp_path / "out")
    assert {"kernels", "wall", "shapes", "processes"} <= {*folder.tables()}
    for table in folder.tables():
        rows = pd.read_parquet(folder.path / table, dtype_backend="pyarrow")
        assert len(rows) == folder.read(table).num_rows
    assert json.loads((folder.path / "overall.json").read_text())["results"] == result.payload["results"]


def test_memory_does_not_grow_with_the_number_of_sources(tmp_path: Path) -> None:
    from nsight_files import good, write

    (tmp_path / "exports").mkdir()
    for i in range(200):
        write(tmp_path / "exports" / f"{i}.sqlite", good())
    peaks = []
    folder = Folder(tmp_path / "out")
    folder.open()
    for i, source in enumerate(find([str(tmp_path / "exports")])):
        assert not analyse(Task(source, str(tmp_path / "out"), Options(), {})).message
        peaks += [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss] if i in (20, 199) else []
    assert peaks[1] - peaks[0] < 20 << 10, peaks  # KB
