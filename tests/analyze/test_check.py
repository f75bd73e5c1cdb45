"""Every gate passes, trips and cannot judge."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.small import call, kernel, span, trace

from tprof.align import AlignOptions, align
from tprof.analyze import Attribution, Options
from tprof.analyze.check import PASSED, TRIPPED, UNKNOWN, Limits, check, verdict
from tprof.model import table

S = 1_000_000_000


def served(*, host: bool = True, device: bool = True, ready: int | None = S) -> Attribution:
    """1 s of compile before ready, a request of 1 s with 0.2 s of compile and tuning each, two kernels in `block`."""
    rows = [
        span(0, S, "c: build"),
        span(2 * S, 3 * S, "request#1"),
        span(2 * S, 2 * S + S // 5, "c: again"),
        span(2 * S + S // 5, 2 * S + 2 * S // 5, "t: search"),
        span(3 * S, 4 * S, "block"),
        call(3 * S + 10, 3 * S + 20, correlation=1),
        call(3 * S + 30, 3 * S + 40, correlation=2),
    ]
    work = [
        kernel(3 * S + 100, 3 * S + 200, "rms_norm_fwd", correlation=1),
        kernel(3 * S + 300, 3 * S + 400, "nvjet_tst", correlation=2),
    ]
    found = align(
        trace(rows if host else [], work if device else []), AlignOptions({"c:*": "compile", "t:*": "autotune"})
    )
    first_use = {"start_ns": 2 * S, "end_ns": 2 * S + 1, "thread": 0, "kernel": "mm", "basis": "recorded"}
    found = replace(found, compiles=table("compiles", {k: [v] for k, v in first_use.items()}, 1))
    if ready is not None:
        said = {
            "start_ns": [ready],
            "end_ns": [ready],
            "process": [0],
            "kind": ["ready"],
            "name": ["ready"],
            "thread": [0],
        }
        found = replace(found, startup=table("startup", said, 1))
    return Attribution(found)


# gate -> (limits that pass, limits that trip, a recording that cannot tell)
GATES = {
    "cold-after-ready": (Limits(cold_after_ready=1), Limits(cold_after_ready=0), {"ready": None}),
    "compile": (Limits(compile_s=1.3), Limits(compile_s=1.1), {"host": False}),
    "autotune": (Limits(autotune_s=0.3), Limits(autotune_s=0.1), {"host": False}),
    "cold-tax": (Limits(cold_tax_p99_ms=401), Limits(cold_tax_p99_ms=399), {"host": False}),
    "cold-share": (Limits(cold_share=0.4), Limits(cold_share=0.3), {"host": False}),
    "idle": (Limits(idle=0.5), Limits(idle=0.1), {"device": False}),
    "path": (Limits(paths={"rms_norm*": "triton"}), Limits(paths={"nvjet*": "triton"}), {"device": False}),
    "kernels": (Limits(kernels={"block": 2}), Limits(kernels={"block": 3}), {"device": False}),
}


@pytest.mark.parametrize("gate", GATES)
def test_gate(gate):
    passing, tripping, blind = GATES[gate]
    for limits, recording, state in ((passing, {}, PASSED), (tripping, {}, TRIPPED), (passing, blind, UNKNOWN)):
        (row,) = check(served(**recording), Options(), limits).tables["gates"]
        assert row["state"] == state, row
        assert row["why"] or state != UNKNOWN


def test_values_and_culprits():
    limits = Limits(
        cold_after_ready=0, compile_s=0, cold_tax_p99_ms=0, paths={"nvjet*": "triton"}, kernels={"block": 3}
    )
    rows = {r["gate"]: r for r in check(served(), Options(), limits).payload["gates"]}
    assert {g: (r["value"], r["unit"]) for g, r in rows.items()} == {
        "max-cold-after-ready": (1, "events"),
        "max-compile-s": (1.2, "s"),
        "max-cold-tax-p99-ms": (400.0, "ms"),
        "expect-path nvjet*": ("library", ""),
        "expect-kernels block": ("2", "kernels"),
    }
    assert rows["max-cold-after-ready"]["why"] == "mm"
    assert rows["expect-kernels block"]["why"] == "block: 2"


def test_nothing_of_that_name_cannot_be_judged():
    for limits in (Limits(paths={"absent*": "triton"}), Limits(kernels={"absent": 1})):
        (row,) = check(served(), Options(), limits).tables["gates"]
        assert (row["state"], "absent" in row["why"]) == (UNKNOWN, True)


def test_a_gate_that_tripped_outweighs_one_that_cannot_judge():
    rows = [{"state": UNKNOWN}, {"state": TRIPPED}, {"state": PASSED}]
    assert [verdict(rows), verdict(rows[::2]), verdict(rows[2:]), verdict([])] == [TRIPPED, UNKNOWN, PASSED, PASSED]
