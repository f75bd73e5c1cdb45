from __future__ import annotations

import json

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
    run = incident(tmp_path / "run")
    all_of_it = json.loads(tprof("autotune", run, "-f", "json").out)
    (name,) = {row["kernel"] for row in all_of_it["tunings"]}
    said = json.loads(tprof("autotune", run, "--kernel", f"{name[:2]}*", "-f", "json").out)
    assert {table: said[table] for table in ("tunings", "candidates", "kernels")} == {
        table: all_of_it[table] for table in ("tunings", "candidates", "kernels")
    }
    ran = tprof("autotune", run, "--kernel", "nothing*")
    assert ran.code == 4
    assert "no search for a kernel named nothing*" in ran.err


def test_autotune_without_a_search_cannot_be_judged(tprof, small) -> None:
    ran = tprof("autotune", small)
    assert ran.code == 4
    assert "no search of an autotuner" in ran.err


def test_the_waterfall_is_a_table_of_its_own(tprof, nsight) -> None:
    assert "step by step" not in tprof("cold", nsight).out
    assert tprof("cold", nsight, "-f", "csv", "--table", "waterfall").out.startswith("number,role,kernel,config,phase")
