"""Wall time in ns of the first request of `examples/serve.py` with empty caches, recorded or not.

python benchmarks/gpu/first_request.py FOLDER [--record]
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = Path(sys.argv[1])
os.environ |= {"TRITON_CACHE_DIR": str(HOME / "triton"), "TORCHINDUCTOR_CACHE_DIR": str(HOME / "inductor")}
sys.path[:0] = [str(ROOT / "examples")]

import serve  # noqa: E402 - the caches are chosen before Triton is imported
import torch  # noqa: E402

import tprof  # noqa: E402


def main() -> None:
    """Serve one request and print what it took."""
    with tprof.trace(HOME / "run") if "--record" in sys.argv else contextlib.nullcontext():
        service = serve.Service()
        x = torch.randn(512, serve.WIDTH, device="cuda", dtype=torch.bfloat16)
        torch.cuda.synchronize()
        begin = time.perf_counter_ns()
        service(x)
        torch.cuda.synchronize()
        print(time.perf_counter_ns() - begin)


if __name__ == "__main__":
    main()
