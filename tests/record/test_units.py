"""The recorder's small parts, without triton."""

from __future__ import annotations

import json
import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import rundir

from tprof.errors import UsageError
from tprof.record import clock, guard, trace
from tprof.record import rundir as directory
from tprof.record.journal import AppendFile, Journal, LaunchFile, encode
from tprof.record.patches import PatchSet, Slot
from tprof.record.settings import TABLE, resolve

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner, inner),
)


@given(st.dictionaries(st.text(), values))
def test_any_record_becomes_one_line_of_json(record):
    line = encode(record)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    parsed = json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert list(parsed) == list(record)


@given(rows=st.lists(st.lists(st.integers(-1, 2**31 - 1), min_size=5, max_size=5)))
def test_launches_come_back(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("launches") / "x.launches"
    file = LaunchFile(path)
    flat = [n for row in rows for n in row]
    for part in (flat[: len(rows) // 2 * 5], flat[len(rows) // 2 * 5 :]):
        file.write(11, 0, part)
    file.file.close()
    names = ("t_enter", "t_exit", "shape", "span", "request")
    assert rundir.read_launches(path) == [{"tid": 11, **dict(zip(names, row, strict=True))} for row in rows]


def test_a_begin_line_is_on_disk_at_once_and_keeps_the_order(tmp_path):
    journal = Journal(tmp_path / "j")
    journal.add({"n": 1})
    assert (tmp_path / "j").read_bytes() == b""
    journal.add_now({"n": 2})
    assert (tmp_path / "j").read_bytes() == b'{"n":1}\n{"n":2}\n'
    journal.file.close()


def test_threads_do_not_tear_lines(tmp_path):
    journal = Journal(tmp_path / "j")
    threads = [threading.Thread(target=lambda i=i: [journal.add_now({"i": i}) for _ in range(200)]) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.file.close()
    assert len([json.loads(line) for line in (tmp_path / "j").read_text().splitlines()]) == 800


def test_waiting_records_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("tprof.record.journal.MAX_PENDING", 10)
    journal = Journal(tmp_path / "j")
    for n in range(25):
        journal.add({"n": n})
    assert len((tmp_path / "j").read_bytes().splitlines()) >= 15
    journal.file.close()


def test_a_closed_file_swallows_and_counts(tmp_path):
    file = AppendFile(tmp_path / "x")
    file.close()
    file.write(b"late", 3)
    file.close()
    assert file.lost == 3


def test_a_failing_hook_is_called_once(caplog):
    calls = []

    def broken():
        calls.append(1)
        raise ZeroDivisionError("ours")

    heard = []
    guard.listen(lambda code, _: heard.append(code))
    assert [guard.call("x", broken), guard.call("x", broken), guard.call("y", lambda: 2)] == [None, None, 2]
    guard.listen(None)
    assert (calls, heard) == ([1], ["hook-disabled"])
    assert "ZeroDivisionError: ours" in caplog.text


class Foreign:
    def method(self):
        return "theirs"


def _louder(original):
    return lambda self: original(self).upper()


def test_patches_come_off():
    patches, original = PatchSet(), vars(Foreign)["method"]
    assert patches.wrap(Foreign, "method", _louder)
    assert not patches.wrap(Foreign, "method", _louder)
    assert not patches.wrap(Foreign, "absent", _louder)
    assert Foreign().method() == "THEIRS"
    assert patches.restore() == []
    assert vars(Foreign)["method"] is original


def test_only_the_class_that_defines_a_method_is_patched():
    class Sub(Foreign):
        pass

    assert not PatchSet().wrap(Sub, "method", _louder)


def test_a_slot_for_one_callable_is_chained_and_restored():
    class Owner:
        hook = None

    seen = []
    Owner.hook = staticmethod(lambda metadata: seen.append(("theirs", metadata)))
    before = Owner.hook
    slot = Slot(Owner, "hook")

    def mine(metadata):
        seen.append(("mine", metadata))

    slot.add(mine)
    Owner.hook("m")
    assert seen == [("mine", "m"), ("theirs", "m")]
    slot.remove(mine)
    assert Owner.hook is before
    slot.add(mine)
    Owner.hook = None  # another tool resets it
    slot.remove(mine)
    assert Owner.hook is None


def test_the_clock_pair_is_tight():
    pair = clock.pair()
    assert 0 <= pair.error_ns < 1_000_000
    assert abs(clock.pair().wall_ns - pair.wall_ns - (clock.pair().t_ns - pair.t_ns)) < 50_000_000


def test_an_argument_wins_over_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("TPROF_SHAPES", "always")
    monkeypatch.setenv("TPROF_DIR", str(tmp_path / "env"))
    assert resolve().shapes == "always"
    assert resolve(shapes="first").shapes == "first"
    assert resolve().out == tmp_path / "env"
    assert resolve(interval=9).interval == 0.5
    monkeypatch.delenv("TPROF_DIR")
    assert resolve().out.name.startswith("tprof-2")


@pytest.mark.parametrize(
    ("name", "value"), [("shapes", "sometimes"), ("max_shapes", "many"), ("torch_profiler", "tpu")]
)
def test_a_wrong_setting_is_told_before_anything_runs(name, value):
    with pytest.raises(UsageError, match=TABLE[name].variable):
        trace(**{name: value})


def test_every_setting_is_in_the_docs(root):
    page = (root / "docs" / "recording.md").read_text()
    for name, setting in TABLE.items():
        assert f"| `{name}` | `{setting.variable}` | " in page
        assert setting.meaning.split(";")[0] in page


def test_secrets_stay_out(monkeypatch):
    monkeypatch.setenv("TORCH_API_KEY", "x")
    monkeypatch.setenv("TRITON_REDIS_HOST", "x")
    monkeypatch.setenv("AWS_REGION", "x")
    monkeypatch.setenv("TRITON_DEBUG", "0")
    found = directory.environment()
    assert found["TRITON_DEBUG"] == "0"
    assert not {"TORCH_API_KEY", "TRITON_REDIS_HOST", "AWS_REGION"} & set(found)


def test_an_existing_folder_with_other_things_in_it_is_left_as_it_is(tmp_path):
    (tmp_path / "mine").write_text("")
    tmp_path.chmod(0o755)
    with trace(tmp_path, nvtx=False):
        pass
    assert tmp_path.stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "run.json").stat().st_mode & 0o777 == 0o600
    assert not list(tmp_path.glob(".run*"))


def test_importing_the_recorder_is_light(root):
    code = (
        "import dataclasses, inspect, json, logging, pathlib, socket, typing;"  # torch imports them, too
        "import time, sys; t = time.process_time(); import tprof.record; t = time.process_time() - t;"
        "heavy = {'numpy', 'pandas', 'pyarrow', 'torch', 'triton', 'nvtx', 'plotly', 'streamlit'} & set(sys.modules);"
        "print(int(t * 1000), *heavy)"
    )
    times = []
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
        ms, *heavy = done.stdout.split()
        assert heavy == []
        times.append(int(ms))
    assert min(times) < 50


def test_the_recorder_imports_only_what_every_python_has(root):
    import ast

    allowed = {*sys.stdlib_module_names, "tprof", "torch", "triton", "nvtx"}
    for path in (root / "tprof" / "record").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            assert {name.split(".")[0] for name in names} <= allowed, path.name
            assert {".".join(name.split(".")[:2]) for name in names if name.startswith("tprof.")} <= {
                "tprof.record",
                "tprof.errors",
                "tprof.nsys",
                "tprof.events",
            }


def test_no_profiler_in_a_compile_worker(monkeypatch):
    from tprof.record import torch_profiler

    monkeypatch.setattr("sys.argv", ["/x/torch/_inductor/compile_worker/__main__.py", "--kind=fork"])
    torch_profiler.start("gpu")
    assert not torch_profiler._running


def test_a_child_of_a_cuda_process_is_profiled_without_cuda(monkeypatch):
    torch = pytest.importorskip("torch")
    from tprof.record import torch_profiler

    monkeypatch.setattr(torch.cuda, "_is_in_bad_fork", lambda: True)
    asked = []
    monkeypatch.setattr(torch.profiler, "profile", lambda **options: asked.append(options) or _Profile())
    torch_profiler.start("gpu")
    assert asked[0]["activities"] == {torch.profiler.ProfilerActivity.CPU}
    torch_profiler._running.clear()


class _Profile:
    def start(self):
        """As torch's."""
