from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tprof.cli import app
from tprof.errors import TprofError

if TYPE_CHECKING:
    from collections.abc import Callable


def test_the_server_is_private_and_silent() -> None:
    command = app.serve_command(Path("main.py"), ["x.json"], 9000, "127.0.0.1")
    assert command[:5] == [sys.executable, "-m", "streamlit", "run", "main.py"]
    flags = command[5 : command.index("--")]
    pairs = dict(zip(flags[::2], flags[1::2], strict=True))
    assert pairs["--browser.gatherUsageStats"] == "false"
    assert pairs["--server.headless"] == "true"
    assert (pairs["--server.address"], pairs["--server.port"]) == ("127.0.0.1", "9000")
    assert command[command.index("--") + 1 :] == ["x.json"]


def test_paths_are_absolute() -> None:
    here = Path.cwd()
    assert app.serve_arguments(["-x.json"], None, allow_nsys_rep=False) == [str(here / "-x.json")]
    assert app.serve_arguments([], Path(), allow_nsys_rep=True) == ["--allow-nsys-rep", "--root", str(here)]


@pytest.mark.parametrize(
    ("given", "root"),
    [([], True), (["--address", "localhost"], True), (["--address", "0.0.0.0"], False),
     (["--address", "0.0.0.0", "--root", "."], True)],
)  # fmt: skip
def test_a_folder_is_served_to_others_only_if_named(tprof: Callable, monkeypatch, given, root) -> None:
    told: list[str] = []

    def started(command: list[str], **_: object) -> object:
        told.extend(command)
        return type("Ended", (), {"wait": lambda _: 0})()

    monkeypatch.setattr(app.subprocess, "Popen", started)
    assert tprof("app", *given).code == 0
    assert ("--root" in told) == root


def test_a_root_that_is_no_folder(tprof: Callable, tmp_path: Path) -> None:
    ran = tprof("app", "--root", str(tmp_path / "gone"))
    assert ran.code == 1
    assert "is no folder" in ran.err


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "find_spec", lambda _: None)
    with pytest.raises(TprofError, match=r"install it with: pip install 'triton-tprof\[app\]'"):
        app.main_file()


def test_a_source_that_is_not_there(tprof: Callable) -> None:
    ran = tprof("app", "gone.json")
    assert ran.code == 1
    assert "gone.json: does not exist" in ran.err
