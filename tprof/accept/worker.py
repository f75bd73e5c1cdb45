"""One kind of work in a process of its own: `python -m tprof.accept.worker KIND TARGET OUT [RUN]`.

KIND is numbers, cost or speed, with -cpu or -gpu.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import triton

from tprof.accept.cost import cost
from tprof.accept.measure import Ceilings
from tprof.accept.numbers import maintenance, numbers
from tprof.accept.speed import speed
from tprof.accept.targets import find_specs
from tprof.errors import CANNOT_JUDGE, TprofError

if TYPE_CHECKING:
    from tprof.kernelspec import KernelSpec


def main(kind: str, target: str, out: str, *run: str) -> int:
    """Write what was found as JSON to `out`; a target or machine that will not do ends in its error's exit code."""
    device = "cuda" if kind.endswith("gpu") else "cpu"
    try:
        specs = _specs(target, device)
    except TprofError as error:
        Path(out).write_text(json.dumps({"refused": str(error)}))
        return error.exit_code
    found: dict[str, Any] = {
        "kernels": [spec.name for spec in specs],
        "torch": torch.__version__,
        "triton": triton.__version__,
    }
    found["device"] = torch.cuda.get_device_name() if device == "cuda" else None
    if kind.startswith("numbers"):
        found["rows"] = [row for spec in specs for row in numbers(spec, device)]
        found["maintenance"] = [maintenance(spec) for spec in specs]
    elif kind.startswith("cost"):
        found["rows"] = cost(specs, device, Path(run[0]))
    else:
        ceilings = Ceilings()
        found["rows"] = [row for spec in specs for row in speed(spec, ceilings)]
    Path(out).write_text(json.dumps(found))
    return 0


def _specs(target: str, device: str) -> list[KernelSpec]:
    if device == "cuda" and not torch.cuda.is_available():
        raise TprofError("no GPU that torch can use; --cpu judges what needs none", exit_code=CANNOT_JUDGE)
    return find_specs(target)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
