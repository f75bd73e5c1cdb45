from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from batch.test_killed import content

from tprof.batch.paths import find
from tprof.batch.work import TABLES
from tprof.errors import TprofError
from tprof.facade import load
from tprof.present import tabular

if TYPE_CHECKING:
    from batch.conftest import Whole

# In a process of its own, for what other tests took would hide it; `ru_maxrss` would be that of the parent.
PEAKS = """
import sys
from pathlib import Path
from support.batched import tasks
from tprof.batch.folder import Folder
from tprof.batch.work import analyse
Folder(sys.argv[2]).open()
for i, task in enumerate(tasks(sys.argv[1:2], sys.argv[2])):
    assert not analyse(task).message
    if i in (20, 199):
        print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
"""


@pytest.mark.parametrize("part", ["nsight", "torch_real", "samples"])
def test_with_the_verbs_of_one_source(whole: Whole, part: str) -> None:
    folder, sources, said = whole.folder, find([str(whole.sources[part])]), {}
    assert len(sources) > 8
    for source in sources:
        try:
            trace = load(source.path)
        except TprofError as error:
            said[source.path] = str(error)
            continue
        summary = folder.path / "summary" / f"{source.slug}.json"
        assert summary.read_text() == tabular.json_text(trace.summary()) + "\n"
        for name, (method, table) in TABLES.items():
            expected = tabular.arrow(getattr(trace, method)(), table).to_pylist()
            found = folder.part(name, source.slug)
            assert [
                {k: v for k, v in row.items() if v is not None} for row in (found.to_pylist() if found else [])
            ] == [{k: v for k, v in row.items() if v is not None} for row in expected]
    paths = {source.path for source in sources}
    failed = {row["source"]: row["message"] for row in whole.result.payload["failed"]}
    assert {path: message for path, message in failed.items() if path in paths} == said


def test_on_several_processes_it_is_the_same_byte_for_byte(whole: Whole, tmp_path: Path) -> None:
    run = [sys.executable, "-m", "tprof", "batch", *map(str, whole.sources.values()), "-o", str(tmp_path / "out")]
    subprocess.run([*run, "-j", "2"], check=True, capture_output=True)
    assert content(tmp_path / "out") == content(whole.folder.path)


def test_every_table_reads_as_one_data_set(whole: Whole) -> None:
    import pandas as pd

    folder = whole.folder
    assert {"kernels", "wall", "shapes", "processes"} <= {*folder.tables()}
    for table in folder.tables():
        rows = pd.read_parquet(folder.path / table, dtype_backend="pyarrow")
        assert len(rows) == sum(pq.ParquetFile(p).metadata.num_rows for p in folder.path.glob(f"{table}/*/*.parquet"))
    assert json.loads((folder.path / "overall.json").read_text())["results"] == whole.result.payload["results"]


def test_memory_does_not_grow_with_the_number_of_sources(tmp_path: Path) -> None:
    from nsight_files import good, write

    (tmp_path / "exports").mkdir()
    for i in range(200):
        write(tmp_path / "exports" / f"{i}.sqlite", good())
    run = [sys.executable, "-c", PEAKS, str(tmp_path / "exports"), str(tmp_path / "out")]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(run, check=True, capture_output=True, text=True, env=environment)
    after_20, after_200 = map(int, done.stdout.split())
    assert after_200 - after_20 < 20 << 10  # KB
