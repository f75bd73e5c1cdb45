"""Each finding that only tprof's recorder can show: a run that triggers it, and one alike that must not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from support.runs import Writer, run_json

import tprof

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MS = 1_000_000
Row = dict[str, Any]


def search(
    w: Writer, kernel: str, key: dict[str, int], start: int, *, request: int = 0, hits: bool | None = None
) -> None:
    """A search of 100 ms with two candidates; compiled, found on disk, or known already."""
    attrs = {"configs": 2, "key_names": list(key)}
    span = w.begin("autotune", "autotune", kernel, start, request=request, **attrs)
    for i, tile in enumerate((32, 64)):
        t = start + i * 50 * MS
        candidate = w.begin(
            "candidate", "autotune", kernel, t, parent=span, request=request, text=f"B: {tile}", config={"B": tile}
        )
        if hits is not None:
            w.span(
                "jit", "compile", kernel, t, t + 10 * MS, parent=candidate, request=request, done={"cache_hit": hits}
            )
        w.end(candidate, t + 50 * MS, timings_ms=[0.02 - i * 0.01, 0.019, 0.021])
    w.end(
        span, start + 100 * MS, key=[str(v) for v in key.values()] + ["torch.float16"], best="B: 64", config={"B": 64}
    )


def variant(w: Writer, number: int, start: int, *, n: str = "", constant: int | None = None, hit: bool = False) -> None:
    """A compile of 10 ms of `m.add`, whose argument `n` has hints, or is a constexpr."""
    jit = w.begin("jit", "compile", "add", start)
    last = (
        {"name": "n", "type": "constexpr", "value": constant}
        if constant
        else {"name": "n", "type": "i32", "hints": n.split()}
    )
    arguments = [{"name": "x", "type": "*fp32", "hints": ["tt.divisibility=16"]}, last]
    w.lines.append({
        "type": "specialization", "id": number, "span": jit, "function": "m.add", "file": "m.py", "line": 3,
        "arguments": arguments, "options": {"num_warps": 4},
    })  # fmt: skip
    w.kernel(number, "add")
    w.end(jit, start + 10 * MS, cache_hit=hit, kernel=number, specialization=number)


def look_ups(w: Writer, hits: list[bool], ns: int, error: str | None = None) -> None:
    """Compiles of 50 ms that each begin with a look-up, and end with a store."""
    for i, hit in enumerate(hits):
        t = i * 60 * MS
        jit = w.begin("jit", "compile", "add", t)
        w.span("cache", "cache", "add.json", t, t + ns, parent=jit, op="get", key="K", done={"hit": hit})
        store = w.begin("cache", "cache", "add.json", t + 25 * MS, parent=jit, op="put", key="K")
        w.end(store, t + 25 * MS + ns, ok=error is None, error=error)
        w.end(jit, t + 50 * MS, cache_hit=hit)


def requests(w: Writer, number: int) -> list[int]:
    """Requests of 200 ms, one after the other."""
    found = []
    for i in range(number):
        span = w.begin("request", None, f"L={i}", i * 200 * MS)
        w.span("serve", None, f"L={i}", i * 200 * MS, (i + 1) * 200 * MS, request=span)
        w.end(span, (i + 1) * 200 * MS)
        found.append(span)
    return found


@dataclass
class Run:
    """Journals of a run's processes."""

    folder: Path
    processes: list[Writer]

    def findings(self) -> dict[str, Row]:
        run_json(self.folder, environment={"TRITON_CACHE_DIR": "/var/triton"})
        for process in self.processes:
            process.write(self.folder)
        return {row["code"]: row for row in tprof.load(self.folder, cache=False).summary().payload["findings"]}


def processes(*builds: Callable[[Writer], object]) -> list[Writer]:
    found = [Writer(pid=100 + i) for i in range(len(builds))]
    for writer, build in zip(found, builds, strict=True):
        build(writer)
    return found


def keyed(*keys: int, served: bool = True, apart: bool = True) -> Callable[[Writer], None]:
    """Searches for some values of M, each in a request of its own, or all in the first."""

    def build(w: Writer) -> None:
        spans = requests(w, len(keys)) if served else [0] * len(keys)
        for i, m in enumerate(keys):
            search(w, "mm", {"M": m, "N": 64}, i * 200 * MS, request=spans[i if apart else 0])

    return build


PAIRS: dict[str, tuple[Callable[[], list[Writer]], Callable[[], list[Writer]]]] = {
    "tuning-repeated": (
        lambda: processes(lambda w: search(w, "mm", {"M": 8}, 0), lambda w: search(w, "mm", {"M": 8}, 50 * MS)),
        lambda: processes(lambda w: search(w, "mm", {"M": 8}, 0), lambda w: search(w, "mm", {"M": 16}, 50 * MS)),
    ),
    "autotune-key-unbounded": (lambda: processes(keyed(8, 16, 24)), lambda: processes(keyed(8, 16, 24, apart=False))),
    "specialization-churn": (
        lambda: processes(lambda w: (variant(w, 1, 0, n="tt.divisibility=16"), variant(w, 2, 20 * MS))),
        lambda: processes(lambda w: (variant(w, 1, 0), variant(w, 2, 20 * MS))),
    ),
    "cache-cold": (
        lambda: processes(lambda w: look_ups(w, [False] * 3, MS // 5)),
        lambda: processes(lambda w: look_ups(w, [False, False, True], MS // 5)),
    ),
    "cache-unwritable": (
        lambda: processes(lambda w: look_ups(w, [False] * 3, MS // 5, "PermissionError: /var/triton")),
        lambda: processes(lambda w: look_ups(w, [False] * 3, MS // 5)),
    ),
    "cache-slow": (
        lambda: processes(lambda w: look_ups(w, [True] * 3, 20 * MS)),
        lambda: processes(lambda w: look_ups(w, [True] * 3, MS // 5)),
    ),
    "compiled-by-many": (
        lambda: processes(lambda w: variant(w, 1, 0), lambda w: variant(w, 1, 5 * MS)),
        lambda: processes(lambda w: variant(w, 1, 0), lambda w: variant(w, 1, 5 * MS, hit=True)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("code", PAIRS)
def test_a_finding_is_triggered_and_not_by_a_run_alike(code: str, tmp_path: Path) -> None:
    triggers, alike = PAIRS[code]
    found = Run(tmp_path / "triggers", triggers()).findings()
    assert code in found
    assert 0 < found[code]["cost_ns"] <= found[code]["end_ns"] - found[code]["start_ns"]
    assert code not in Run(tmp_path / "alike", alike()).findings()


# ---- autotuning


def test_a_search_whose_candidates_all_lie_on_disk_was_done_before(tmp_path: Path) -> None:
    found = Run(tmp_path / "warm", processes(lambda w: search(w, "mm", {"M": 8}, 0, hits=True))).findings()
    row = found["tuning-repeated"]
    assert (row["cost_ns"], row["basis"], row["kernel"]) == (100 * MS, "inferred", "mm")
    assert "TRITON_CACHE_AUTOTUNING=1" in row["fix"]
    cold = Run(tmp_path / "cold", processes(lambda w: search(w, "mm", {"M": 8}, 0, hits=False))).findings()
    assert "tuning-repeated" not in cold


def test_results_that_are_kept_on_disk_are_not_repeated(tmp_path: Path) -> None:
    def build(w: Writer) -> None:
        w.span("autotune_cache", "cache", "mm", 0, MS, done={"hit": False})
        search(w, "mm", {"M": 8}, 2 * MS, hits=True)

    assert "tuning-repeated" not in Run(tmp_path / "run", processes(build)).findings()


def test_the_growing_argument_is_named_with_its_values(tmp_path: Path) -> None:
    row = Run(tmp_path / "run", processes(keyed(512, 2048, 777))).findings()["autotune-key-unbounded"]
    assert row["title"] == "M is in the autotune key of mm: every new value is tuned anew"
    assert (row["cost_ns"], row["count"], row["basis"]) == (200 * MS, 3, "inferred")
    assert "512, 2048, 777" in row["why"]
    assert 'key=["N"]' in row["fix"]


def test_without_requests_more_values_are_needed(tmp_path: Path) -> None:
    three = Run(tmp_path / "three", processes(keyed(8, 16, 24, served=False))).findings()
    assert "autotune-key-unbounded" not in three
    assert "autotune-key-unbounded" in Run(tmp_path / "four", processes(keyed(8, 16, 24, 32, served=False))).findings()


# ---- variants and the disk cache


def test_churn_names_the_argument_and_what_it_was(tmp_path: Path) -> None:
    triggers, _ = PAIRS["specialization-churn"]
    row = Run(tmp_path / "run", triggers()).findings()["specialization-churn"]
    assert row["title"] == "add was compiled again because of n alone"
    assert row["why"] == "n was divisible by 16, neither 1 nor divisible by 16: 1 more variant"
    assert (row["cost_ns"], row["kernel"]) == (10 * MS, "add")
    assert 'do_not_specialize=["n"]' in row["fix"]


@pytest.mark.parametrize(("values", "churns"), [((64, 65, 66), True), ((64, 128), False)])
def test_a_constexpr_with_many_values_is_a_size(tmp_path: Path, values: tuple[int, ...], churns: bool) -> None:  # noqa: FBT001  a parameter of the test
    def build(w: Writer) -> None:
        for i, value in enumerate(values):
            variant(w, i + 1, 20 * MS * i, constant=value)

    found = Run(tmp_path / "run", processes(build)).findings()
    assert ("specialization-churn" in found) == churns
    if churns:
        assert "make n a runtime argument" in found["specialization-churn"]["fix"]


def test_a_cold_cache_says_where_it_was_looked_for(tmp_path: Path) -> None:
    triggers, _ = PAIRS["cache-cold"]
    row = Run(tmp_path / "run", triggers()).findings()["cache-cold"]
    assert row["why"] == "3 of 3 look-ups missed, as in a first run; TRITON_CACHE_DIR is /var/triton"
    assert (row["cost_ns"], row["count"]) == (150 * MS, 3)


def test_an_unwritable_cache_says_why(tmp_path: Path) -> None:
    triggers, _ = PAIRS["cache-unwritable"]
    assert "PermissionError: /var/triton" in Run(tmp_path / "run", triggers()).findings()["cache-unwritable"]["why"]


def test_kernels_from_disk_are_not_called_compiled(tmp_path: Path) -> None:
    row = Run(tmp_path / "run", processes(lambda w: look_ups(w, [True] * 3, MS // 5))).findings()["cold-compile"]
    assert row["title"] == "compiled kernels were fetched from disk"


# ---- real recordings


@pytest.mark.parametrize("file", ["h200-nsight.sqlite.gz", "h200-torch.json.gz"])
def test_the_first_finding_of_the_h200_is_its_cold_requests(sample_traces: Path, file: str) -> None:
    rows = tprof.load(sample_traces / file).summary().payload["findings"]
    codes = [row["code"] for row in rows]
    assert codes[:4] == ["cold-request", "compile-in-request", "graph-compile-in-request", "tuning-in-request"]
    assert (rows[0]["title"], rows[0]["count"]) == ("3 of 8 requests were cold", 3)
    assert "tuning-tops-kernels" in codes
    assert not [code for code in codes if code.startswith(("idle-", "cold-")) and code != "cold-request"]
    assert codes[-1] == "tuning-key-unknown"
