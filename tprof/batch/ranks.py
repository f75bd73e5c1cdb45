"""Processes of one job compared: who was late for collectives, who was cold before them, who compiled what others did.

Nothing here holds the rows of more than one source.
"""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import TYPE_CHECKING, Final

import numpy as np

from tprof.analyze.devices import process_label
from tprof.analyze.result import Row, few, weakest
from tprof.model import codes, ints

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from tprof.batch.folder import Folder

MATTERS: Final = 0.01  # of the wall clock; less is not worth a line
_FAIR: Final = 1.5  # times its share of all waiting: less is no straggler
_SLOW: Final = 1.1  # times the median rank's device work


def rank_rows(folder: Folder) -> list[Row]:
    """One row per process of every source that was cold or had device work, the longest wait that it caused first.

    `late_ns` is the time from the first rank's begin to its own of the collectives that it began last, `late_cold_ns`
    the part of it in which it was cold; both null where there is nobody to compare with, or no common clock.
    """
    found = ({"trace": slug, **row} for slug, data in folder.parts("processes") for row in data.to_pylist())
    rows = [row for row in found if row["cold_ns"] or row["work_ns"] or row["collective_ns"]]  # others did nothing here
    for number, job in enumerate(sorted(_jobs(rows), key=lambda job: len(job) < 2), 1):  # first those of several
        for row in job:
            row |= {"job": number, "collectives": None, "last_in": None, "late_ns": None, "late_cold_ns": None}
            row["name"] = process_label(row["pid"], row["rank"])
        _compare(folder, job)
    return sorted(rows, key=lambda r: (r["job"], -(r["late_ns"] or 0), -1 if r["rank"] is None else r["rank"]))


def _jobs(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Processes that ran at one time. Without a clock those that have a rank are one job, and others stand alone."""
    end = None
    job: list[Row] = []
    for row in sorted((r for r in rows if r["utc_start_ns"] is not None), key=lambda r: r["utc_start_ns"]):
        if end is not None and row["utc_start_ns"] >= end:
            yield job
            job, end = [], None
        job.append(row)
        end = max(end or 0, row["utc_start_ns"] + row["wall_ns"])
    yield from [job] if job else []
    blind = [r for r in rows if r["utc_start_ns"] is None]
    ranked = [r for r in blind if r["rank"] is not None]
    yield from [ranked] if ranked else []
    yield from ([r] for r in blind if r["rank"] is None)


def _compare(folder: Folder, job: list[Row]) -> None:
    """Fill in who was late."""
    rows = {(row["trace"], row["host"], row["pid"]): row for row in job if row["collective_ns"]}
    if len(rows) < 2 or any(row["utc_start_ns"] is None for row in rows.values()):
        return
    arrivals: dict[str, _Arrivals] = {}
    number = {key: i for i, key in enumerate(rows)}
    for slug, data in folder.parts("collectives"):
        for (host, pid), name, part in _groups(data):
            if (i := number.get((slug, host, pid))) is not None:
                arrivals.setdefault(name, _Arrivals()).add(i, ints(part, "utc_start_ns"), ints(part, "cold_ns"))
    whole = [a for a in arrivals.values() if a.comparable]
    for key, row in rows.items():
        found = [a.late(number[key]) for a in whole]
        names = ("last_in", "late_ns", "late_cold_ns")
        row["collectives"] = sum(len(a.first) for a in whole)
        row |= {name: sum(f[i] for f in found) for i, name in enumerate(names)}


def _groups(data: pa.Table) -> Iterator[tuple[tuple[str, int], str, pa.Table]]:
    """Rows of each process and name."""
    name, names = codes(data, "name")
    process = list(zip(data["host"].to_pylist(), data["pid"].to_pylist(), strict=True))
    known = {key: i for i, key in enumerate(dict.fromkeys(process))}
    of = np.array([known[key] for key in process], np.int64)
    for key, i in known.items():
        for code in np.unique(name[of == i]).tolist():
            yield key, names[code], data.take(np.flatnonzero((of == i) & (name == code)))


class _Arrivals:
    """When the ranks began each collective of one name: the first and the last of those seen so far."""

    def __init__(self) -> None:
        self.first = self.last = self.who = self.cold = np.empty(0, np.int64)
        self._ranks = 0
        self._counts: set[int] = set()

    @property
    def comparable(self) -> bool:
        """The n-th of every rank is one collective: several ranks, and none is lost."""
        return self._ranks > 1 and len(self._counts) == 1

    def add(self, rank: int, start: np.ndarray, cold: np.ndarray) -> None:
        """Another rank's."""
        self._ranks += 1
        self._counts.add(len(start))
        if self._ranks == 1:
            self.first, self.last, self.who, self.cold = start, start, np.full(len(start), rank), cold
        elif len(self._counts) == 1:
            later = start > self.last
            self.first = np.minimum(self.first, start)
            self.last = np.where(later, start, self.last)
            self.who, self.cold = np.where(later, rank, self.who), np.where(later, cold, self.cold)

    def late(self, rank: int) -> tuple[int, int, int]:
        """How often a rank began last, for how long others waited then, and what of that it was cold."""
        mine = self.who == rank
        waited = (self.last - self.first)[mine]
        return int(mine.sum()), int(waited.sum()), int(np.minimum(waited, self.cold[mine]).sum())


def rank_findings(rows: Iterable[Row]) -> Iterator[Row]:
    """Stragglers, and ranks whose cold start the others waited for."""
    jobs: dict[int, list[Row]] = {}
    for row in rows:
        jobs.setdefault(row["job"], []).append(row)
    for job in jobs.values():
        late = [row for row in job if row["late_ns"]]
        total = sum(row["late_ns"] for row in late)
        for row in late:
            if row["late_ns"] >= max(MATTERS * row["wall_ns"], _FAIR * total / len(job)):
                yield _straggler(row, job)
        if not late and len(job) > 1:
            yield from _slow(job)


def _straggler(row: Row, job: list[Row]) -> Row:
    share, cold = row["late_cold_ns"] / row["late_ns"], row["late_cold_ns"] >= row["late_ns"] / 2
    why = f"it began {row['last_in']} of {row['collectives']} collectives last"
    usual = median(r["work_ns"] for r in job)
    if cold:
        return _finding(
            "rank-skew", f"{row['name']} was cold before a collective", row,
            row["late_cold_ns"], f"{why}, and was cold in {share:.0%} of the time that the first rank waited",
            "warm up every rank, then a barrier, before the first collective that is timed",
        )  # fmt: skip
    slow = f"; its device worked {_times(row, usual)}" if usual else ""
    return _finding(
        "straggler", f"{row['name']} was late for collectives", row, row["late_ns"], why + slow,
        "compare its `idle` and `kernels` with another rank's: load, clocks, or its host",
    )  # fmt: skip


def _slow(job: list[Row]) -> Iterator[Row]:
    """Without collectives or a clock: ranks whose device worked longer than the median's."""
    usual = median(row["work_ns"] for row in job)
    for row in job:
        more = row["work_ns"] - usual
        if row["rank"] is not None and row["work_ns"] > _SLOW * usual and more >= MATTERS * row["wall_ns"]:
            yield _finding(
                "straggler", f"{row['name']}'s device worked longer", row,
                round(more), _times(row, usual),
                "compare its `kernels` with another rank's: load, clocks",
            )  # fmt: skip


def _times(row: Row, usual: float) -> str:
    return f"{row['work_ns'] / usual:.2f} times as long as the median rank's" if usual else "and the median's did not"


def _finding(code: str, title: str, row: Row, cost_ns: int, why: str, fix: str) -> Row:
    return {
        "code": code, "title": title, "cost_ns": cost_ns, "share": cost_ns / row["wall_ns"],
        "of": f"{row['name']}'s wall", "why": why, "fix": fix, "basis": "inferred", "trace": row["trace"],
    }  # fmt: skip


def duplicate_rows(folder: Folder, ranks: Iterable[Row]) -> list[Row]:
    """Kernels that several processes of one job compiled, the most time that was spent again first."""
    jobs = {(row["trace"], row["host"], row["pid"]): (row["job"], row["name"]) for row in ranks}
    found: dict[tuple[int, str, str | None], dict[str, list[Row]]] = {}
    for slug, data in folder.parts("compiles"):
        for row in data.to_pylist():
            if (of := jobs.get((slug, row["host"], row["pid"]))) is not None:
                group = found.setdefault((of[0], row["kernel"], row["hash"]), {})
                group.setdefault(f"{of[1]} of {slug}", []).append(row | {"rank": of[1]})
    rows = [_duplicate(*key, group) for key, group in found.items() if len(group) > 1]
    return sorted(rows, key=lambda r: (-r["repeated_ns"], r["kernel"], r["hash"] or ""))


def _duplicate(job: int, kernel: str, digest: str | None, group: dict[str, list[Row]]) -> Row:
    compiles = [row for rows in group.values() for row in rows]
    spent = [row["wall_ns"] for row in compiles]
    return {
        "job": job, "kernel": kernel, "processes": len(group), "compiles": len(compiles), "total_ns": sum(spent),
        "repeated_ns": sum(spent) - max(spent), "ranks": few((row["rank"] for row in compiles), 8), "hash": digest,
        "basis": "recorded" if digest else "inferred",
    }  # fmt: skip


def duplicate_findings(duplicates: Iterable[Row], ranks: Sequence[Row]) -> Iterator[Row]:
    """One row for each job in which kernels were compiled again."""
    wall: Counter[int] = Counter()
    for row in ranks:
        wall[row["job"]] += row["wall_ns"]
    jobs: dict[int, list[Row]] = {}
    for row in duplicates:
        jobs.setdefault(row["job"], []).append(row)
    for job, rows in jobs.items():
        cost = sum(row["repeated_ns"] for row in rows)
        if cost >= MATTERS * wall[job]:
            yield {
                "code": "compiled-by-many",
                "title": f"same kernels compiled by {max(r['processes'] for r in rows)} processes",
                "cost_ns": cost, "share": cost / wall[job], "of": "wall of all processes",
                "why": f"{few(r['kernel'] for r in rows)}: all but the longest compile of each repeated another's",
                "fix": "let one rank compile first, then a barrier; one local TRITON_CACHE_DIR for a machine's ranks",
                "basis": weakest(rows), "trace": None,
            }  # fmt: skip
