from __future__ import annotations

import json
import shutil

import pyarrow.parquet as pq
import pytest

from tprof.cli import main
from tprof.errors import DONE, USAGE


@pytest.fixture(scope="module")
def sample(sample_traces):
    return sample_traces / "h200-torch.json.gz"


def test_nothing_differs(sample, capsys):
    assert main(["diff", str(sample), str(sample)]) == DONE
    assert capsys.readouterr().out == "Nothing differs.\n"


def test_folders_are_repeats(sample, tmp_path, capsys):
    for name in ("a/1.json.gz", "a/2.json.gz", "b/1.json.gz"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(sample, tmp_path / name)
    assert main(["diff", str(tmp_path / "a"), str(tmp_path / "b"), "--format", "json"]) == DONE
    said = json.loads(capsys.readouterr().out)
    assert (len(said["before"]), len(said["after"])) == (2, 1)
    assert said["changes"] == said["figures"] == []


def test_two_profilers_are_compared_by_grid(sample, sample_traces, capsys):
    other = sample_traces / "h200-nsight.sqlite.gz"
    assert main(["diff", str(sample), str(other), "--format", "json"]) == DONE
    shapes = {row["shape"] for row in json.loads(capsys.readouterr().out)["kernels"]} - {"", None}
    assert shapes
    assert all(shape.startswith("grid ") for shape in shapes)


def test_usage(sample, tmp_path):
    (tmp_path / "empty").mkdir()
    for asked in ([sample], [sample] * 3, [sample, tmp_path / "empty"], [sample, sample, "--window", "1s:"]):
        assert main(["diff", *map(str, asked)]) == USAGE


@pytest.mark.parametrize("table", ["changes", "figures", "phases", "kernels", "requests", "cold_start"])
def test_parquet(table, sample, sample_traces, tmp_path):
    out = tmp_path / "out.parquet"
    other = sample_traces / "h200-nsight.sqlite.gz"
    assert main(["diff", str(sample), str(other), "--table", table, "-o", str(out)]) == DONE
    assert pq.read_table(out).num_rows
