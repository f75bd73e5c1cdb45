"""Runs the blocks of one page, in this process and in the current folder: `doc_play.py PAGE`. Exits with 77 to skip.

Commands of tprof that analyse run within the process, which spares half a second of imports each; everything else
runs in a shell.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import itertools
import re
import shlex
import subprocess
import sys
from pathlib import Path

from support.doc_pages import Block, blocks, commands

OPTIONAL = {"torch", "triton", "prometheus_client", "opentelemetry", "streamlit", "plotly", "dask", "nvtx"}
SHELL = ("record", "warmup", "app", "top")  # verbs that start processes, or look at them
SKIP = 77


def _in_process(words: list[str]) -> tuple[int, str]:
    from tprof.cli import main

    out = io.TextIOWrapper(io.BytesIO(), "utf-8")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = main(words)
    out.flush()
    return code, out.buffer.getvalue().decode(errors="replace")


def _ran(command: str) -> tuple[int, str]:
    words = shlex.split(command, comments=True)
    for name, after in itertools.pairwise(words):
        if name in {"-o", "--output", "--record"} and Path(after).is_symlink():
            Path(after).unlink()  # the page makes anew what the folder began with
    if words[0] == "tprof" and words[1] not in SHELL and not {"|", "&", ";", ">", "<"} & set(command):
        return _in_process(words[1:])
    line = ["bash", "-euo", "pipefail", "-c", command]
    done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout


def _like(said: str) -> str:
    return r".*?".join(r"\s+".join(map(re.escape, piece.split())) for piece in said.strip().split("…"))


def _console(block: Block) -> None:
    for command, expected, said in commands(block.text):
        code, out = _ran(command)
        assert code == expected, f"{command}: exit code {code}, expected {expected}\n{out}"
        rest = out
        for line in said:
            match = re.search(_like(line), rest)
            assert match, f"{command}: it does not say (there) {line!r}, but\n{out}"
            rest = rest[match.end() :]


def play(page: Path) -> None:
    """Run the blocks in order."""
    names: dict[str, object] = {"__name__": "__page__"}
    sys.path.insert(0, str(Path.cwd()))
    for block in blocks(page.read_text()):
        where = f"{page.name}:{block.line}"
        if block.reason:
            continue
        if block.file:
            Path(block.file).write_text(block.text)
        elif block.language == "python":
            exec(compile("\n" * (block.line - 1) + block.text, page, "exec"), names)
        elif block.language == "console":
            try:
                _console(block)
            except AssertionError as error:
                sys.exit(f"{where}: {error}")


if __name__ == "__main__":
    try:
        play(Path(sys.argv[1]))
    except ModuleNotFoundError as missing:
        if missing.name not in OPTIONAL or importlib.util.find_spec(missing.name):
            raise
        sys.stderr.write(f"{missing.name} is not installed")
        sys.exit(SKIP)
