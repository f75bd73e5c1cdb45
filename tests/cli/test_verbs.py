from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from tprof import __version__

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

VERBS = ["summary", "idle", "cold", "kernels", "requests"]


@pytest.mark.parametrize("verb", VERBS)
def test_table(tprof: Callable, nsight: Path, verb: str) -> None:
    ran = tprof(verb, nsight)
    assert (ran.code, ran.err) == (0, "")
    assert max(map(len, ran.out.splitlines())) <= 80
    assert "\x1b" not in ran.out


@pytest.mark.parametrize("verb", VERBS)
def test_json_is_all_of_stdout(tprof: Callable, small: Path, verb: str) -> None:
    ran = tprof(verb, small, "--format", "json")
    data = json.loads(ran.out)
    assert (ran.code, data["schema_version"]) == (0, 1)
    assert data["sources"][0]["path"] == str(small)


@pytest.mark.parametrize("verb", VERBS)
def test_markdown(tprof: Callable, small: Path, verb: str) -> None:
    ran = tprof(verb, small, "-f", "markdown")
    assert ran.code == 0
    assert ran.out.startswith("# ")


def test_csv_and_another_table(tprof: Callable, nsight: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(tprof("idle", nsight, "-f", "csv", "--table", "gaps", "--top", 3).out)))
    assert len(rows) == 3
    assert rows[0]["gap_ns"] == "10006151746"


def test_the_suffix_says_the_format(tprof: Callable, nsight: Path, tmp_path: Path) -> None:
    for name in ("k.parquet", "k.csv", "k.json", "k.md", "k.txt"):
        ran = tprof("kernels", nsight, "-o", tmp_path / name)
        assert (ran.code, ran.out) == (0, "")
    assert (
        pq.read_table(tmp_path / "k.parquet").num_rows
        == json.loads((tmp_path / "k.json").read_text())["kernels"].__len__()
    )
    assert (tmp_path / "k.csv").read_text().startswith("name,path,origin,purpose,calls,total_ns")
    assert (tmp_path / "k.md").read_text().startswith("# kernels")
    assert "Device time by kernel" in (tmp_path / "k.txt").read_text()


def test_html_beside_the_table(tprof: Callable, small: Path, tmp_path: Path) -> None:
    ran = tprof("summary", small, "--html", tmp_path / "r.html")
    assert ran.code == 0
    assert (tmp_path / "r.html").read_text().startswith("<!DOCTYPE html>")
    assert tprof("summary", small, "--html", tmp_path / "r.html").code == 2
    assert tprof("summary", small, "--html", tmp_path / "r.html", "--force").code == 0


def test_a_window_clips(tprof: Callable, small: Path) -> None:
    window = json.loads(tprof("summary", small, "-f", "json", "--window", "4us:7us").out)["window"]
    assert (window["start_ns"], window["wall_ns"]) == (1_004_000, 3_000)


def test_a_phase_for_a_hand_made_range(tprof: Callable, small: Path) -> None:
    budget = json.loads(tprof("requests", small, "-f", "json", "--phase", "tune*=autotune").out)["requests"][0]
    assert budget["phases"]["autotune"] == 4_000
    assert budget["cold_tax_ns"] == 4_000


def test_requests_by_name(tprof: Callable, small: Path) -> None:
    found = json.loads(tprof("requests", small, "-f", "json", "--range", "tune*").out)["requests"]
    assert [r["name"] for r in found] == ["tune it"]


def test_version(tprof: Callable) -> None:
    assert tprof("version").out == tprof("--version").out == f"tprof {__version__}\n"


def test_help_and_nothing(tprof: Callable) -> None:
    for arguments in ([], ["--help"], ["idle", "-h"]):
        ran = tprof(*arguments)
        assert (ran.code, ran.err) == (0, "")
        assert "Usage" in ran.out


def test_demo(tprof: Callable, tmp_path: Path) -> None:
    ran = tprof("demo")
    assert (ran.code, ran.err) == (0, "")
    for said in (
        "seen by tprof and torch.profiler",
        "Started again",
        "request L=512",
        "rank",
        "Why the device was idle",
        "tprof app",
    ):
        assert said in ran.out
    page = (tmp_path / "tprof-demo.html").read_text()
    assert page.count("<article") == 3
    assert tprof("demo").code == 0  # its own report may be written again
