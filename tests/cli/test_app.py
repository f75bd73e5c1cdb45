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
    command = app.serve_command(Path("main.py"), ["-x.json"], 9000, "127.0.0.1")
    assert command[:5] == [sys.executable, "-m", "streamlit", "run", "main.py"]
    flags = command[5 : command.index("--")]
    pairs = dict(zip(flags[::2], flags[1::2], strict=True))
    assert pairs["--browser.gatherUsageStats"] == "false"
    assert pairs["--server.headless"] == "true"
    assert (pairs["--server.address"], pairs["--server.port"]) == ("127.0.0.1", "9000")
    assert command[command.index("--") + 1 :] == [str(Path.cwd() / "-x.json")]


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "find_spec", lambda _: None)
    with pytest.raises(TprofError, match=r"install it with: pip install 'triton-tprof\[app\]'"):
        app.main_file()


def test_a_source_that_is_not_there(tprof: Callable) -> None:
    ran = tprof("app", "gone.json")
    assert ran.code == 1
    assert "gone.json: does not exist" in ran.err
