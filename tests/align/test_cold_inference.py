"""Cold phases of plain traces: module loads and subprocesses (Nsight), lazy loads and compiler's marks (torch)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from support.small import call, kernel, span, trace

from tprof.align import align

if TYPE_CHECKING:
    from tprof.model import Trace

MS = 1_000_000
Row = dict[str, Any]


def launch(at: int, number: int, name: str = "cuLaunchKernelEx") -> Row:
    return call(at, at + 10_000, name, kind="driver", correlation=number)


def ran(at: int, number: int, name: str = "matmul") -> Row:
    return kernel(at + 20_000, at + 50_000, name, correlation=number)


def load(at: int, name: str = "cuModuleLoadData") -> Row:
    return call(at, at + 200_000, name, kind="driver")


def os(start: int, end: int, name: str) -> Row:
    return span(start, end, name, "osrt")


def spent(found: Trace) -> dict[str, int]:
    by: dict[str, int] = {}
    for row in found.spans.to_pylist():
        by[row["phase"]] = by.get(row["phase"], 0) + row["end_ns"] - row["start_ns"]
    return by


WARM = (launch(0, 1), ran(0, 1, "other"))


def nsight(*rows: Row, at: int = 300 * MS, kernel_name: str = "matmul") -> Trace:
    """A warm launch at 0, what the rows say, and a module load right before the first launch of a kernel at `at`."""
    host = [WARM[0], *rows, load(at - 300_000), launch(at, 2)]
    return align(trace(host, [WARM[1], ran(at, 2, kernel_name)]))


def test_ptxas_before_a_load_is_a_compile() -> None:
    found = nsight(os(100 * MS, 101 * MS, "posix_spawn"), os(102 * MS, 250 * MS, "waitpid"))
    at = 300 * MS
    assert spent(found) == {"compile": at - 300_000 - 10_000, "module_load": 300_000}
    (use,) = found.compiles.to_pylist()
    assert (use["kernel"], use["cache_hit"], use["loads"], use["compile_ns"]) == ("matmul", False, 1, at - 310_000)


def test_a_load_without_ptxas_is_a_disk_hit_where_subprocesses_are_recorded() -> None:
    found = nsight(os(100 * MS, 100 * MS + 50, "read"))
    assert set(spent(found)) == {"cache", "module_load"}
    assert found.compiles["cache_hit"].to_pylist() == [True]


def test_without_subprocess_rows_it_cannot_be_told_and_is_compile() -> None:
    found = nsight()
    assert set(spent(found)) == {"compile", "module_load"}
    assert found.compiles["cache_hit"].to_pylist() == [None]


def test_a_long_wait_that_nobody_spawned_is_the_launchers_build() -> None:
    found = nsight(
        os(50 * MS, 51 * MS, "posix_spawn"),
        os(52 * MS, 100 * MS, "waitpid"),
        os(150 * MS, 250 * MS, "waitpid"),
    )
    by = spent(found)
    assert by["launcher_build"] == 150 * MS  # from the end of ptxas to the end of the wait
    assert by["compile"] == 100 * MS - 10_000


def test_the_load_call_is_recorded_and_knows_its_kernel() -> None:
    (told,) = [s for s in nsight().spans.to_pylist() if s["basis"] == "recorded"]
    assert (told["phase"], told["kernel"], told["end_ns"] - told["start_ns"]) == ("module_load", "matmul", 200_000)


def test_a_generated_kernels_load_ends_a_graph_compile() -> None:
    found = nsight(kernel_name="triton_per_fused_add_0")
    by = spent(found)
    assert by["graph_compile"] > 290 * MS
    assert found.compiles["graph_compile"].to_pylist() == [True]


def test_no_load_no_cold_however_long_the_pause_and_new_the_kernel() -> None:
    host = [WARM[0], launch(900 * MS, 2)]
    found = align(trace(host, [WARM[1], ran(900 * MS, 2, "never_seen_before")]))
    assert (found.spans.num_rows, found.compiles.num_rows) == (0, 0)


def test_a_stretch_does_not_reach_back_beyond_the_request() -> None:
    host = [WARM[0], span(200 * MS, 400 * MS, "request#1"), load(300 * MS - 300_000), launch(300 * MS, 2)]
    found = align(trace(host, [WARM[1], ran(300 * MS, 2)]))
    assert min(s["start_ns"] for s in found.spans.to_pylist()) == 200 * MS


def torch(*rows: Row, name: str = "matmul") -> Trace:
    host = [WARM[0], *rows, launch(300 * MS, 2)]
    return align(trace(host, [WARM[1], ran(300 * MS, 2, name)], format="torch"))


def lazy(at: int) -> Row:
    return span(at, at + 100_000, "Lazy Function Loading", "overhead", thread=1)


def test_a_lazy_load_before_a_triton_launch_ends_a_compile_or_load() -> None:
    found = torch(lazy(299 * MS))
    assert spent(found) == {"compile": 300 * MS - 10_000}
    (use,) = found.compiles.to_pylist()
    assert (use["kernel"], use["loads"], use["cache_hit"]) == ("matmul", None, None)
    assert (use["cache_ns"], use["launcher_build_ns"], use["module_load_ns"]) == (None, None, None)


def test_a_lazy_load_before_a_librarys_kernel_makes_nothing_cold() -> None:
    assert spent(torch(lazy(299 * MS), name="nvjet_sm90_tst")) == {}


def test_a_short_stretch_before_a_lazy_load_is_not_worth_explaining() -> None:
    host = [launch(299 * MS + 500_000, 1), lazy(299 * MS + 700_000), launch(300 * MS, 2)]
    found = align(trace(host, [ran(299 * MS + 500_000, 1, "other"), ran(300 * MS, 2)], format="torch"))
    assert spent(found) == {}


def test_marks_of_a_graph_compiler_reach_to_the_call_of_what_it_compiled() -> None:
    rows = [
        span(100 * MS, 100 * MS + 50_000, "dynamo_data: compile_id=0/0"),
        span(299 * MS, 301 * MS, "## Call CompiledFxGraph fabc ##"),
    ]
    by = spent(torch(*rows, name="triton_per_fused_add_0"))
    assert by == {"graph_compile": 299 * MS - 10_000}


def test_a_capture_reaches_from_its_begin_to_the_instantiation() -> None:
    host = [
        call(10, 20, "cudaStreamBeginCapture"),
        call(30, 40, "cudaStreamEndCapture"),
        call(50, 90, "cudaGraphInstantiate"),
        call(10, 15, "cudaStreamBeginCapture", thread=1),
        call(20, 25, "cudaStreamEndCapture", thread=1),
    ]
    found = align(trace(host)).spans.to_pylist()
    assert {s["phase"] for s in found} == {"graph_capture"}
    for thread, expected in ((0, (10, 80)), (1, (10, 15))):
        mine = [s for s in found if s["thread"] == thread]
        assert (min(s["start_ns"] for s in mine), sum(s["end_ns"] - s["start_ns"] for s in mine)) == expected
