"""May this kernel go online? Seven parts and a verdict about any function that has a `KernelSpec`.

`judge` starts a process per kind of work (`worker`), since Triton decides at import whether it interprets, and since
only a fresh process has a cold start: numbers (`numbers`), compiling (`cost`, twice on one cache) and speed (`speed`).
"""

from tprof.accept.report import FAILED, NOT_RUN, PASSED
from tprof.accept.run import judge

__all__ = ["FAILED", "NOT_RUN", "PASSED", "judge"]
