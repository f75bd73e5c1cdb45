"""Advice: each verdict on one made trace and not on one alike, then real recordings read against what they show."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from support.small import call, kernel, span, trace

import tprof
from tprof.align import AlignOptions, align
from tprof.analyze import Attribution, Options
from tprof.analyze.advice import Job, _not_worth, advise

if TYPE_CHECKING:
    from pathlib import Path

Row = dict[str, Any]
ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::X>()"
NORM = "void at::native::layer_norm_kernel<float>()"
GEMM = "nvjet_tst_128x128"


def steps(*launched: tuple[str, str, int], times: int = 20, shapes: int = 1, idle: int = 0, gap: int = 0) -> Any:
    """A thread that launches the same (operator, kernel, ns) again and again; the device works without a pause."""
    host: list[Row] = []
    device: list[Row] = []
    now, at, number = 0, 1_000, 0
    for turn in range(times):
        shape = f"float[{64 + turn % shapes},128]:[128,1]" if shapes else None
        for operator, name, ns in launched:
            number += 1
            host.append(span(now, now + 4, operator, "op", shape_key=shape))
            host.append(call(now + 1, now + 3, correlation=number))
            device.append(kernel(at, at + ns, name, correlation=number))
            now, at = now + 10, at + ns + gap
        at += idle
    return Attribution(align(trace(host, device, format="torch"), AlignOptions()))


def judged(attribution: Attribution, job_ns: int | None = None) -> Row:
    return advise(attribution, Options(), job_ns).to_dict()


def verdict(found: Row, operator: str) -> str:
    (row,) = [row for row in found["operators"] if row["operator"] == operator]
    return row["verdict"]


def chain(found: Row) -> tuple[str, int, int, str]:
    (row,) = found["chains"]
    return row["chain"], row["calls"], row["saving_ns"], row["verdict"]


# ---- operators

NORM_AND_GEMM = (("aten::native_layer_norm", NORM, 3_000), ("aten::mm", GEMM, 7_000))


def test_a_large_operator_of_few_shapes_is_worth_a_kernel_and_a_library_is_left_alone() -> None:
    found = judged(steps(*NORM_AND_GEMM))
    assert verdict(found, "aten::native_layer_norm") == "write"
    assert verdict(found, "aten::mm") == "do not"
    assert found["operators"][1]["of_work_share"] == pytest.approx(0.3)
    assert found["answer"] == "worth a kernel: aten::native_layer_norm (at most 29.9 % of the warm time)"


@pytest.mark.parametrize(
    ("made", "expected", "why"),
    [
        ({"times": 9}, "profile first", "too few"),
        ({"shapes": 0}, "profile first", "shapes are unknown"),
        ({"shapes": 20}, "do not", "too divergent"),
        ({"shapes": 9}, "write", "5 most frequent shapes"),
        ({"idle": 400_000}, "do not", "less than 1 %"),
    ],
)
def test_what_must_be_known_and_what_must_be_large(made: Row, expected: str, why: str) -> None:
    found = judged(steps(*NORM_AND_GEMM, **made))
    (row,) = [row for row in found["operators"] if row["path"] == "aten"]
    assert (row["verdict"], why in row["reason"]) == (expected, True)


def test_an_idle_device_comes_before_any_kernel() -> None:
    assert "the device works 21% of the warm time" in judged(steps(*NORM_AND_GEMM, idle=40_000))["answer"]


def test_one_pass_over_memory_is_worth_no_kernel_of_its_own() -> None:
    found = judged(steps(("aten::gelu", ELEMENTWISE, 3_000), ("aten::mm", GEMM, 7_000)))
    assert verdict(found, "aten::gelu") == "do not"
    assert found["chains"] == []


def test_what_is_compiled_already_is_had_and_a_copy_is_no_kernel() -> None:
    found = judged(steps(("mine", "my_kernel", 3_000), ("aten::copy_", "Memcpy DtoD", 3_000), *NORM_AND_GEMM))
    assert verdict(found, "mine") == "have"


# ---- chains


def test_steps_in_a_row_are_worth_fusing() -> None:
    pair = (("aten::add", ELEMENTWISE, 2_000), ("aten::native_layer_norm", NORM, 3_000))
    found = judged(steps(*pair, ("aten::mm", GEMM, 7_000), gap=100))
    assert chain(found) == ("add → native_layer_norm", 20, 20 * 2_000, "fuse")
    assert found["chains"][0]["gap_ns"] == 20 * 100
    assert {verdict(found, name) for name, _, _ in pair} == {"fuse"}
    assert found["answer"].startswith("worth fusing: add → native_layer_norm (at most 16.")


def test_a_library_between_them_parts_a_chain() -> None:
    found = judged(
        steps(
            ("aten::add", ELEMENTWISE, 2_000),
            ("aten::mm", GEMM, 7_000),
            ("aten::native_layer_norm", NORM, 3_000),
            times=1,
        )
    )
    assert found["chains"] == []


def test_operators_that_share_no_size_are_no_chain() -> None:
    made = steps(("aten::add", ELEMENTWISE, 2_000), ("aten::native_layer_norm", NORM, 3_000), times=20)
    parted = made.trace.host.to_pylist()
    for row in parted:
        if row["name"] == "aten::add":
            row["shape_key"] = "float[7,7]:[7,1]"
    other = replace(made.trace, host=made.trace.host.from_pylist(parted, made.trace.host.schema))
    assert judged(made)["chains"]
    assert judged(Attribution(other))["chains"] == []


# ---- cold start against the job


@pytest.mark.parametrize(
    ("scale", "serving", "shape_cold_ns", "expected"),
    [
        (1.0, False, 600_000_000, "do not"),  # two shapes cost 1.2 s, the job gains at most 0.1 s
        (12.1, False, 600_000_000, None),  # a job twelve times as long gains more
        (1.0, True, 600_000_000, None),  # a service goes on
        (1.0, False, None, None),  # nothing was cold: no cost is known
    ],
)
def test_an_offline_job_must_be_long_enough(
    *, scale: float, serving: bool, shape_cold_ns: int | None, expected: str | None
) -> None:
    row = {"path": "aten", "calls": 100, "shapes": 2, "hot_shapes": 2, "top5_share": 1.0}
    found = _not_worth(row, Job(10**9, scale, serving, shape_cold_ns), 10**8)
    assert (found and found[0]) == expected


def test_the_job_may_be_longer_than_the_recording() -> None:
    made = steps(*NORM_AND_GEMM)
    wall = judged(made)["job"]["wall_ns"]
    assert judged(made, 10 * wall)["job"]["job_ns"] == 10 * wall


def test_a_long_job_leaves_its_cold_start_alone(sample_traces: Path) -> None:
    attribution = tprof.load(sample_traces / "h200-torch.json.gz").attribution
    assert judged(attribution)["job"]["cold_start"] == "prepare it"
    assert judged(attribution, 3600 * 10**9)["job"]["cold_start"] == "leave it"  # 13 s of an hour


# ---- real recordings


def test_a_cold_start_is_no_case_for_a_kernel(sample_traces: Path) -> None:
    found = advise(tprof.load(sample_traces / "h200-torch.json.gz").attribution, Options()).to_dict()
    assert found["answer"].startswith("do not write a kernel")
    assert found["job"]["of_job_share"] > 0.99  # seconds of compiling and tuning for 210 us of work
    assert found["job"]["shape_cold_ns"] > 10**8
    assert verdict(found, "aten::addmm") == "do not"
    assert verdict(found, "matmul") == "have"


def test_a_vision_transformer_has_one_operator_and_it_is_bound_by_the_host(cases: Path) -> None:
    path = cases / "torch_real" / "tl_h100__Falconsai_nsfw_image_detection__1016002.json.gz"
    found = advise(tprof.load(path).attribution, Options()).to_dict()
    assert [r["operator"] for r in found["operators"] if r["verdict"] == "write"] == ["aten::native_layer_norm"]
    assert chain({"chains": found["chains"][:1]})[:2] == ("add → native_layer_norm", 25)
    assert "works 15% of the warm time" in found["answer"]


def test_a_training_step_without_shapes_must_be_profiled_again(cases: Path) -> None:
    found = advise(
        tprof.load(cases / "torch_real" / "hta_ns_resolution_trace.json.gz").attribution, Options()
    ).to_dict()
    assert found["answer"].startswith("profile first: 19% of the work")
    assert chain({"chains": found["chains"][:1]}) == (
        "add_ → mul → threshold_backward",
        75,
        13_117_015,
        "profile first",
    )


def test_shares_and_bounds_hold_on_every_real_trace(cases: Path) -> None:
    for path in sorted((cases / "torch_real").glob("*.json*")):
        if path.name != "truth.json":
            attribution = tprof.load(path).attribution
            rows = advise(attribution, Options()).to_dict()["operators"]
            assert sum(row["of_work_share"] for row in rows) == pytest.approx(1.0 if rows else 0.0)
            assert all(0 <= row["chained_share"] <= 1 for row in rows)
            assert all(row["of_warm_share"] < 1.001 for row in rows)
