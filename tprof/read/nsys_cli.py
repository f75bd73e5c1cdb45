"""Nsight Systems reports (.nsys-rep, .qdrep) through the program that can read them: `nsys export`."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tempfile
from itertools import product
from pathlib import Path

from tprof import nsys
from tprof.errors import SourceError
from tprof.read.detect import is_export

# Type -> ending of what is exported, the fastest to read first (docs/batch.md); every nsys knows SQLite.
_TYPES = {"arrowdir": "_arwdir", "sqlite": ".sqlite"}
_REPORT_VERSION = re.compile(r"\b(20\d\d)[@.](\d+)(?:[@.](\d+))?")


def export_report(path: Path) -> Path:
    """Export a report in a new temporary folder, which the caller removes when it has read the export.

    Args:
        path: .nsys-rep or .qdrep.

    Returns:
        The folder of Arrow files, or the SQLite file where that nsys has no such type.

    Raises:
        SourceError: the report is an unfinished capture, there is no `nsys`, or none of those there can read it.
    """
    if path.suffix == ".qdstrm":
        raise SourceError(path, "is a capture that was never finalised (nsys was killed before it wrote the report); "
                          f"run `QdstrmImporter -i {path}`, or record again")  # fmt: skip
    found = nsys.programs()
    if not found:
        command = shlex.join(_command(Path("nsys"), path, "sqlite", path.with_suffix(".sqlite")))
        raise SourceError(path, f"is a Nsight Systems report, and nsys is not here to export it; run `{command}` "
                          "where it is, then give the .sqlite file")  # fmt: skip
    folder = Path(tempfile.mkdtemp(prefix="tprof-nsys-"))
    problems = []
    for program, (kind, ending) in product(found, _TYPES.items()):
        target = folder / f"{path.stem}{ending}"
        if (problem := _export(program, path, kind, target)) is None:
            return target
        problems.append(problem)
    shutil.rmtree(folder)
    raise SourceError(path, _advice(problems[len(_TYPES) - 1]))  # of the first nsys, with the type that every one knows


def _command(program: Path, report: Path, kind: str, target: Path) -> list[str]:
    options = ("--type", kind, "--force-overwrite", "true", "--output", str(target))
    return [str(program), "export", *options, str(report)]


def _export(program: Path, report: Path, kind: str, target: Path) -> str | None:
    """None when it worked, else what nsys said; its exit status alone is not to be trusted."""
    try:
        done = subprocess.run(  # noqa: S603  a program found by name in PATH or NVIDIA's own folders
            _command(program, report, kind, target), capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as problem:
        return f"{program} does not start ({problem.strerror})"
    if done.returncode == 0 and (is_export(target) or (target.is_file() and target.stat().st_size)):
        return None
    said = [line.strip() for line in (done.stderr + "\n" + done.stdout).splitlines() if line.strip()]
    telling = next((s for s in said if re.search(r"version|newer|error|fail|cannot|invalid", s, re.IGNORECASE)), None)
    return telling or (said[-1] if said else f"{program} ended with status {done.returncode} and said nothing")


def _advice(problem: str) -> str:
    """One sentence of what nsys said; where it names the version that wrote the report, that is the one to use."""
    said = f"nsys cannot export it ({problem.rstrip('.')})"
    is_version = re.search(r"version|newer", problem, re.IGNORECASE)
    written_by = _REPORT_VERSION.search(problem) if is_version else None
    if written_by is None:
        return f"{said}; export it with the nsys that recorded it"
    return f"{said}; export it with nsys {'.'.join(n for n in written_by.groups() if n)} or newer"
