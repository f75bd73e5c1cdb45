from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def one_sentence(err: str) -> bool:
    return err.startswith("tprof: ") and err.count("\n") == 1 and "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["idle"], 2, "Missing argument 'SOURCES...'; see `tprof idle --help`"),
        (["idle", "no.json"], 1, "no.json: does not exist"),
        (["nonsense"], 2, "No such command 'nonsense'"),
        (["idle", "SMALL", "--nonsense"], 2, "No such option: --nonsense"),
        (["idle", "SMALL", "--format", "xml"], 2, "xml"),
        (["idle", "SMALL", "--top", "0"], 2, "--top"),
        (["idle", "SMALL", "--phase", "a=autotun"], 2, "did you mean 'autotune'?"),
        (["idle", "SMALL", "--phase", "autotune"], 2, "write GLOB=PHASE"),
        (["idle", "SMALL", "--window", "7"], 2, "write A:B"),
        (["idle", "SMALL", "--window", "3s:2s"], 2, "is empty"),
        (["idle", "SMALL", "--window", "x:2s"], 2, "'x' is no time"),
        (["idle", "SMALL", "--device", "7"], 2, "no device matches"),
        (["idle", "SMALL", "--rank", "3"], 2, "no device matches"),
        (["idle", "SMALL", "-o", "no/where.json"], 2, "create it first"),
        (["idle", "SMALL", "-o", "."], 2, "is a directory"),
        (["kernels", "SMALL", "-f", "csv", "--table", "x"], 2, "it has kernels"),
        (["requests", "SMALL", "--range", "nix"], 4, "name one with --range: request 1, tune it"),
        (["requests", "CPU"], 4, "the trace holds none"),
    ],
)
def test_one_sentence_and_the_code(
    tprof: Callable, small: Path, cpu_only: Path, arguments: list[str], code: int, said: str
) -> None:
    paths = {"SMALL": small, "CPU": cpu_only}
    ran = tprof(*(paths.get(a, a) for a in arguments))
    last = ran.err.splitlines()[-1] + "\n"
    assert (ran.code, ran.out) == (code, "")
    assert one_sentence(last)
    assert said in last


@pytest.mark.parametrize("verb", ["idle", "kernels"])
def test_no_device_cannot_be_judged(tprof: Callable, cpu_only: Path, verb: str) -> None:
    ran = tprof(verb, cpu_only, "-f", "json")
    assert ran.code == 4
    assert "no device events were recorded" in ran.err
    assert json.loads(ran.out)["sources"]  # programs still get the frame


def test_a_cold_start_is_judged_without_a_device(tprof: Callable, cpu_only: Path) -> None:
    ran = tprof("cold", cpu_only)
    assert ran.code == 0
    assert "Nothing was compiled" in ran.out


def test_files_are_kept(tprof: Callable, small: Path, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("mine")
    ran = tprof("idle", small, "-o", tmp_path / "x.json")
    assert ran.code == 2
    assert "--force" in ran.err
    assert (tmp_path / "x.json").read_text() == "mine"


def test_one_bad_file_does_not_stop_the_others(tprof: Callable, small: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.sqlite"
    bad.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    ran = tprof("summary", small, bad, "-f", "json")
    warnings = [w for w in json.loads(ran.out)["warnings"] if w["code"] == "unreadable-source"]
    assert ran.code == 0
    assert [w["source"] for w in warnings] == [str(bad)]
    assert tprof("summary", bad).code == 1


def test_warnings_come_after_the_table_on_stderr(tprof: Callable, small: Path, tmp_path: Path) -> None:
    ran = tprof("summary", small, tmp_path / "gone.json")
    assert ran.code == 0
    assert "gone.json: does not exist" in " ".join(ran.err.split())
    assert "gone.json" not in ran.out


def test_hostile_file_names(tprof: Callable, tmp_path: Path) -> None:
    ran = tprof("idle", tmp_path / "\x1b[31m<script>\u202e.json")
    assert ran.code == 1
    assert "\x1b" not in ran.err
    assert "\u202e" not in ran.err


@pytest.mark.parametrize(("raised", "code", "said"), [
    (KeyboardInterrupt(), 130, ""),
    (MemoryError(), 1, "not enough memory"),
    (OSError(28, "No space left on device", "x"), 1, "x: No space left on device"),
])  # fmt: skip
def test_what_the_system_does(
    tprof: Callable, small: Path, monkeypatch: pytest.MonkeyPatch, raised: BaseException, code: int, said: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr("tprof.facade.load", fail)
    ran = tprof("idle", small)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert "Traceback" not in ran.err
