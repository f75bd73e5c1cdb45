"""`tprof accept`: may this kernel go online?"""

from __future__ import annotations

from typing import Annotated

import typer

from tprof.cli import output, question
from tprof.cli.options import Ask, Force, OutFormat, Output
from tprof.errors import CANNOT_JUDGE, DONE, GATE

Target = Annotated[
    str,
    typer.Argument(metavar="KERNEL", help="A module with SPECS (`tprof_kernels.softmax`), `module:name`, or a file."),
]
Cpu = Annotated[
    bool, typer.Option("--cpu", help="What a machine without a GPU can judge: numbers, and the cost of compiling.")
]


def accept(
    kernel: Target, cpu: Cpu = False, format_: OutFormat = None, output_file: Output = None, force: Force = False
) -> int:
    """Seven parts and a verdict: use it, for some buckets only, or do not. Exit code 3 when a part fails, 4 for none.

    Correctness, stability, speed by bucket, compile cost, end to end, fallback, maintenance; KERNEL has a KernelSpec.
    """
    from tprof.accept.report import FAILED, NOT_RUN  # noqa: PLC0415  keeps `--help` quick
    from tprof.accept.run import judge  # noqa: PLC0415  as above

    ask = question.settled(Ask(format=format_, output=output_file, force=force))
    with question.counting("accept", 4 if cpu else 5) as done:
        result = judge(kernel, cpu=cpu, progress=done)
    output.write(ask, result)
    states = {row["state"] for row in result.tables["parts"] if row["part"] != "maintenance"}
    if FAILED in states:
        return GATE
    return CANNOT_JUDGE if states <= {NOT_RUN} else DONE
