"""`tprof cache`: traces that were read before, and bundles of compiled kernels for another machine."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tprof.cli import output, question
from tprof.cli.options import Ask, Force, OutFormat, Output
from tprof.errors import DONE

if TYPE_CHECKING:
    from tprof.prepare.bundle import Packed

program = typer.Typer(name="cache", help="Traces that were read before; bundles of compiled kernels.")

Bundle = Annotated[Path, typer.Argument(metavar="BUNDLE", help="A .zip.")]
Triton = Annotated[
    Path | None, typer.Option("--triton", metavar="DIR", help="Triton's cache; default: TRITON_CACHE_DIR, or its own.")
]
Inductor = Annotated[
    Path | None,
    typer.Option("--inductor", metavar="DIR", help="Inductor's cache; default: TORCHINDUCTOR_CACHE_DIR, or its own."),
]
Key = Annotated[
    Path | None, typer.Option("--key", metavar="FILE", help="Sign with it, or demand that it was signed with it.")
]
Trust = Annotated[bool, typer.Option("--trust", help="Take a bundle without a signature: it holds code that will run.")]


@program.command("ls")
def show(format_: OutFormat = None, output_file: Output = None, force: Force = False) -> int:
    """What is kept of which source, its size, and when it was last used."""
    from tprof.analyze import Result  # noqa: PLC0415  keeps `--help` quick
    from tprof.machine import cache_folder  # noqa: PLC0415  as above
    from tprof.read import cache  # noqa: PLC0415  as above

    ask = question.settled(Ask(format=format_, output=output_file, force=force))
    found = cache.entries()
    rows = [
        {"source": e.source or None, "kept_bytes": e.size, "used_utc": _moment(e.used_ns), "file": str(e.file)}
        for e in found
    ]
    kept = sum(entry.size for entry in found)
    total = {"folder": str(cache_folder()), "kept_bytes": kept, "limit_bytes": cache.limit()}
    output.write(ask, Result("cache", {"entries": rows, "total": [total]}, {**total, "entries": rows}))
    return DONE


@program.command()
def clear() -> int:
    """Remove everything that is kept; the sources are not touched."""
    from tprof.present.units import size  # noqa: PLC0415  keeps `--help` quick
    from tprof.read import cache  # noqa: PLC0415  as above

    count, freed = cache.clear()
    sys.stdout.write(f"removed {count} kept trace{'' if count == 1 else 's'}, {size(freed)}\n")
    return DONE


@program.command()
def pack(
    bundle: Bundle, triton: Triton = None, inductor: Inductor = None, key: Key = None, force: Force = False
) -> int:
    """Put what Triton and Inductor compiled into a bundle with hashes, for containers and other machines."""
    from tprof.prepare import bundle as bundles  # noqa: PLC0415  keeps `--help` quick

    output.check(Ask(output=bundle, force=force))
    packed = bundles.pack(bundle, _folders(triton, inductor), bundles.key_of(key) if key else None)
    sys.stdout.write(f"{bundle}: {_files(packed)}{', signed' if key else ''}\n")
    return DONE


@program.command()
def unpack(
    bundle: Bundle, triton: Triton = None, inductor: Inductor = None, key: Key = None, trust: Trust = False
) -> int:
    """Check a bundle and put its kernels into the caches; what is there already stays."""
    from tprof.prepare import bundle as bundles  # noqa: PLC0415  as above

    secret = bundles.key_of(key) if key else None
    unpacked = bundles.unpack(bundle, _folders(triton, inductor), key=secret, trust=trust)
    sys.stdout.write(f"{bundle}: {_files(unpacked)} written, {unpacked.kept} were there already\n")
    return DONE


def _folders(triton: Path | None, inductor: Path | None) -> dict[str, Path]:
    from tprof.prepare.bundle import folders  # noqa: PLC0415  as above

    found = folders()
    return {"triton": triton or found["triton"], "inductor": inductor or found["inductor"]}


def _files(packed: Packed) -> str:
    from tprof.present.units import size  # noqa: PLC0415  as above

    return f"{packed.files} file{'' if packed.files == 1 else 's'}, {size(packed.size_bytes)}"


def _moment(ns: int) -> str:
    return datetime.fromtimestamp(ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S")
