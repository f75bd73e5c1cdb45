from __future__ import annotations

import json
from typing import TYPE_CHECKING

from support.runs import Writer, run_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MS = 1_000_000


def recording(folder: Path) -> Path:
    """A kernel that is compiled once and called three times, and one that is called once."""
    w = Writer()
    w.lines[0]["versions"]["triton"] = "3.9.0"
    for number, (name, calls) in enumerate((("mm", 3), ("rare", 1)), 1):
        jit = w.begin("jit", "compile", name, number * 1000 * MS)
        arguments = [{"name": "x", "type": "*fp32", "hints": ["tt.divisibility=16"]}, {"name": "n", "type": "i32"}]
        said = {"function": f"model.{name}", "key": "[]{'num_warps': 4, 'debug': False}", "arguments": arguments}
        w.lines.append({"type": "specialization", "id": number, "span": jit, **said})
        w.kernel(number, name)
        w.lines[-1] |= {"target": {"backend": "cuda", "arch": 90}, "key_parts": {"source": "abc"}}
        w.end(jit, (number * 1000 + 500) * MS, cache_hit=False, kernel=number)
        w.shape(number, number, number * 1000 * MS, n=1024)
        for call in range(calls):
            begin = (number * 1000 + 600 + call) * MS
            w.launch(begin, begin + 1000, number)
    run_json(folder)
    return w.write(folder)


def test_a_plan_to_stdout_or_to_a_file_with_what_is_in_it(tprof: Callable, tmp_path: Path) -> None:
    run = recording(tmp_path / "run")
    ran = tprof("plan", run)
    assert (ran.code, ran.err) == (0, "")
    said = json.loads(ran.out)
    [kernel] = said["kernels"]
    assert (kernel["function"], kernel["target"], kernel["triton"]) == ("model.mm", "cuda:90", "3.9.0")
    assert kernel["specializations"][0]["options"] == [["num_warps", 4], ["debug", False]]
    assert said["left_out"] == {"generic": 1}
    shown = tprof("plan", run, "-o", tmp_path / "plan.json")
    assert json.loads((tmp_path / "plan.json").read_text()) == said
    assert "model.mm" in shown.out
    assert "500 ms" in shown.out
    assert "called too rarely" in shown.out


def test_budgets(tprof: Callable, tmp_path: Path) -> None:
    ran = tprof("plan", recording(tmp_path / "run"), "--max-seconds", "0.1")
    assert json.loads(ran.out)["left_out"] == {"generic": 1, "over-budget": 1}
    assert ran.code == 4


def test_a_plan_is_not_overwritten(tprof: Callable, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("mine")
    ran = tprof("plan", recording(tmp_path / "run"), "-o", tmp_path / "plan.json")
    assert ran.code == 2
    assert "--force" in ran.err
    assert (tmp_path / "plan.json").read_text() == "mine"


def test_what_is_no_recording(tprof: Callable, small: Path) -> None:
    ran = tprof("plan", small)
    assert ran.code == 1
    assert "is no recording of tprof" in ran.err
