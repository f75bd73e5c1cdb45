"""Kernels as Inductor generates them, compiled for sm_90 and pretended to be launched; import only where torch is.

Real: `CachingAutotuner`, its compiles down to the cubin, the choice of the launcher, the search, coordinate descent,
the autotune cache, and the pool of compile workers. Fake: the device, module loads, launches and timings.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import sys
from pathlib import Path
from unittest import mock

NAME = "triton_poi_fused_relu_0"

SOURCE = """
import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers, triton_heuristics
from torch._inductor.runtime.hints import DeviceProperties

triton_helpers.set_driver_to_gpu = lambda: None

DEVICE = DeviceProperties(
    type="cuda", index=0, multi_processor_count=132, cc=90, major=9, regs_per_multiprocessor=65536,
    max_threads_per_multi_processor=2048, warp_size=32,
)

@triton_heuristics.pointwise(
    size_hints={"x": 4096},
    filename=__file__,
    triton_meta={
        "signature": {"in_ptr0": "*fp32", "out_ptr0": "*fp32", "xnumel": "i32", "XBLOCK": "constexpr"},
        "device": DEVICE,
        "constants": {},
        "configs": [{(0,): [["tt.divisibility", 16]], (1,): [["tt.divisibility", 16]]}],
    },
    inductor_meta={
        "grid_type": "Grid1D", "kernel_name": "triton_poi_fused_relu_0", "mutated_arg_names": [], "optimize_mem": False,
        "max_autotune": MAX_AUTOTUNE, "max_autotune_pointwise": MAX_AUTOTUNE, "coordinate_descent_tuning": COORDESC,
        "autotune_local_cache": True, "autotune_remote_cache": False,
    },
    min_elem_per_thread=0,
)
@triton.jit
def triton_poi_fused_relu_0(in_ptr0, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    BODY
    tl.store(out_ptr0 + xindex, tmp0, xmask)
"""
BODY = "tmp0 = triton_helpers.maximum(0, tl.load(in_ptr0 + xindex, xmask))"
BROKEN = "tmp0 = tl.load(in_ptr0 + xindex, xmask); tl.static_assert(False, 'it is broken')"


def write(folder: Path, *, search: bool = True, coordesc: bool = False, body: str = BODY) -> Path:
    """The generated module, in `folder`."""
    text = SOURCE.replace("MAX_AUTOTUNE", str(search)).replace("COORDESC", str(coordesc)).replace("BODY", body)
    path = folder / "ckernel.py"
    path.write_text(text)
    return path


def load(path):
    """A fresh `CachingAutotuner` out of a generated module; what a worker is asked to call."""
    spec = importlib.util.spec_from_file_location("generated_kernel", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["generated_kernel"] = module
    spec.loader.exec_module(module)
    return getattr(module, NAME)


class Device:
    """What Inductor asks of `torch.cuda` by its device interface."""

    @staticmethod
    def get_raw_stream(_device):
        return 0

    @staticmethod
    def current_device():
        return 0

    @staticmethod
    def exchange_device(_device):
        return 0

    @staticmethod
    def maybe_exchange_device(_device):
        return 0


class StaticLauncher:
    """`torch._C._StaticCudaLauncher`: counts its loads and launches."""

    def __init__(self, module_first: bool) -> None:
        self.loads, self.launches = [], []
        self._module_first = module_first

    def _load_kernel(self, _path, name, _shared, _device):
        self.loads.append(name)
        handles = (1, 2) if self._module_first else (2,)
        return (*handles, 16, 0)

    def _launch_kernel(self, *args):
        self.launches.append(args)

    def _unload_kernel(self, *_):
        """Modules are let go."""


@contextlib.contextmanager
def pretended_gpu():
    """Inductor finds a device, its static launcher and a benchmark, in which a later candidate is a slower one."""
    from torch._inductor.runtime import triton_heuristics as heuristics
    from torch._inductor.runtime.benchmarking import benchmarker

    with contextlib.suppress(ImportError):
        from torch._inductor.runtime.static_triton_launcher import StaticallyLaunchedCudaKernel as Kernel
    times = itertools.count(1)
    launcher = StaticLauncher(module_first=True)

    def benchmark(fn, *_, **__):
        fn()
        fn()
        return float(next(times))

    with (
        mock.patch.object(Kernel, "C_impl", launcher),
        mock.patch.object(heuristics.CachingAutotuner, "get_device_interface", lambda _: Device),
        mock.patch.object(type(benchmarker), "benchmark", lambda _, fn, *a, **k: benchmark(fn, *a, **k)),
    ):
        yield launcher
