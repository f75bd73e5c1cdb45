"""`tprof app`: the same answers in a browser."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from tprof.errors import SourceError, TprofError

AppSources = Annotated[
    list[str] | None,
    typer.Argument(metavar="[SOURCES...]", help="What to open, a batch too; the bundled recordings if none is named."),
]
Port = Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")]
Address = Annotated[str, typer.Option(help="Address to listen on; other machines can reach it only if you change it.")]
Root = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Folder whose recordings can be picked; default: the current one, or none if others can reach the app.",
    ),
]
Reports = Annotated[
    bool,
    typer.Option("--allow-nsys-rep", help="Let users pick and upload .nsys-rep files: reading them runs `nsys`."),
]
_OWN = ("127.0.0.1", "localhost", "::1")


def app(
    sources: AppSources = None, port: Port = 8501, address: Address = _OWN[0], root: Root = None,
    allow_nsys_rep: Reports = False,
) -> int:  # fmt: skip
    """Open the app (needs the extra `app`); Ctrl-C ends it."""
    for source in sources or ():
        if not Path(source).exists():
            raise SourceError(source, "does not exist")
    if root is not None and not root.is_dir():
        raise SourceError(root, "is no folder; --root takes one")
    served = root or (Path() if address in _OWN else None)
    offered = serve_arguments(sources or [], served, allow_nsys_rep=allow_nsys_rep)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(_import_path())}
    command = serve_command(main_file(), offered, port, address)
    process = subprocess.Popen(command, env=environment)  # noqa: S603  this interpreter and our own file
    try:
        return process.wait()
    except KeyboardInterrupt:  # the terminal has told the child too; it needs a moment to close
        process.wait(timeout=10)
        raise


def serve_arguments(sources: list[str], root: Path | None, *, allow_nsys_rep: bool) -> list[str]:
    """What `main.py` is told. Paths are absolute: a name that begins with a dash must not be read as an option."""
    flags = ["--allow-nsys-rep"] if allow_nsys_rep else []
    flags += ["--root", str(root.absolute())] if root else []
    return [*flags, *(str(Path(source).absolute()) for source in sources)]


def main_file() -> Path:
    """The app's entry file.

    Raises:
        TprofError: the app or Streamlit is not installed.
    """
    if missing := [name for name in ("streamlit", "plotly") if find_spec(name) is None]:
        raise TprofError(f"the app needs {' and '.join(missing)}; install it with: pip install 'triton-tprof[app]'")
    for folder in _places():
        if (main := folder / "main.py").is_file():
            return main
    raise TprofError("the app is not part of this installation; reinstall the distribution triton-tprof")


def serve_command(main: Path, arguments: list[str], port: int, address: str) -> list[str]:
    """What starts the server: no browser opened, no statistics sent, no question asked on the terminal."""
    flags = {
        "server.headless": "true",
        "server.port": str(port),
        "server.address": address,
        "browser.gatherUsageStats": "false",
    }
    given = [part for flag, value in flags.items() for part in (f"--{flag}", value)]
    return [sys.executable, "-m", "streamlit", "run", str(main), *given, "--", *arguments]


def _places() -> list[Path]:
    """Where the app may lie: installed, or in the checkout."""
    spec = find_spec("tprof_app")
    installed = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    return [*installed, _package().parent / "apps" / "tprof_app"]


def _import_path() -> list[str]:
    """`tprof` and `tprof_app` of this very installation come first in the server too."""
    inherited = os.environ.get("PYTHONPATH")
    return [str(main_file().parent.parent), str(_package().parent), *([inherited] if inherited else [])]


def _package() -> Path:
    return Path(__file__).resolve().parents[1]
