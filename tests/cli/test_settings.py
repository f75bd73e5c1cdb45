from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tprof.cli.settings import Settings, check_phase, load_settings, parse_phases
from tprof.cli.window import parse_window
from tprof.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SECTION = """
[tool.tprof]
format = "json"
top = 1
ranges = ["tune*"]
[tool.tprof.phases]
"tune*" = "autotune"
"""


def test_none_without_a_file(tmp_path: Path) -> None:
    assert load_settings(tmp_path) == Settings()


def test_found_above(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(SECTION)
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert load_settings(tmp_path / "a" / "b") == Settings("json", 1, ("tune*",), {"tune*": "autotune"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tool.tprof]\nfromat = 'json'", "no setting 'fromat'; did you mean 'format'"),
        ("[tool.tprof]\ntop = 'x'", "tool.tprof.top must be a int"),
        ("[tool.tprof.phases]\nx = 'compil'", "did you mean 'compile'"),
        ("[tool", "not valid TOML"),
        ("[tool]\ntprof = 3", "must be a table"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(UsageError, match=said):
        load_settings(tmp_path)


def test_argument_then_environment_then_file(
    tprof: Callable, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text(SECTION)
    from_file = json.loads(tprof("requests", small).out)["requests"]
    assert [(r["name"], r["phases"]["autotune"]) for r in from_file] == [("tune it", 4_000)]
    monkeypatch.setenv("TPROF_FORMAT", "csv")
    assert tprof("requests", small).out.startswith("name,")
    assert tprof("requests", small, "--format", "markdown").out.startswith("# requests")
    named = json.loads(tprof("requests", small, "-f", "json", "--range", "request*").out)["requests"]
    assert [r["name"] for r in named] == ["request 1"]


def test_phases() -> None:
    assert parse_phases(["a=b=compile", "x*=warmup"]) == {"a=b": "compile", "x*": "warmup"}
    assert check_phase("tuning") == "tuning"
    with pytest.raises(UsageError, match="known are compile, cache"):
        check_phase("zzzzzz")


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("5ns:9ns", (105, 109)), ("150:1000", (150, 1000)), ("-5:200", (-5, 200)),
        (":1us", (100, 1100)), ("2us:", (2100, 10_100)), ("0.5us : 1.25us", (600, 1350)),
        ("1ns:1ms", (101, 1_000_100)), (":1s", (100, 1_000_000_100)),
        (":2min", (100, 120_000_000_100)), (":", (100, 10_100)),
    ],
)  # fmt: skip
def test_windows(text: str, window: tuple[int, int]) -> None:
    assert parse_window(text, (100, 10_100)) == window
