from __future__ import annotations

import json
from importlib import metadata
from typing import TYPE_CHECKING

from tprof.cli.doctor_install import other_tprof

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_table_and_json(tprof: Callable) -> None:
    assert "python" in tprof("doctor").out
    checks = {c["item"]: c for c in json.loads(tprof("doctor", "--format", "json").out)["checks"]}
    assert checks["tprof"]["state"] == checks["pyarrow"]["state"] == "ok"
    assert {"nsys", "NVIDIA GPU", "cache folder", "torch", "triton", "streamlit"} <= set(checks)
    assert all(c["state"] in {"ok", "missing", "absent", "conflict"} for c in checks.values())


def installed(folder: Path, name: str, files: str) -> metadata.Distribution:
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "RECORD").write_text("".join(f"{f},,\n" for f in files.split()))
    for file in files.split():  # since Python 3.12 only files that are there count
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).touch()
    return metadata.Distribution.at(info)


def test_another_project_of_the_same_name(tmp_path: Path) -> None:
    ours = installed(tmp_path, "triton_tprof", "tprof/__init__.py")
    other = installed(tmp_path, "tprof", "tprof/__init__.py")
    strange = installed(tmp_path, "fork", "tprof/model.py fork.py")
    innocent = installed(tmp_path, "tprofiler", "tprofiler/__init__.py")
    rows = list(other_tprof([ours, other, strange, innocent]))
    assert [(r["state"], r["value"]) for r in rows] == [("conflict", "tprof 1.0"), ("conflict", "fork 1.0")]
    assert "pip uninstall tprof" in rows[0]["advice"]
