"""Chains of PyTorch's own kernels that one kernel could replace: steps that follow each other on a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tprof.align.calls import is_kind
from tprof.analyze.operators import Facts
from tprof.events import PATHS
from tprof.intervals import NONE
from tprof.model import Trace, codes, ints, refine

if TYPE_CHECKING:
    from tprof.analyze.result import Row

LONGEST: Final = 12  # steps; a longer run is cut, for no one writes such a kernel
_FUSED: Final = ("multi_tensor_apply", "distribution_")  # many tensors at once already; random numbers feed themselves


def chain_rows(trace: Trace, rows: np.ndarray) -> tuple[list[Row], np.ndarray]:
    """Chains of at least two operators, the largest saving first, and the chain of each of `rows` (-1: none).

    Two kernels are linked that follow each other on one stream, are PyTorch's own, and whose operators share an input
    size (where sizes are recorded). `saving_ns` estimates what a fused kernel saves: all but each chain's longest step,
    since it still reads its inputs and writes its result. `gap_ns` is what the stream waited between the steps.

    Args:
        trace: with parents and paths.
        rows: of `device`; those that count.
    """
    facts = Facts(trace, rows)
    order = np.lexsort([ints(trace.device, c)[rows] for c in ("start_ns", "stream", "context", "pid", "device")])
    run = _runs(trace, rows, facts, order)
    inside = run != NONE
    at, run = order[inside], run[inside]
    chain = np.full(len(rows), NONE)
    if not len(at):
        return [], chain
    begin = np.flatnonzero(np.diff(run, prepend=-1))
    length = np.diff(np.append(begin, len(at)))
    operator, shape = (_signature(column[at], begin, length) for column in (facts.operator, facts.shape))
    sums = _sums(trace, rows[at], facts.ns[at], begin)
    found = []
    for own in (np.flatnonzero(operator == i) for i in range(int(operator.max()) + 1)):
        first = at[begin[own[0]] : begin[own[0]] + length[own[0]]]
        steps = first[np.diff(facts.call[first], prepend=-1) != 0]  # an operator may launch several kernels
        known = bool((facts.shape[at[begin[own]]] != NONE).all())
        found.append(_row([facts.name_of(i) for i in steps], own, shape, sums) | {"shapes_known": known})
    ranked = sorted(range(len(found)), key=lambda i: (-found[i]["saving_ns"], found[i]["chain"]))
    chain[at] = np.argsort(ranked)[np.repeat(operator, length)]
    return [found[i] for i in ranked], chain


def _row(names: list[str], own: np.ndarray, shape: np.ndarray, sums: dict[str, np.ndarray]) -> Row:
    """Figures of the chains `own`, which have the same operators."""
    per_shape = np.sort(np.bincount(shape[own]))[::-1]
    return {
        "chain": " → ".join(name.removeprefix("aten::") for name in names),
        "steps": len(names),
        "calls": len(own),
        "shapes": int((per_shape > 0).sum()),
        "top5_share": float(per_shape[:5].sum() / len(own)),
        **{name: int(values[own].sum()) for name, values in sums.items()},
    }


def _runs(trace: Trace, rows: np.ndarray, facts: Facts, order: np.ndarray) -> np.ndarray:
    """Number of the chain of each row, in `order`; -1 for a row in none; shape (rows,)."""
    name, names = codes(trace.device, "name")
    own = np.array([not any(word in n for word in _FUSED) for n in names] or [False])[name[rows]]
    kernel = is_kind(trace.device, "kernel")[rows] & (facts.path == PATHS.index("aten")) & facts.within & own
    fits = kernel[order]
    stream = np.zeros(len(rows), np.int64)
    for column in ("device", "pid", "context", "stream"):
        stream = refine(stream, ints(trace.device, column)[rows])
    linked = fits[1:] & fits[:-1] & (np.diff(stream[order]) == 0) & _related(facts, order)
    run = np.cumsum(np.append(True, ~linked)) - 1
    position = np.arange(len(order)) - np.flatnonzero(np.append(True, ~linked))[run]
    run = refine(run, position // LONGEST)
    calls = np.bincount(run[1:], (np.diff(facts.call[order]) != 0) & (np.diff(run) == 0), int(run.max(initial=0)) + 1)
    return np.where(fits & (calls[run] > 0), run, NONE)


def _related(facts: Facts, order: np.ndarray) -> np.ndarray:
    """Whether the operators of neighbours share an input size; where sizes are unknown, they may."""
    shape = facts.shape[order]
    pairs, inverse = np.unique(np.stack([shape[:-1], shape[1:]]), axis=1, return_inverse=True)
    sizes = {code: facts.sizes(code) for code in np.unique(pairs).tolist()}
    share = [NONE in pair or bool(sizes[pair[0]] & sizes[pair[1]]) for pair in pairs.T.tolist()]
    return np.array(share, bool)[inverse.reshape(-1)] if share else np.zeros(0, bool)


def _signature(column: np.ndarray, begin: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Codes that tell chains apart by the values of all their steps, shape (chains,)."""
    out = length.astype(np.int64)
    for step in range(int(length.max())):
        out = refine(out, np.where(step < length, column[np.minimum(begin + step, len(column) - 1)], NONE) + 1)
    return out


def _sums(trace: Trace, rows: np.ndarray, ns: np.ndarray, begin: np.ndarray) -> dict[str, np.ndarray]:
    """Per chain: device time, what all but its longest step took, and the time between its steps; ns."""
    total, longest = np.add.reduceat(ns, begin), np.maximum.reduceat(ns, begin)
    start, end = ints(trace.device, "start_ns")[rows], ints(trace.device, "end_ns")[rows]
    gap = np.append(0, np.maximum(start[1:] - end[:-1], 0))
    gap[begin] = 0
    return {"total_ns": total, "saving_ns": total - longest, "gap_ns": np.add.reduceat(gap, begin)}
