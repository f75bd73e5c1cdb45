from __future__ import annotations

import json
from collections import Counter

from support.incident import LENGTHS, incident


def test_one_kernel_has_launches_and_durations(tprof, nsight) -> None:
    ran = tprof("kernels", nsight, "--kernel", "matmul")
    assert ran.code == 0
    assert "Launch configurations" in ran.out
    assert "How long executions take" in ran.out
    said = json.loads(tprof("kernels", nsight, "--kernel", "matmul", "-f", "json").out)
    assert {row["name"] for row in said["kernels"]} == {row["name"] for row in said["launches"]} == {"matmul"}


def test_a_kernel_that_did_not_run_cannot_be_judged(tprof, nsight) -> None:
    ran = tprof("kernels", nsight, "--kernel", "nothing*")
    assert ran.code == 4
    assert "no kernel is named nothing*" in ran.err


def test_autotune(tprof, tmp_path) -> None:
    run = incident(tmp_path / "run")
    ran = tprof("autotune", run)
    assert ran.code == 0
    assert "Why winners won" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80
    assert len(json.loads(tprof("autotune", run, "-f", "json").out)["tunings"]) == len(LENGTHS)


def test_autotune_of_some_kernels(tprof, tmp_path) -> None:
    """Of two runs that differ in the name of their kernel, the searches of one."""
    runs = [incident(tmp_path / "run"), incident(tmp_path / "other")]
    for journal in runs[1].glob("*.jsonl"):
        journal.write_text(journal.read_text().replace("attention", "product"))
    both, one = (json.loads(tprof("autotune", *runs, *more, "-f", "json").out) for more in ([], ["--kernel", "prod*"]))
    assert Counter(row["kernel"] for row in both["tunings"]) == dict.fromkeys(("attention", "product"), len(LENGTHS))
    for table in ("kernels", "tunings", "candidates"):
        assert {row["kernel"] for row in one[table]} == {"product"}
    assert len(one["tunings"]) == len(LENGTHS)
    ran = tprof("autotune", *runs, "--kernel", "nothing*")
    assert ran.code == 4
    assert "no search for a kernel named nothing*" in ran.err


def test_autotune_without_a_search_cannot_be_judged(tprof, small) -> None:
    ran = tprof("autotune", small)
    assert ran.code == 4
    assert "no search of an autotuner" in ran.err


def test_the_waterfall_is_a_table_of_its_own(tprof, nsight) -> None:
    assert "step by step" not in tprof("cold", nsight).out
    assert tprof("cold", nsight, "-f", "csv", "--table", "waterfall").out.startswith("number,role,kernel,config,phase")
