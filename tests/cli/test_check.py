"""`tprof check` end to end: exit codes, settings, GitHub."""

from __future__ import annotations

import json

import pytest

from tprof.cli import main
from tprof.errors import CANNOT_JUDGE, DONE, GATE, USAGE


@pytest.fixture(scope="module")
def sample(sample_traces):
    return str(sample_traces / "h200-torch.json.gz")


CODES = {
    "--max-cold-after-ready 0": CANNOT_JUDGE,
    "--max-compile-s 20": DONE,
    "--max-compile-s 1": GATE,
    "--max-autotune-s 20": DONE,
    "--max-autotune-s 1": GATE,
    "--max-cold-tax-p99-ms 8000": DONE,
    "--max-cold-tax-p99-ms 100": GATE,
    "--max-cold-tax-p99-ms 100 --range absent": CANNOT_JUDGE,
    "--max-cold-share 100%": DONE,
    "--max-cold-share 0.5": GATE,
    "--max-idle 99%": DONE,
    "--max-idle 50%": GATE,
    "--expect-path matmul=triton": DONE,
    "--expect-path matmul=inductor": GATE,
    "--expect-path absent=triton": CANNOT_JUDGE,
    "--expect-kernels request#1*=4": DONE,
    "--expect-kernels request#1*=5": GATE,
    "--expect-kernels absent=5": CANNOT_JUDGE,
    "--against {sample}": DONE,
    "--max-compile-s 20 --max-cold-after-ready 0": CANNOT_JUDGE,
    "--max-compile-s 1 --max-cold-after-ready 0": GATE,
    "": USAGE,
    "--max-regression 5%": USAGE,
    "--max-idle much": USAGE,
    "--expect-path matmul": USAGE,
    "--expect-path matmul=fast": USAGE,
    "--expect-kernels block=many": USAGE,
}


@pytest.mark.parametrize("asked", CODES)
def test_exit_code(asked, sample):
    assert main(["check", sample, *asked.format(sample=sample).split()]) == CODES[asked]


def test_blind_recordings_cannot_be_judged(tmp_path):
    path = tmp_path / "cpu.json"
    path.write_text(
        json.dumps({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]})
    )
    assert main(["check", str(path), "--max-idle", "50%"]) == CANNOT_JUDGE
    kernel = {
        "ph": "X",
        "cat": "kernel",
        "name": "k",
        "pid": 0,
        "tid": 7,
        "ts": 1,
        "dur": 2,
        "args": {"device": 0, "stream": 7},
    }
    path.write_text(json.dumps({"traceEvents": [kernel]}))
    for gate in ("--max-compile-s=1", "--max-autotune-s=1", "--max-cold-share=1%"):
        assert main(["check", str(path), gate]) == CANNOT_JUDGE


def recording(out, factor):
    """One kernel, so many times 100 us long."""
    events = [
        {
            "ph": "X",
            "cat": "cuda_runtime",
            "name": "cudaLaunchKernel",
            "pid": 1,
            "tid": 1,
            "ts": 1,
            "dur": 1,
            "args": {"correlation": 1},
        },
        {
            "ph": "X",
            "cat": "kernel",
            "name": "k",
            "pid": 0,
            "tid": 7,
            "ts": 3,
            "dur": 100 * factor,
            "args": {"device": 0, "stream": 7, "correlation": 1},
        },
    ]
    out.write_text(json.dumps({"traceEvents": events}))
    return str(out)


def test_regression_against_a_base(tmp_path):
    base, same, worse = (recording(tmp_path / f"{f}.json", f) for f in (1.0, 1.04, 1.2))
    assert main(["check", same, "--against", base]) == DONE
    assert main(["check", worse, "--against", base]) == GATE
    assert main(["check", worse, "--against", base, "--max-regression", "25%"]) == DONE
    empty = tmp_path / "empty.json"
    empty.write_text('{"traceEvents": []}')
    assert main(["check", worse, "--against", str(empty)]) == CANNOT_JUDGE


def test_gates_of_the_settings(sample, tmp_path, monkeypatch, capsys):
    (tmp_path / "pyproject.toml").write_text(
        '[tool.tprof.check]\nmax-compile-s = 1\nmax_idle = "99%"\nexpect-path = {"matmul*" = "triton"}\n'
    )
    monkeypatch.chdir(tmp_path)
    assert main(["check", sample, "--format", "json"]) == GATE
    gates = json.loads(capsys.readouterr().out)["gates"]
    assert {g["gate"]: g["state"] for g in gates} == {
        "max-compile-s": "tripped", "max-idle": "passed", "expect-path matmul*": "passed",
    }  # fmt: skip
    assert main(["check", sample, "--max-compile-s", "20"]) == DONE
    (tmp_path / "pyproject.toml").write_text("[tool.tprof.check]\nmax-compiles = 1\n")
    assert main(["check", sample]) == USAGE


def test_github(sample, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    asked = ["--max-compile-s", "1", "--max-idle", "99%", "--max-cold-after-ready", "0"]
    assert main(["check", sample, *asked]) == GATE
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("::")]
    assert [line.split("::")[1].split(" ")[0] for line in said] == ["warning", "error"]
    assert "max-compile-s: 10.83, allowed 1 s" in said[1]
    assert (tmp_path / "summary.md").read_text().count(r"max\-compile\-s") == 1


@pytest.mark.parametrize("written", ["csv", "parquet", "markdown", "json"])
def test_every_format(written, sample, tmp_path):
    out = tmp_path / "out"
    asked = ["--max-idle", "50%", "--max-cold-after-ready", "0", "--expect-path", "matmul=triton"]
    assert main(["check", sample, *asked, "--format", written, "-o", str(out)]) == GATE
    assert out.stat().st_size
