"""Kernels as Inductor generates them, compiled for sm_90 and pretended to be launched; import only where torch is.

Real: `CachingAutotuner`, its compiles down to the cubin, the choice of the launcher, the search, coordinate descent,
the autotune cache, and the pool of compile workers. Fake: the device, module loads, launches and timings.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import itertools
import sys
from typing import TYPE_CHECKING
from unittest import mock

if TYPE_CHECKING:
    from pathlib import Path

NAME = "triton_poi_fused_relu_0"

SOURCE = """
import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers, triton_heuristics
from torch._inductor.runtime.hints import DeviceProperties

SIGNATURE = {"in_ptr0": "*fp32", "out_ptr0": "*fp32", "xnumel": "i32"}
try:  # Triton 3.2
    from triton.backends.compiler import AttrsDescriptor
    properties = {"tt.divisibility": (0, 1), "tt.equal_to": ()}
    ALIGNED = AttrsDescriptor.from_dict({"arg_properties": properties, "cls": "AttrsDescriptor"})
except ImportError:
    SIGNATURE["XBLOCK"] = "constexpr"
    ALIGNED = {(0,): [["tt.divisibility", 16]], (1,): [["tt.divisibility", 16]]}

triton_helpers.set_driver_to_gpu = bool  # there is none; a function of this module would keep all of it alive

DEVICE = DeviceProperties(
    type="cuda", index=0, multi_processor_count=132, cc=90, major=9, regs_per_multiprocessor=65536,
    max_threads_per_multi_processor=2048, warp_size=32,
)

@triton_heuristics.pointwise(
    size_hints={"x": 4096},
    filename=__file__,
    triton_meta={
        "signature": SIGNATURE,
        "device": DEVICE,
        "constants": {},
        "configs": [ALIGNED],
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
    def synchronize(_device=None):
        """Nothing runs."""

    @staticmethod
    def exchange_device(_device):
        return 0

    @staticmethod
    def maybe_exchange_device(_device):
        return 0


class StaticLauncher:
    """`torch._C._StaticCudaLauncher`: counts its loads and launches, and fails when it is told to."""

    def __init__(self, *, unloads: bool) -> None:
        self.loads, self.launches, self.spills, self.error = [], [], [], None
        self._handles = (1, 2) if unloads else (2,)

    def _load_kernel(self, _path, name, _shared, _device):
        self.loads.append(name)
        return (*self._handles, 16, self.spills.pop(0) if self.spills else 0)

    def _launch_kernel(self, *args):
        if self.error:
            raise RuntimeError(self.error)
        self.launches.append(args)

    def _unload_kernel(self, *_):
        """Modules are let go."""


def static_kernel():
    """The class of statically launched kernels; None before torch 2.8."""
    for place in ("static_triton_launcher", "static_cuda_launcher"):
        with contextlib.suppress(ImportError):
            return importlib.import_module(f"torch._inductor.runtime.{place}").StaticallyLaunchedCudaKernel
    return None


@contextlib.contextmanager
def pretended_gpu():
    """Inductor finds a device, its static launcher, and a benchmark in which the first candidate is the fastest."""
    import torch
    from torch._inductor.runtime.benchmarking import benchmarker
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    times, launcher = itertools.count(1), StaticLauncher(unloads=hasattr(static_kernel(), "close"))

    def benchmark(_self, *args, fn=None, **_):
        call = fn or args[0]
        call()
        call()
        return float(next(times))

    def device(_self):
        return Device

    with (
        mock.patch.object(torch._C, "_StaticCudaLauncher", launcher, create=True),
        mock.patch.object(CachingAutotuner, "get_device_interface", device),
        mock.patch.object(CachingAutotuner, "_build_fast_launcher", create=True, return_value=None),  # calls the driver
        mock.patch.object(type(benchmarker), "benchmark", benchmark),
        mock.patch.object(type(benchmarker), "benchmark_gpu", benchmark),
    ):
        yield launcher


def launcher_kinds(tuner):
    """Which launcher each config got."""
    return [type(result).__name__ for result in tuner.compile_results]
