"""Dynamo's and Inductor's phases, recompiles, graph caches, the choice of a matrix product, and CUDA-graph capture."""

from __future__ import annotations

import json
import logging
from collections import Counter
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from support import rundir
from support.skips import needs_triton

from tprof.record import trace
from tprof.record.patches import patches

QUIET = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:CUDA initialization")
pytestmark = [needs_triton, QUIET]


def compiled():
    """A function that Dynamo has not seen yet."""
    import torch

    torch._dynamo.reset()

    @torch.compile(backend="aot_eager")
    def relu(x):
        return torch.relu(x) + 1

    return relu


def test_phases_nest_and_a_recompile_says_which_guard(tmp_path):
    import torch

    relu = compiled()
    with trace(tmp_path / "run"):
        relu(torch.ones(4))
        relu(torch.ones(4))
        relu(torch.ones(4).double())
    process = rundir.only(tmp_path / "run")
    assert process.notes == []
    phases = process.kind("graph_compile")
    outer = [s for s in phases if s["parent"] == 0]
    assert [(s["name"], s["attrs"]["compile_id"]) for s in outer] == [("dynamo", "0/0"), ("dynamo", "0/1")]
    assert {s["phase"] for s in phases} == {"graph_compile"}
    assert all(s["ok"] and s["end"] for s in phases)
    by_id = process.spans
    for s in phases:
        if s["parent"]:
            assert by_id[s["parent"]]["t_ns"] <= s["t_ns"] <= s["end"] <= by_id[s["parent"]]["end"]
    (again,) = process.of("recompile")
    assert again["function"].endswith("relu")
    assert again["file"] == __file__
    assert "dtype mismatch. expected Float, actual Double" in again["reasons"][0]
    assert by_id[again["span"]]["attrs"]["compile_id"] == "0/1"


def test_a_compile_that_raises_ends_with_its_error(tmp_path):
    import torch

    def backend(_graph, _inputs):
        raise KeyError("no such backend")

    torch._dynamo.reset()
    broken = torch.compile(lambda x: x + 1, backend=backend)
    with trace(tmp_path / "run"):
        try:
            int("being handled, and none of the compile's business")
        except ValueError:
            compiled()(torch.ones(3))
        with pytest.raises(Exception, match="no such backend"):
            broken(torch.ones(3))
    process = rundir.only(tmp_path / "run")
    failed = [s for s in process.kind("graph_compile") if not s["ok"]]
    assert "entire_frame_compile" in {s["name"] for s in failed}
    assert all("no such backend" in s["error"] for s in failed)
    assert all(s["end"] for s in process.spans.values())


def test_nobody_listens_to_structured_traces_for_us(tmp_path):
    before = list(logging.getLogger("torch.__trace").handlers)
    with trace(tmp_path / "run"):
        assert logging.getLogger("torch.__trace").handlers == before


def test_threads_compile_side_by_side(tmp_path):
    import threading

    import torch

    relu = compiled()
    shapes = [torch.ones(*[2] * n) for n in range(1, 4)]
    with trace(tmp_path / "run"):
        threads = [threading.Thread(target=relu, args=(x,)) for x in shapes]
        [t.start() for t in threads]
        [t.join() for t in threads]
    process = rundir.only(tmp_path / "run")
    assert process.notes == []
    by_id = process.spans
    assert all(s["end"] and s["ok"] for s in by_id.values())
    assert all(by_id[s["parent"]]["tid"] == s["tid"] for s in by_id.values() if s["parent"])


INDUCTOR = """
import contextlib, hashlib, json, os, sys
import torch, torch._inductor.config, torch._inductor.cpu_vec_isa
from torch._dynamo.utils import counters
import tprof

torch._inductor.cpu_vec_isa.valid_vec_isa_list = list  # compiling to see which there are takes ten seconds
torch._inductor.config.cpp_cache_precompile_headers = False  # more than they save here
def step(x):
    return torch.relu(x @ x.T).sum(0) * 3

with tprof.trace(sys.argv[1]) if sys.argv[1] else contextlib.nullcontext():
    out = []
    for _ in range(2):
        torch._dynamo.reset()
        out.append(torch.compile(step)(torch.arange(12.0).reshape(3, 4)))
root = os.environ["TORCHINDUCTOR_CACHE_DIR"]
keys = [os.path.relpath(os.path.join(at, f), root)
        for at, _, files in os.walk(root) for f in files if f.endswith((".cpp", ".py"))]
print(json.dumps({
    "bits": [hashlib.sha256(o.numpy().tobytes()).hexdigest() for o in out],
    "counters": {k: dict(v) for k, v in counters.items()},
    "keys": sorted(keys), "graphs": sorted(os.listdir(root + "/fxgraph")),
}))
"""


def test_inductor_on_a_cpu_is_the_same_with_and_without(python, tmp_path):
    said = []
    for out in ("", tmp_path / "run"):
        done = python(INDUCTOR, out, TORCHINDUCTOR_CACHE_DIR=str(tmp_path / f"cache{len(said)}"))
        assert done.returncode == 0, done.stderr
        said.append(json.loads(done.stdout.splitlines()[-1]))
    assert said[0] == said[1]
    process = rundir.only(tmp_path / "run")
    assert process.notes == []
    answers = Counter((r["cache"], r["outcome"]) for r in process.of("graph_cache"))
    assert answers == {("autograd", "miss"): 1, ("fx_graph", "miss"): 1, ("autograd", "hit"): 1}
    assert "inductor_compile" in {s["name"] for s in process.kind("graph_compile")}
    waits = process.kind("compile_wait")
    assert {(s["name"], s["phase"]) for s in waits} == {("async_compile.wait", "compile")}


class Choice(NamedTuple):
    name: str
    description: str


def test_the_choice_of_a_matrix_product_names_what_was_timed(tmp_path):
    from tprof.record import inductor_gemm

    class Selector:
        def __init__(self):
            self.feedback_saver_fns = [print]

    layout = SimpleNamespace(dtype="torch.float16", size=[64, 32], stride=[32, 1])
    node = SimpleNamespace(get_layout=lambda: layout)
    aten, slow = Choice("addmm", "aten"), Choice("triton_mm_1", "BM=16")
    with trace(tmp_path / "run"):
        patches.wrap(Selector, "__init__", inductor_gemm.wrap_selector)
        selector = Selector()
        assert selector.feedback_saver_fns == [print, inductor_gemm.feedback]
        timings = {aten: 0.5, slow: float("inf")}
        selector.feedback_saver_fns[1](timings, "addmm", [node], [aten, slow], None, {}, "what a later version adds")
    inductor_gemm.forget(SimpleNamespace(_ALGORITHM_SELECTOR_CACHE=selector))
    assert selector.feedback_saver_fns == [print]
    (chosen,) = rundir.only(tmp_path / "run").of("selection")
    assert (chosen["name"], chosen["best"]) == ("addmm", "addmm")
    assert chosen["inputs"] == [{"dtype": "float16", "shape": ["64", "32"], "stride": ["32", "1"]}]
    timed = [(c["name"], c["ms"], c["text"]) for c in chosen["choices"]]
    assert timed == [("addmm", 0.5, "aten"), ("triton_mm_1", None, "BM=16")]


class Graph:
    """Like `torch.cuda.CUDAGraph`, which cannot be made without a GPU."""

    def capture_begin(self, *_):
        if self.error == "begin":
            raise RuntimeError("begin")

    def capture_end(self):
        if self.error == "end":
            raise RuntimeError("capture was invalidated")

    error = ""


def test_captures_are_spans_and_may_fail(tmp_path):
    from tprof.record import graphs

    with trace(tmp_path / "run"):
        patches.wrap(Graph, "capture_begin", graphs.wrap_capture_begin)
        patches.wrap(Graph, "capture_end", graphs.wrap_capture_end)
        graph = Graph()
        for graph.error in ("", "end", "begin"):
            try:
                graph.capture_begin()
                graph.capture_end()
            except RuntimeError:
                assert graph.error
    process = rundir.only(tmp_path / "run")
    captures = process.kind("graph_capture")
    assert {s["phase"] for s in captures} == {"graph_capture"}
    assert [(s["ok"], s["error"]) for s in captures] == [
        (True, ""), (False, "RuntimeError: capture was invalidated"), (False, "RuntimeError: begin"),
    ]  # fmt: skip
    assert not hasattr(vars(Graph)["capture_begin"], "__tprof__")


def test_names_of_phases():
    from tprof.record.dynamo import kind_of

    assert kind_of("inductor_compile") == "graph_compile"
    assert kind_of("mm_template_autotuning") == "autotune"
    assert kind_of("mm_template_precompiling") == "compile_wait"
    assert kind_of("CachingAutotuner.combo_sequential_autotune") == "autotune"
