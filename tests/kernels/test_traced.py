"""Every kernel under `tprof.trace`: compiles, search, launches and their shapes are recorded, and none is unlinked."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from support.kernel_check import blank, call, check, forget_all
from tprof_kernels import KERNELS, draw

import tprof
from tprof.testing.stub import stub_driver


@pytest.mark.parametrize("spec", [pytest.param(spec, id=spec.name) for spec in KERNELS.values()])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the interpreter's numpy: masked lanes
def test_all_that_a_kernel_does_is_recorded(spec, monkeypatch, tmp_path):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")  # 3.9 warns where it is unset
    forget_all()
    with stub_driver(interpreted=True, cost_ns=lambda *_: 1e9) as driver, tprof.trace(tmp_path / "run", nvtx=False):
        with monkeypatch.context() as patch:
            patch.setenv("TPROF_KERNELS_TUNE", "0")
            check(spec, spec.edges[0], spec.dtypes[0])  # right numbers while it is recorded
        driver.interpreted = False
        monkeypatch.setattr(draw.Draw, "normal", blank)
        call(spec, next(iter(spec.shapes.values()))[0], spec.dtypes[0], torch.empty_like)
    _judge(tprof.load(tmp_path / "run"), driver)


def _judge(trace, driver) -> None:
    launched = Counter(launch.name for launch in driver.launches)
    host, candidates = trace.frame("host"), trace.frame("candidates")
    launches = host[host.kind == "launch"]
    assert Counter(launches.kernel.to_list()) == launched
    assert launches.shape_key.notna().all()
    assert launches.groupby("kernel").cold.any().all()
    assert set(trace.frame("compiles").kernel) == set(launched)
    assert candidates.error.isna().all()
    functions = {getattr(f, "jit", f).fn.__name__: f for spec in KERNELS.values() for f in spec.triton_functions}
    for name, rows in candidates.groupby("kernel"):
        assert rows.winner.sum() == len(functions[name].autotuner.cache)  # one of each search
        assert {_text(config) for config in rows.config} <= {_text(str(c)) for c in functions[name].candidates}
    for row in trace.frame("shape_keys").itertuples():
        first = getattr(functions[row.kernel], "jit", functions[row.kernel]).arg_names[0]
        assert {first, "grid"} <= {word.split("=")[0] for word in row.key.split()}, row.key


def _text(config):
    """A config without what Triton's versions spell differently."""
    return config.split(", num_ctas")[0]
