"""The same demo gives the same spans on every Triton version, and none of it changes what it records."""

from __future__ import annotations

import hashlib
import json
from collections import Counter

import pytest
from support import rundir
from support.skips import needs_triton

pytestmark = needs_triton

EXPECTED = Counter(
    {
        ("jit", None, None, True): 6,
        ("jit", None, None, False): 1,
        ("cache", "get", False, True): 6,
        ("cache", "get", True, True): 1,
        ("cache", "put", None, True): 5,
        ("stage", "ir", None, True): 5,
        ("stage", "ir", None, False): 1,
        **{("stage", stage, None, True): 5 for stage in ("ttir", "ttgir", "llir", "ptx", "cubin")},
        ("launcher_build", None, None, True): 6,
        ("load", None, None, True): 5,
        ("load", None, None, False): 1,
        ("autotune", None, None, True): 1,
        ("prune", None, None, True): 1,
        ("candidate", None, None, True): 4,
        ("request", None, None, True): 1,
        ("serve", None, None, True): 1,
        ("range", None, None, True): 1,
    }
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The demo, recorded once: (process, stub driver, classes' methods before and after)."""
    from support import record_demo, record_kernels

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        record_kernels.forget(record_kernels.pick)
        out = tmp_path_factory.mktemp("run") / "run"
        before = _methods()
        driver = record_demo.demo(out)
        return rundir.only(out), driver, before, _methods(), out


def _methods():
    from triton.backends import backends
    from triton.compiler.compiler import ASTSource, CompiledKernel
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.cache import FileCacheManager
    from triton.runtime.jit import JITFunction

    from tprof.testing.stub import Launcher

    classes = [ASTSource, CompiledKernel, Autotuner, FileCacheManager, JITFunction, Launcher]
    classes += [b.compiler for b in backends.values()]
    return {(c.__name__, name): id(value) for c in classes for name, value in vars(c).items() if callable(value)}


def test_spans_are_the_same_on_every_version(run):
    assert run[0].counts() == EXPECTED
    assert run[0].notes == []


def test_nothing_is_left_patched(run):
    assert run[2] == run[3]


def test_every_launch_and_load_is_there(run):
    process, driver, *_ = run
    assert len(process.launches) == len(driver.launches) == 12
    assert sum(s["ok"] for s in process.kind("load")) == len(driver.loads) == 5
    assert process.of("close")[0]["launches"] == 12
    assert process.of("close")[0]["lost"] == {"launches": 0, "records": 0}


def test_cold_launches_name_the_span_that_made_them_cold(run):
    process = run[0]
    spans = process.spans
    kinds = [spans[launch["span"]]["kind"] if launch["span"] else "warm" for launch in process.launches]
    # add: cold, warm, new specialization, disk hit; two launches for each good candidate; winner: cold once; add: warm
    assert kinds == ["load", "warm", "load", "load", *["candidate"] * 4, "autotune", "warm", "warm", "warm"]


def test_failed_candidates_keep_their_text(run):
    candidates = run[0].kind("candidate")
    assert [c["attrs"]["config"]["HOW"] for c in candidates] == [0, 1, 2, 0]
    failed = [c["attrs"].get("failed") for c in candidates]
    assert failed[0] is failed[3] is None
    assert failed[1].startswith("load pick: OutOfResources: out of resource: shared memory, Required: ")
    assert "Hardware limit: 4096" in failed[1]
    assert "CompileTimeAssertionFailure" in failed[2]
    assert failed[2].endswith("HOW is 2")
    assert [c["attrs"]["timings_ms"] is None for c in candidates] == [False, True, True, False]


def test_the_search_tells_its_key_and_winner(run):
    (search,) = run[0].kind("autotune")
    assert search["attrs"]["key"] == ["1024", "torch.float32", "torch.float32"]
    assert search["attrs"]["configs"] == 4
    assert search["attrs"]["config"] == {"B": 256, "HOW": 0, "num_warps": 2, "num_stages": 3, "num_ctas": 1}


def test_a_variant_says_who_asked_and_a_kernel_what_its_cache_key_is_made_of(run):
    callers = [s["attrs"]["caller"] for s in run[0].kind("jit")]
    assert all(any(frame.endswith(" demo") for frame in caller) for caller in callers)
    parts = [k["key_parts"] for k in run[0].of("kernel")]
    assert {tuple(p) for p in parts} == {("source", "fingerprint", "lines", "triton", "backend", "environment")}
    assert all(p["source"] for p in parts)
    assert len({p["triton"] for p in parts}) == len({p["backend"] for p in parts}) == 1
    assert len({p["source"] for p in parts}) == len({p["fingerprint"] for p in parts}) == 2  # of `add` and of `pick`
    assert all(p["lines"].keys() in ({"add"}, {"pick"}) for p in parts)


def test_a_process_says_when_the_system_started_it(run):
    (said,) = run[0].of("process")
    assert said["started_ns"] < said["t_ns"]


def test_kernels_and_shapes_are_described(run):
    kernels = {k["id"]: k for k in run[0].of("kernel")}
    first = kernels[1]
    assert (first["name"], first["function"]) == ("add", "support.record_kernels.add")
    assert first["file"].endswith("record_kernels.py")
    assert first["signature"]["n"] == "i32"
    assert first["constexprs"] == {"B": 128}
    assert first["target"] == {"backend": "cuda", "arch": 90, "warp_size": 32}
    assert first["binary_bytes"] > 1000
    shape = run[0].of("shape")[0]
    assert shape["grid"] == [8]
    assert shape["args"]["x"] == {"dtype": "float32", "shape": [1024], "stride": [1]}
    assert shape["args"]["n"] == 1000
    assert "B" not in shape["args"]
    load = run[0].kind("load")[0]
    assert load["attrs"]["registers"] > 0
    assert load["attrs"]["spills"] == 0


def test_spans_nest_and_do_not_run_backwards(run):
    spans = run[0].spans
    for span in spans.values():
        assert span["end"] >= span["t_ns"]
        if span["parent"]:
            parent = spans[span["parent"]]
            assert parent["t_ns"] <= span["t_ns"]
            assert span["end"] <= parent["end"]
    parents = {s["kind"]: spans[s["parent"]]["kind"] for s in spans.values() if s["parent"]}
    assert parents["stage"] == "jit"
    assert parents["candidate"] == parents["prune"] == "autotune"
    assert parents["launcher_build"] == "load"


def test_the_request_gets_its_launches(run):
    (request,) = run[0].kind("request")
    assert request["attrs"]["request_id"] == "r1"
    assert sum(launch["request"] == request["id"] for launch in run[0].launches) == 7


def test_the_directory_is_private_and_says_little(run):
    *_, out = run
    assert out.stat().st_mode & 0o777 == 0o700
    assert all(p.stat().st_mode & 0o077 == 0 for p in out.iterdir())
    about = json.loads((out / "run.json").read_text())
    assert (about["format"], about["format_version"]) == ("tprof-run", 1)
    prefixes = ("TRITON_", "TORCHINDUCTOR_", "TORCH_", "TPROF_")
    names = ("CUDA_VISIBLE_DEVICES", "RANK", "WORLD_SIZE", "LOCAL_RANK")
    assert all(name.startswith(prefixes) or name in names for name in about["environment"])


def test_a_recording_changes_neither_results_nor_cache(tmp_path, monkeypatch):
    def once(recorded):
        import contextlib

        import torch
        from support import record_kernels as kernels

        from tprof.record import trace
        from tprof.testing.stub import stub_driver

        monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / f"cache-{recorded}"))
        kernels.forget(kernels.add)
        x, o = torch.arange(1000.0), torch.zeros(1000)
        with stub_driver(interpreted=True) as driver, trace(tmp_path / "run") if recorded else contextlib.nullcontext():
            for n in (1000, 992, 1000):
                kernels.add[(8,)](x, x, o, n, B=128)
        folder = tmp_path / f"cache-{recorded}"
        files = sorted(path.relative_to(folder) for path in folder.rglob("*"))
        digest = hashlib.sha256(o.numpy().tobytes()).hexdigest()
        return digest, files, [(load.name, load.size) for load in driver.loads], len(driver.launches)

    pytest.importorskip("numpy", reason="Triton's interpreter needs numpy")
    assert once(recorded=True) == once(recorded=False)
