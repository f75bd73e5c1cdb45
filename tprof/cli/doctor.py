"""`tprof doctor`: what this installation can do, and what stands in its way."""

from __future__ import annotations

from tprof.cli import output, question
from tprof.cli.options import Ask, Force, OutFormat, Output
from tprof.errors import DONE


def doctor(format_: OutFormat = None, output_file: Output = None, force: Force = False) -> int:
    """Versions, nsys, GPU, and what stands in the way."""
    from tprof.analyze import Result  # noqa: PLC0415  keeps `--help` quick
    from tprof.cli import doctor_install, doctor_record  # noqa: PLC0415  as above

    ask = question.settled(Ask(format=format_, output=output_file, force=force))
    tables = {"checks": doctor_install.rows(), "recording": doctor_record.rows()}
    output.write(ask, Result("doctor", tables, dict(tables)))
    return DONE
