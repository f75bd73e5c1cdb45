from __future__ import annotations

import csv
import gzip
import json

import pyarrow.parquet as pq
import pytest

from tprof.cli import main
from tprof.errors import DONE, USAGE
from tprof.events import TABLES


@pytest.fixture(scope="session")
def sample(sample_traces):
    return str(sample_traces / "h200-torch.json.gz")


@pytest.mark.parametrize("name", ["a.json", "a.json.gz", "a.speedscope.json"])
def test_kind_is_taken_from_the_name(sample, tmp_path, name):
    out = tmp_path / name
    assert main(["export", sample, "-o", str(out)]) == DONE
    data = out.read_bytes()
    said = json.loads(gzip.decompress(data) if name.endswith("gz") else data)
    assert ("profiles" in said) == (".speedscope" in name)
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_perfetto_gives_the_same_summary(sample, tmp_path, capsys):
    out = tmp_path / "a.json"
    main(["export", sample, "-o", str(out)])
    capsys.readouterr()
    found = []
    for path in (sample, str(out)):
        assert main(["summary", path, "--format", "json"]) == DONE
        said = json.loads(capsys.readouterr().out)
        requests = [{k: v for k, v in r.items() if k != "start_ns"} for r in said["requests"]]
        found.append((said["window"]["wall_ns"], said["devices"], said["cold"], requests))
    assert found[0] == found[1]


def test_parquet_folder_explains_every_column(sample, tmp_path):
    out = tmp_path / "tables"
    assert main(["export", sample, "--to", "parquet", "-o", str(out)]) == DONE
    page = (out / "columns.md").read_text()
    sections = {s.split("\n", 1)[0]: s for s in page.split("\n## ")[1:]}
    files = {p.stem for p in out.glob("*.parquet")}
    assert files == set(sections)
    assert set(TABLES) | {"thread_phases", "device_phases", "kernels", "wall", "summary_devices"} <= files
    for name in files:
        for column in pq.read_schema(out / f"{name}.parquet").names:
            row = next(line for line in sections[name].splitlines() if line.startswith(f"| {column} |"))
            cells = [cell.strip() for cell in row.strip("|").split("|")]
            meaning = (
                cells[3]
                if name in TABLES or (name.endswith("_phases") and len(cells) == 4 and "unit" not in sections[name])
                else cells[1]
            )
            assert meaning, (name, column)
            if "| of |" in sections[name]:
                assert (cells[2] == "ns") == column.endswith("_ns")
                assert bool(cells[3]) == column.endswith("share")


def test_csv_folder_holds_what_parquet_holds(sample, tmp_path):
    out = tmp_path / "tables"
    assert main(["export", sample, "--to", "csv", "-o", str(out)]) == DONE
    with (out / "device.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert (rows[0]["grid"], rows[0]["stream"], rows[0]["purpose"]) == ("1056 1 1", "7", "work")


def test_what_exists_is_kept(sample, tmp_path):
    for name in ("a.json", "b.html"):
        (tmp_path / name).write_text("mine")
        assert main(["export", sample, "-o", str(tmp_path / name)]) == USAGE
        assert (tmp_path / name).read_text() == "mine"
    folder = tmp_path / "d"
    folder.mkdir()
    (folder / "x").write_text("mine")
    assert main(["export", sample, "-o", str(folder)]) == USAGE


def test_html_report_loads_nothing(sample, tmp_path):
    out = tmp_path / "r.html"
    assert main(["export", sample, "-o", str(out)]) == DONE
    page = out.read_text()
    assert "default-src 'none'" in page
    assert "<script" not in page
