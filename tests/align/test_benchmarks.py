"""Benchmark loops are told from work that looks like them, in the dialects of both profilers."""

from __future__ import annotations

from functools import partial
from itertools import product

import pytest
from support.synthetic import (
    DIALECTS,
    FILLS,
    FLOAT_FILL,
    FLUSH,
    LARGE_MEMSET,
    SMALL_MEMSET,
    TUNING,
    WORK,
    Dialect,
    Recording,
    do_bench,
    inductor_bench,
    kernels,
    timed_steps,
    triton,
)

from tprof.align import align

each_dialect = pytest.mark.parametrize("dialect", DIALECTS)
Wrong = list[tuple[str, str, str]]


def candidates(r: Recording) -> int:
    return align(r.trace()).candidates.num_rows


# ---- what must stay work


@each_dialect
@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("size", [1, 3, 4, 10])
def test_timed_training_step_is_work(dialect: Dialect, size: int, fill: str) -> None:
    step = kernels(size)
    for steps, sync_every in product((3, 5, 8, 20, 100), (0, 5, 10)):
        r = Recording(dialect)
        timed_steps(r, partial(r.launch, *step), steps, partial(r.launch, FILLS[fill]), sync_every)
        assert r.wrong() == [], (steps, sync_every)


@each_dialect
@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("sync_every", [0, 5])
def test_timed_triton_step_is_work(dialect: Dialect, sync_every: int, fill: str) -> None:
    r = Recording(dialect)
    timed_steps(r, lambda: r.launch(triton("fwd"), triton("bwd")), 10, lambda: r.launch(FILLS[fill]), sync_every)
    assert r.wrong() == []


@each_dialect
@pytest.mark.parametrize("fill", FILLS)
def test_step_that_zeroes_before_it_and_synchronizes_each_time_is_work(dialect: Dialect, fill: str) -> None:
    r, step = Recording(dialect), kernels(4)
    for _ in range(30):
        r.launch(FILLS[fill])
        r.record()
        r.launch(*step)
        r.record()
        r.sync()
        r.read_times(1)
    assert r.wrong() == []


@each_dialect
@pytest.mark.parametrize("size", [1, 2, 12])
def test_decode_loop_timed_per_step_is_work(dialect: Dialect, size: int) -> None:
    r, step = Recording(dialect), kernels(size)
    timed_steps(r, lambda: r.launch(*step), 100)
    assert r.wrong() == []


@each_dialect
def test_graph_replays_are_work(dialect: Dialect) -> None:
    r, step = Recording(dialect), kernels(3)
    timed_steps(r, lambda: r.graph(*step), 50, lambda: r.launch(FLOAT_FILL))
    timed_steps(r, lambda: r.graph(*step), 50, lambda: r.launch(FLUSH))
    assert r.wrong() == []


@each_dialect
@pytest.mark.parametrize("memset", [SMALL_MEMSET, LARGE_MEMSET])
def test_two_streams_with_memsets_are_work(dialect: Dialect, memset: object) -> None:
    r, step = Recording(dialect), kernels(2)
    for _ in range(40):
        r.record()
        r.launch(step[0], stream=7)
        r.record()
        r.launch(memset, stream=8)  # type: ignore[arg-type]
        r.record()
        r.launch(step[1], stream=8)
        r.record()
        r.launch(memset, stream=7)  # type: ignore[arg-type]
    r.sync()
    assert r.wrong() == []


@each_dialect
@pytest.mark.parametrize("count", [3, 10, 50])
def test_warm_loop_of_a_user_is_work(dialect: Dialect, count: int) -> None:
    r, step = Recording(dialect), kernels(2)
    for _ in range(count):
        r.launch(*step)
    r.sync()
    for _ in range(count):
        r.launch(FLOAT_FILL, *step)
    r.sync()
    assert r.wrong() == []


@each_dialect
def test_a_step_of_five_microbatches_in_one_pair_is_work(dialect: Dialect) -> None:
    r, step = Recording(dialect), kernels(3)
    timed_steps(r, lambda: r.launch(*(FLOAT_FILL, *step) * 5), 20, lambda: r.launch(FLOAT_FILL), sync_every=5)
    assert r.wrong() == []


# ---- what must be found


@each_dialect
@pytest.mark.parametrize("repetitions", [1, 2, 3, 1000])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_tritons_benchmark_is_tuning(dialect: Dialect, size: int, repetitions: int) -> None:
    r = Recording(dialect)
    unit = [triton("matmul", registers=100 + i) for i in range(size)]
    r.launch(triton("before"))
    do_bench(r, unit, repetitions)
    r.launch(*unit)
    assert r.wrong() == []
    assert candidates(r) == 1


@each_dialect
@pytest.mark.parametrize("ms", [60, 400])
def test_slow_candidate_with_one_repetition_is_tuning(dialect: Dialect, ms: int) -> None:
    r = Recording(dialect)
    slow = triton(ns=ms * 1_000_000)
    do_bench(r, [slow], 1, warmup=1)
    r.launch(slow)
    r.sync()
    assert r.wrong() == []


@each_dialect
@pytest.mark.parametrize("repetitions", [1, 3, 40])
@pytest.mark.parametrize("size", [1, 4, 5, 16])
def test_inductors_benchmark_is_tuning(dialect: Dialect, size: int, repetitions: int) -> None:
    r, unit = Recording(dialect), kernels(size)
    inductor_bench(r, unit, repetitions)
    r.launch(*unit)
    r.sync()
    assert r.wrong() == []
    assert candidates(r) == 1


@each_dialect
@pytest.mark.parametrize("bench", [do_bench, inductor_bench])
@pytest.mark.parametrize("repetitions", [1, 5, 30])
def test_candidates_that_launch_the_very_same_operation_stay_apart(
    dialect: Dialect, bench: object, repetitions: int
) -> None:
    r = Recording(dialect)
    for _ in range(3):
        bench(r, [triton()], repetitions)  # type: ignore[operator]
        r.pause(300_000)
    r.launch(triton())
    r.sync()
    assert r.wrong() == []
    assert candidates(r) == 3


@each_dialect
def test_winner_is_work_and_so_is_what_follows_the_next_search(dialect: Dialect) -> None:
    r = Recording(dialect)
    for _ in range(2):
        for registers in (64, 128):
            do_bench(r, [triton(registers=registers)], 20)
        r.launch(triton(registers=128))
        r.launch(*kernels(2))
    r.launch(triton(registers=128))
    assert r.wrong() == []
    assert candidates(r) == 4


@each_dialect
@pytest.mark.parametrize("repetitions", [1, 30])
def test_a_kernel_that_zeroes_its_output_first_is_found(dialect: Dialect, repetitions: int) -> None:
    r = Recording(dialect)
    do_bench(r, [FLOAT_FILL, triton()], repetitions)
    r.launch(FLOAT_FILL, triton())
    assert r.wrong() == []


@each_dialect
def test_work_with_the_very_operation_that_is_tuned_next_stays_work(dialect: Dialect) -> None:
    r = Recording(dialect)
    for _ in range(5):
        r.launch(triton())
    r.sync()
    for _ in range(2):
        r.launch(triton())
        do_bench(r, [triton()], 20)
        r.launch(triton())
    assert r.wrong() == []


@each_dialect
def test_a_launch_whose_device_event_was_lost_is_no_flush(dialect: Dialect) -> None:
    r, step = Recording(dialect), kernels(2)
    timed_steps(r, lambda: r.launch(*step), 20, lambda: r.launch(FLUSH, why="lost"))
    r.launch(FLUSH)
    r.device = [d for d in r.device if d[5] != "lost"]
    assert r.wrong() == []


@each_dialect
def test_work_before_and_after_a_benchmark_stays_work(dialect: Dialect) -> None:
    r, step = Recording(dialect), kernels(4)
    timed_steps(r, lambda: r.launch(*step), 20, lambda: r.launch(FLOAT_FILL))
    do_bench(r, [triton()], 50)
    r.launch(triton())
    timed_steps(r, lambda: r.launch(*step), 20, lambda: r.launch(FLOAT_FILL))
    assert r.wrong() == []
    assert candidates(r) == 1


@each_dialect
@pytest.mark.parametrize("seed", range(12))
def test_a_lost_record_in_a_hundred_changes_no_label(dialect: Dialect, seed: int) -> None:
    r = Recording(dialect)
    for registers in (64, 128, 160):
        do_bench(r, [triton(registers=registers)], 120)
    r.launch(triton(registers=160))
    inductor_bench(r, kernels(1), 120)
    inductor_bench(r, kernels(6), 120)
    r.launch(*kernels(6))
    r.sync()
    assert {d[5] for d in r.device} == {WORK, TUNING}
    assert r.without_records(0.01, seed).wrong() == []
