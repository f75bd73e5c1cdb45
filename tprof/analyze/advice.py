"""Which operators are worth a Triton kernel, and which are not: a judgement from a profile, before a kernel exists.

Every bound errs on the side of the kernel: it is refused only where even one that took no time would not pay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tprof.analyze.advice_chains import chain_rows
from tprof.analyze.census import Census
from tprof.analyze.kernels import working_rows
from tprof.analyze.latency import SMALL_SHARE
from tprof.analyze.operators import operator_rows
from tprof.analyze.requests import device_sets, requests
from tprof.analyze.result import Result, few, source_rows, weakest
from tprof.analyze.rows import grouped, percentile
from tprof.analyze.shapes import shape_rows
from tprof.analyze.verdicts import concentration
from tprof.intervals import clip, covered
from tprof.model import ints

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tprof.analyze.attribution import Attribution
    from tprof.analyze.options import Options
    from tprof.analyze.result import Row

WRITE, FUSE, NOT, PROFILE, HAVE = "write", "fuse", "do not", "profile first", "have"
ENOUGH: Final = 10  # calls: below, neither their time nor their shapes are known well
CONCENTRATED: Final = 0.5  # of the calls: what the five most frequent shapes must make up

QUESTIONS: Final = (
    ("data flow", "Does each step of a chain feed the next, and does nothing else read what lies between?"),
    ("torch.compile", "Does it fuse the chain already, and can the service afford its graph compile?"),
    ("ceiling", "How near is today's kernel to a copy of the same size? `tprof accept` measures it."),
    ("tensor cores", "Does the operator live by them (TMA, warp specialisation, two-block MMA)? Then a library leads."),
    ("cooperation", "Must blocks wait for each other (grid-wide sums, order, a queue)? Triton gives little for that."),
    ("exactness", "Must results be the same bit for bit, on every GPU, and in the backward?"),
    ("traffic", "Is this recording what will be served: the same shapes, in the same proportions?"),
    ("maintenance", "Who tunes and tests it again for the next GPU, the next Triton and the next shape?"),
)


@dataclass(frozen=True)
class Job:
    """What a kernel's gain is weighed against.

    Attributes:
        warm_ns: time of all devices that was not lost to the cold start; where there are warm requests, their median
            latency times the number of requests.
        scale: how many times longer the whole job's warm part is than the recording's.
        serving: there are requests, so that it goes on after the recording.
        shape_cold_ns: what a new shape of a compiled kernel cost here (median); None where none was cold.
    """

    warm_ns: int
    scale: float
    serving: bool
    shape_cold_ns: int | None


def advise(attribution: Attribution, options: Options, job_ns: int | None = None) -> Result:
    """Judge every operator and every chain of small ones.

    Args:
        attribution: of the trace.
        options: what part of it.
        job_ns: how long the whole job takes of which this is a recording; None: as long as the recording.

    Returns:
        Tables `answer`, `job` (what gains are weighed against), `operators`, `chains` and `questions`, which a
        profile cannot answer. A verdict is `write`, `fuse`, `do not`, `profile first` or `have` (it is compiled
        already); `of_warm_share` bounds the gain: what would be saved if the operator took no time.
    """
    trace, rows = attribution.trace, working_rows(attribution, options)
    shapes = shape_rows(Census(attribution, options))
    whole, job = _job(attribution, options, shapes, rows, job_ns)
    chains, chain = chain_rows(trace, rows)
    chains = [_chain(row, job) for row in chains]
    worth = np.array([row["verdict"] == FUSE for row in chains] + [False])[chain]
    inside = {row["operator"]: row["total_ns"] for row in _by_operator(operator_rows(trace, rows[worth]))}  # all aten
    cold = {kernel: sum(row["cold_ns"] for row in own) for kernel, own in grouped(shapes, "kernel").items()}
    operators = [_operator(row, job, inside, cold) for row in _by_operator(operator_rows(trace, rows))]
    answer = _answer(operators, chains, whole)
    tables = {
        "answer": [{"answer": answer}],
        "job": [whole],
        "operators": operators[: options.top],
        "chains": chains[: options.top],
        "questions": [{"topic": topic, "question": question} for topic, question in QUESTIONS],
    }
    return Result("advise", tables, {**tables, "answer": answer, "job": whole}, trace.notes, source_rows(trace))


def _job(
    attribution: Attribution, options: Options, shapes: list[Row], rows: np.ndarray, job_ns: int | None
) -> tuple[Row, Job]:
    """The row `job`, and what gains are weighed against."""
    cold = requests(attribution, options).payload["job"]
    lost = cold["cold_ns"] if cold["cold_exposed_ns"] is None else cold["cold_exposed_ns"]
    warm = max(cold["wall_ns"] - lost, 1)
    work = covered(*clip(*device_sets(attribution)[0], *(options.window or attribution.extent)))
    if cold["steady_ns"]:  # idle time between requests is nothing that a kernel could save
        warm = min(warm, max(cold["requests"] * cold["steady_ns"], work))
    devices = max(len(np.unique(ints(attribution.trace.device, "device")[rows])), 1)
    length = max(job_ns or 0, cold["wall_ns"])
    shapes = [row for row in shapes if row["cold_ns"]]
    each = percentile(np.sort([row["cold_ns"] for row in shapes]), 50)
    row = {
        "wall_ns": cold["wall_ns"],
        "cold_exposed_ns": lost,
        "job_ns": length,
        "of_job_share": lost / length if length else 0.0,
        "cold_start": "leave it" if lost < SMALL_SHARE * length else "prepare it",
        "warm_ns": warm,
        "work_ns": work,
        "work_share": work / warm,
        "requests": cold["requests"],
        "shape_cold_ns": each,
        "cold_shapes": len(shapes),  # that the median is of
        "basis": weakest(shapes) if shapes else "inferred",
    }
    return row, Job(warm * devices, max(length - lost, 1) / warm, cold["requests"] > 0, each)


def _by_operator(rows: list[Row]) -> list[Row]:
    """Rows of `operator_rows` by operator and path, with how concentrated their shapes are; most time first."""
    found = [_group(own) for own in grouped(rows, "operator", "path").values()]
    return sorted(found, key=lambda row: (-row["total_ns"], row["operator"]))


def _group(own: list[Row]) -> Row:
    by_shape = {shape: sum(row["calls"] for row in same) for shape, same in grouped(own, "shape").items()}
    known, spread = None not in by_shape, concentration(own[0]["operator"], list(by_shape.values()))
    top = sorted(by_shape.values())[-5:]
    return {
        **{key: own[0][key] for key in ("operator", "path")},
        "implementation": few([row["implementation"] for row in own if row["implementation"]], 2) or None,
        "kernel": own[0]["kernel"],
        "calls": spread["calls"],
        **{name: sum(row[name] for row in own) for name in ("total_ns", "of_work_share")},
        "shapes": len(by_shape) if known else None,
        "hot_shapes": spread["hot_keys"] if known else None,
        "top5_share": sum(top) / spread["calls"] if known and spread["calls"] else None,
    }


def _operator(row: Row, job: Job, inside: Mapping[str, int], cold: Mapping[str, int]) -> Row:
    """The row with a verdict and its reason; `inside` is the time in chains, `cold` that of a kernel's cold start."""
    chained_ns = inside.get(row["operator"], 0) if row["path"] == "aten" else 0
    row = row | {"of_warm_share": row["total_ns"] / job.warm_ns, "chained_share": chained_ns / max(row["total_ns"], 1)}
    row["cold_ns"] = cold.get(row["kernel"], 0) if row["path"] in {"triton", "inductor"} else None
    shapes = f"its 5 most frequent shapes make up {row['top5_share'] or 0:.0%} of {row['calls']:,} calls"
    worth = WRITE, f"{shapes}; measure first how far PyTorch's kernel is from a copy"
    verdict, why = _by_path(row) or _not_worth(row, job, row["total_ns"]) or _fusable(row) or worth
    return row | {"verdict": verdict, "reason": why, "basis": "inferred"}


def _by_path(row: Row) -> tuple[str, str] | None:
    """What the implementation alone decides."""
    path, whose = row["path"], row["implementation"]
    if path in {"triton", "inductor"}:
        ratio = (row["cold_ns"] or 0) // max(row["total_ns"], 1)
        paid = f"its cold start took {ratio:,} times its work here: pin it and warm it up (`tprof plan`)"
        return HAVE, paid if ratio else "compiled already"
    why = {
        "library": f"served by {whose or 'a library'}: "
        "replace it only by what is faster on every hot shape (`tprof accept`)",
        "memory": "a copy or fill of the runtime: avoid it or overlap it",
        "collective": "communication: overlap it; a kernel does not make the link faster",
    }
    return (NOT, why[path]) if path in why else None


def _not_worth(row: Row, job: Job, gain_ns: int) -> tuple[str, str] | None:
    """Why a kernel would not pay, or why that cannot be said; `gain_ns` is the most that it saves in the recording."""
    if gain_ns < SMALL_SHARE * job.warm_ns:
        return NOT, "it could save less than 1 % of the warm time"
    if unknown := _unknown(row):
        return PROFILE, unknown
    if row["top5_share"] < CONCENTRATED:
        return NOT, f"too divergent: {row['shapes']} shapes, the 5 most frequent {row['top5_share']:.0%} of the calls"
    cost = (job.shape_cold_ns or 0) * (row.get("hot_shapes") or row["shapes"])
    gain = gain_ns * job.scale
    if not job.serving and cost > gain:
        return NOT, f"compile and tuning cost about {cost / 1e9:.2g} s, the job would gain at most {gain / 1e9:.2g} s"
    return None


def _unknown(row: Row) -> str:
    """What must be profiled before anything can be said."""
    if row.get("path") == "other":
        return "whose kernel it is cannot be told by its name"
    if row["calls"] < ENOUGH:
        return f"{row['calls']} calls are too few; record at least {ENOUGH} warm ones"
    return "its shapes are unknown; record with `tprof record`, or record_shapes=True" if row["shapes"] is None else ""


def _fusable(row: Row) -> tuple[str, str] | None:
    if row["chained_share"] > CONCENTRATED:
        return FUSE, f"{row['chained_share']:.0%} of its time lies in chains that are worth it; see there"
    if "elementwise" in row["kernel"]:
        return NOT, "one pass over memory already: only fusing it with a neighbour saves anything"
    return None


def _chain(row: Row, job: Job) -> Row:
    """A chain with a verdict: its gain is an estimate, all but its longest step."""
    known = row["shapes"] if row.pop("shapes_known") else None
    row = row | {"of_warm_share": row["saving_ns"] / job.warm_ns, "shapes": known}
    row["top5_share"] = row["top5_share"] if known else None
    verdict, why = _not_worth(row, job, row["saving_ns"]) or (
        FUSE,
        f"{row['calls']:,} times; `torch.compile` may fuse it: write it by hand where its cold start is too dear",
    )
    return row | {"verdict": verdict, "reason": why, "basis": "inferred"}


def _answer(operators: list[Row], chains: list[Row], whole: Row) -> str:
    """The verdicts in one sentence, and what comes before any kernel."""
    idle = f"; first of all: the device works {whole['work_share']:.0%} of the warm time (`tprof idle`)"
    return _verdicts(operators, chains) + (idle if whole["work_share"] < CONCENTRATED else "")


def _verdicts(operators: list[Row], chains: list[Row]) -> str:
    write = [(row["operator"], row["of_warm_share"]) for row in operators if row["verdict"] == WRITE]
    fuse = [(row["chain"], row["of_warm_share"]) for row in chains if row["verdict"] == FUSE]
    told = [
        f"{what}: {few((f'{name} (at most {100 * share:.1f} % of the warm time)' for name, share in rows), 2)}"
        for what, rows in (("worth a kernel", write), ("worth fusing", fuse))
        if rows
    ]
    if told:
        return "; ".join(told)
    unknown = [row for row in operators if row["verdict"] == PROFILE]
    if unknown:
        share = sum(row["of_work_share"] for row in unknown)
        return f"profile first: {share:.0%} of the work cannot be judged ({few((r['operator'] for r in unknown), 2)})"
    return "do not write a kernel: nothing that PyTorch runs itself is large enough"
