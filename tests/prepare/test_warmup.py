"""A plan applied: nothing compiles or tunes afterwards, the results are the same, and what goes wrong is said."""

from __future__ import annotations

import errno
import json
import os
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from support.rundir import only
from support.skips import needs_triton

from tprof.prepare import find, libraries
from tprof.prepare.plan import Limits, make
from tprof.prepare.warmup import warmup
from tprof.record.describe import hash_of_triton

pytestmark = needs_triton
DEMO = Path(__file__).resolve().parents[1] / "support" / "warm_demo.py"
COLD = {"jit", "stage", "load", "autotune", "candidate", "prune", "launcher_build", "cache", "autotune_cache"}
START = f"import runpy, sys; sys.argv[0] = {str(DEMO)!r}; from support.warm_demo import main; main(*sys.argv[1:])"


@pytest.fixture
def plan_path(plan, tmp_path):
    file = tmp_path / "plan.json"
    file.write_text(plan.text())
    return file


@pytest.fixture
def service(shared_cache, monkeypatch):
    """A service as in a new process: nothing in memory; on the stub driver."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(shared_cache))
    from support import warm_demo

    from tprof.testing.stub import stub_driver

    with stub_driver(interpreted=True) as driver:
        warm_demo.forget()
        made = warm_demo.Service()
        made.driver = driver
        yield made


def after_ready(run) -> list[tuple[str, str]]:
    process = only(run)
    [ready] = [mark["t_ns"] for mark in process.of("mark")]
    return [(s["kind"], s["name"]) for s in process.kind(*COLD) if s["t_ns"] > ready]


def told(ran):
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


# ---- the incident


def test_a_new_process_compiles_and_tunes_nothing_after_ready(python, plan_path, tmp_path):
    """The story of the GPU, counted: cold run, plan, warm run."""
    caches = {"TRITON_CACHE_DIR": str(tmp_path / "triton")}
    cold = told(python(START, tmp_path / "cold", **caches | {"TRITON_CACHE_DIR": str(tmp_path / "other")}))
    warm = told(python(START, tmp_path / "warm", plan_path, **caches))
    assert len(after_ready(tmp_path / "cold")) > 50
    assert after_ready(tmp_path / "warm") == []
    assert warm["sums"] == cold["sums"]
    assert warm["report"]["complete"]
    process = only(tmp_path / "warm")
    assert len(process.launches) == 18  # three kernels per request, and no repetition of a benchmark
    assert all(launch["span"] == 0 for launch in process.launches)
    assert [s["name"] for s in process.kind("range")] == ["tprof.warmup"]
    again = make([tmp_path / "warm"], Limits())
    assert sum(len(k.specializations) for k in again.kernels) == 6
    assert again.left_out == {"prepared": 1}


def test_a_second_process_takes_everything_from_disk(python, plan_path, tmp_path):
    caches = {"TRITON_CACHE_DIR": str(tmp_path / "triton")}
    told(python(START, tmp_path / "first", plan_path, **caches))
    told(python(START, tmp_path / "second", plan_path, **caches))
    spans = only(tmp_path / "second").kind("jit")
    assert [s["attrs"]["cache_hit"] for s in spans] == [True] * 6
    assert after_ready(tmp_path / "second") == []


def test_the_plan_is_applied_at_ready_where_the_environment_names_it(python, plan_path, tmp_path):
    told(python(START, tmp_path / "run", TRITON_CACHE_DIR=str(tmp_path / "triton"), TPROF_PLAN=str(plan_path)))
    assert after_ready(tmp_path / "run") == []
    assert len(only(tmp_path / "run").kind("jit")) == 6


def test_a_terminal_shows_how_far_it_is(service, plan_path, monkeypatch, capsys):
    from tprof.prepare import at_ready

    monkeypatch.setenv("TPROF_PLAN", str(plan_path))
    monkeypatch.setattr(at_ready, "_applied", [])
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    at_ready.ready()
    shown = capsys.readouterr().err.split("\r")
    assert len(shown) == 1 + 9 + 1
    assert shown[-2].startswith("\x1b[Ktprof: warm-up: #################### 9/9 support.")
    assert shown[-1].startswith("\x1b[Ktprof: warm-up: 6 kernels compiled and loaded, 3 winners restored in ")


def test_warming_imports_no_table_library(python):
    heavy = {"numpy", "pandas", "pyarrow", "torch", "triton"}
    code = f"import sys, tprof; tprof.warmup; tprof.ready; print({heavy} & set(sys.modules))"
    assert python(code).stdout.strip() == "set()"


# ---- in this process


def test_items_name_what_was_done(service, plan):
    seen = []
    report = warmup(plan, progress=lambda done, whole, item: seen.append((done, whole, item)))
    assert report.complete
    assert tuple(item for _, _, item in seen) == report.items
    assert [done for done, _, _ in seen] == list(range(1, 10))
    assert {whole for _, whole, _ in seen} == {9}
    assert len(report.of("done", "kernel")) == 6
    assert all(item.wall_ns > 0 and not item.why for item in report.of("done", "kernel"))
    assert any(item.name.endswith("add(n%16, B=128)") for item in report.items)
    assert str(report).startswith("6 kernels compiled and loaded, 3 winners restored in ")
    assert len(service.driver.loads) == 6
    assert service.driver.launches == []


def test_winners_are_the_candidates_themselves(service, plan):
    warmup(plan)
    cache = service.scale.cache
    assert set(cache) == {(n, "torch.float32", "torch.float32") for n in (1000, 1024)}
    assert all(any(winner is c for c in service.scale.configs) for winner in cache.values())
    assert service.shift.autotuner.cache


def test_a_winner_that_is_known_already_stays(service, plan):
    key = (1000, "torch.float32", "torch.float32")
    service.scale.cache[key] = mine = service.scale.configs[0]
    warmup(plan)
    assert service.scale.cache[key] is mine


def test_compiled_models_are_run_once_per_bucket(service, plan):
    calls = []
    report = warmup(plan, lambda call: calls.append(call.name))
    assert calls == ["n=1000", "n=1024"]
    assert len(report.of("done", "call")) == 2
    [skipped] = warmup(replace(plan, graphs={"0/0": 10})).of("skipped")
    assert "pass `call=`" in skipped.why


def test_what_every_graph_needs_is_made_once_and_before_the_calls(service, plan, monkeypatch):
    made = []
    monkeypatch.setattr(libraries, "has_gpu", lambda: True)
    for name in ("cublas", "inductor", "triton"):
        monkeypatch.setattr(libraries, name, partial(made.append, name))
    graphs = replace(plan, graphs={"0/0": 10})
    report = warmup(graphs, lambda call: made.append(call.name))
    assert [(i.name, i.outcome) for i in report.items if i.kind == "library"] == [
        ("cuBLAS", "done"), ("torch.compile", "done"),
    ]  # fmt: skip
    assert sorted(made[:2]) == ["cublas", "triton"]
    assert made[2:] == ["inductor", "n=1000", "n=1024"]
    assert "torch.compile" not in [i.name for i in warmup(graphs).of("done")]
    assert "torch.compile" not in [i.name for i in warmup(plan, lambda _: None).items]


def test_triton_has_hashed_its_files_by_then():
    libraries.triton()
    assert hash_of_triton().cache_info().currsize == 1


def test_a_call_that_fails_is_an_item(service, plan):
    report = warmup(plan, lambda _: 1 / 0)
    assert [item.why for item in report.of("failed")] == ["ZeroDivisionError: division by zero"] * 2
    assert len(report.of("done", "kernel")) == 6


def test_what_has_no_time_left_is_skipped(service, plan):
    report = warmup(plan, budget_s=0)
    assert [item.kind for item in report.of("skipped")] == ["kernel"] * 6
    assert "budget_s" in report.of("skipped")[0].why
    assert service(1000).sum() == 1999000  # it compiles then, as without a plan


# ---- what goes wrong: never a wrong kernel, never a crash, always a message


def test_another_architecture(service, plan, caplog):
    [item] = warmup(replace(plan, kernels=[replace(k, target="cuda:80") for k in plan.kernels])).items
    assert item.outcome == "skipped"
    assert "planned for cuda:80" in item.why
    assert "but this is cuda:90" in item.why
    assert service.scale.cache == {}
    assert "record and plan it here" in caplog.text


def test_another_version_of_triton(service, plan):
    [item] = warmup(replace(plan, kernels=[replace(k, triton="2.0.0") for k in plan.kernels])).items
    assert "Triton 2.0.0" in item.why


@pytest.mark.parametrize("source", ["tprof:" + "0" * 64, "0" * 64])  # the latter of an older recording
def test_an_edited_kernel_is_skipped_with_its_winners(service, plan, source):
    edited = [replace(k, source=source) if k.function.endswith("scale") else k for k in plan.kernels]
    report = warmup(replace(plan, kernels=edited))
    [item] = report.of("skipped")
    assert item.name.endswith(".scale")
    assert "has changed since it was recorded" in item.why
    assert service.scale.cache == {}
    assert len(report.of("done", "kernel")) == 4


def test_a_kernel_whose_key_depends_on_what_ran_before_is_found(service, plan, monkeypatch):
    """From 3.5 to 3.7 Triton's hash of an unchanged source does."""
    from support import warm_demo

    for kernel in (warm_demo.scale, warm_demo.shift):
        monkeypatch.setattr(kernel, "hash", "0" * 64)
    report = warmup(plan)
    assert report.complete
    assert [bool(item.why) for item in report.of("done", "kernel")].count(True) == 4
    assert "the order of first uses" in "".join(item.why for item in report.items)
    assert service(1000).sum() == 1999000


def test_a_plan_of_an_older_recording_is_compared_by_tritons_hash(service, plan):
    known = find.registry()
    old = [replace(k, source=known.find(k.function).cache_key) for k in plan.kernels]
    assert warmup(replace(plan, kernels=old)).complete


def test_a_kernel_that_this_process_lacks(service, plan):
    report = warmup(replace(plan, kernels=[replace(plan.kernels[0], function="gone.away")]))
    assert "import its module before the warm-up" in report.of("skipped")[0].why


def test_a_stale_search(service, plan):
    def changed(kernel, **fields):
        return replace(kernel, searches=[replace(s, **fields) for s in kernel.searches])

    other_key = warmup(replace(plan, kernels=[changed(k, key_names=["m"]) for k in plan.kernels]))
    assert {"no autotuner of this function has the key m" in i.why for i in other_key.of("skipped", "search")} == {True}
    gone = warmup(replace(plan, kernels=[changed(k, config={"B": 7}) for k in plan.kernels]))
    assert {"no longer among the candidates" in i.why for i in gone.of("skipped", "search")} == {True}
    assert len(gone.of("done", "kernel")) == 6
    assert service.scale.cache == {}


@pytest.mark.parametrize(
    "argument",
    [["x", "tensordesc<fp32[64]>", []], ["x", {"constexpr": "<lambda>", "class": "function"}],
     ["x", {"constexpr": "fp1", "class": "dtype"}]],
)  # fmt: skip
def test_an_argument_that_nothing_stands_in_for(service, plan, argument):
    kernel = plan.kernels[0]
    odd = replace(kernel.specializations[0], arguments=[argument])
    report = warmup(replace(plan, kernels=[replace(kernel, specializations=[odd], searches=[])]))
    assert "let `call=` run it" in report.of("skipped", "kernel")[0].why


def test_arguments_that_no_longer_fit_fail_alone(service, plan):
    kernel = next(k for k in plan.kernels if k.function.endswith("add"))
    bad = replace(kernel.specializations[0], arguments=kernel.specializations[0].arguments[:2])
    report = warmup(replace(plan, kernels=[replace(kernel, specializations=[bad, kernel.specializations[1]])]))
    assert [item.outcome for item in report.items if item.kind == "kernel"].count("failed") == 1
    assert len(report.of("done", "kernel")) == 1


def test_a_file_that_is_no_plan_does_not_stop_the_service(service, tmp_path, caplog):
    (tmp_path / "cut.json").write_text('{"format": "tprof-plan", "ker')
    [item] = warmup(tmp_path / "cut.json").items
    assert (item.kind, item.outcome) == ("plan", "failed")
    assert "not complete JSON" in caplog.text
    assert "cannot be read" in warmup(tmp_path / "absent.json").items[0].why


def test_a_plan_that_was_edited_by_hand(service, plan):
    odd = [["x"]], [["x", {"no": 1}]], [7]
    for arguments in odd:
        kernel = replace(
            plan.kernels[0], specializations=[replace(plan.kernels[0].specializations[0], arguments=arguments)]
        )
        report = warmup(replace(plan, kernels=[kernel, plan.kernels[1]]))
        assert len(report.of("failed", "kernel")) == 1
        assert len(report.of("done", "kernel")) == 2
    worse = [replace(s, calls="many") for s in plan.kernels[0].specializations]
    assert warmup(replace(plan, kernels=[replace(plan.kernels[0], specializations=worse)])).of("failed", "plan")


def test_a_progress_bar_that_fails(service, plan):
    assert warmup(plan, progress=lambda *_: 1 / 0).complete


def test_no_driver_and_no_compiler(python, plan_path):
    code = "import sys, tprof; print(tprof.warmup(sys.argv[1]).items[0].why)"
    assert "cannot be used here" in python(code, plan_path, CUDA_VISIBLE_DEVICES="").stdout
    assert "TRITON_INTERPRET=1" in python(code, plan_path, TRITON_INTERPRET="1").stdout
    gone = "import sys; sys.modules['triton'] = None\n" + code
    assert "cannot be used here" in python(gone, plan_path).stdout


def test_a_load_that_fails(service, plan):
    service.driver.fail_load = lambda name: name == "scale"
    report = warmup(plan)
    assert {item.why for item in report.of("failed")} == {
        "RuntimeError: Triton Error [CUDA]: device kernel image is invalid (stub)"
    }
    assert len(report.of("failed")) == 2
    assert len(report.of("done", "kernel")) == 4
    with pytest.raises(RuntimeError, match="device kernel image is invalid"):
        service(1000)
    warmup(plan)
    service.driver.fail_load = None
    assert service(1000).sum() == 1999000
    assert [load.name for load in service.driver.loads].count("scale") == 1


def test_a_cache_folder_that_cannot_be_written(service, plan, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "file" / "below"))
    report = warmup(plan)
    assert len(report.of("failed", "kernel")) == 6
    assert {item.why.split(":")[0] for item in report.of("failed")} == {"NotADirectoryError"}
    assert len(report.of("done", "search")) == 3


def test_a_full_disk(service, plan, tmp_path, monkeypatch):
    from triton.runtime.cache import FileCacheManager

    def put(*_: object, **__: object) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(FileCacheManager, "put", put)
        report = warmup(plan)
    assert {item.why for item in report.of("failed")} == {"OSError: [Errno 28] No space left on device"}
    assert len(warmup(plan).of("done", "kernel")) == 6


def test_a_hook_of_the_program_that_declines(service, plan, monkeypatch):
    import triton

    place = triton.knobs.runtime if hasattr(triton, "knobs") else triton.runtime.jit.JITFunction
    name = "jit_cache_hook" if hasattr(triton, "knobs") else "cache_hook"
    monkeypatch.setattr(place, name, lambda **_: True)
    assert {item.why for item in warmup(plan).of("failed")} == {"TprofError: a compile hook of the program declined it"}


def test_two_processes_that_warm_the_same_cache(python, plan_path, tmp_path):
    caches = {"TRITON_CACHE_DIR": str(tmp_path / "triton")}
    both = [python(START, tmp_path / name, plan_path, background=True, **caches) for name in ("a", "b")]
    for process in both:
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        assert json.loads(out.splitlines()[-1])["report"]["complete"]
    assert after_ready(tmp_path / "a") == after_ready(tmp_path / "b") == []


def test_a_kill_in_the_middle_leaves_a_cache_that_serves(python, plan_path, tmp_path):
    caches = {"TRITON_CACHE_DIR": str(tmp_path / "triton")}
    die = (
        "import os, sys, tprof\nfrom support import warm_demo\nfrom tprof.testing.stub import stub_driver\n"
        "def progress(done, whole, item):\n    if item.kind == 'kernel': os.kill(os.getpid(), 9)\n"
        "with stub_driver(): service = warm_demo.Service(); tprof.warmup(sys.argv[1], progress=progress, parallel=2)"
    )
    assert python(die, plan_path, **caches).returncode == -signal.SIGKILL
    done = told(python(START, tmp_path / "after", plan_path, **caches))
    assert done["report"]["complete"]
    assert after_ready(tmp_path / "after") == []
    assert any(s["attrs"]["cache_hit"] for s in only(tmp_path / "after").kind("jit"))
