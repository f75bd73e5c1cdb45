"""Benchmark loops among the calls of a thread: an autotuner's, by the shape of its event records and flushes.

The rules and their measured confusions are those of docs/inference.md: a *unit* is what is launched between two
consecutive event records, a *flush* what is launched between one unit's closing record and the next one's opening
record. Triton and Inductor estimate with five repetitions first; that estimate is what tells a benchmark from a timed
training step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tprof.align.calls import CAPTURE, DESTROY, ENQUEUES, GRAPH, LIBRARY, LOAD, QUERY, RECORD, SYNC

if TYPE_CHECKING:
    from tprof.align.infer.tokens import Ops, Tokens

MAX_UNIT = 64  # calls between two records that are looked at
MAX_FLUSHED_UNIT = 16  # launches that can still be one timed repetition
SIMPLE_UNIT = 4  # a unit this short needs no estimate before it if the flush is a cache flush
MIN_REPETITIONS = 3
ESTIMATE = 5  # repetitions of an estimate: the constant of Triton's and Inductor's benchmark loops
WARMUP_FLUSHES = 20  # so many in a row are a warm-up; Inductor launches a hundred
NEARBY_NS = 1_000_000_000  # between an estimate and its repetitions
QUIET_NS = 200_000_000  # a session does not grow across a longer stretch without calls
_BREAKS = (SYNC, QUERY, LOAD, LIBRARY, CAPTURE)
_NO_LAUNCH = -1


@dataclass(frozen=True)
class Benchmark:
    """One timed callable. `first` and `last` are token indices, both inclusive."""

    first: int
    last: int
    repetitions: int
    unit: tuple[int, ...]
    flush: tuple[int, ...]
    estimate: bool = False

    @property
    def own(self) -> frozenset[int]:
        """Operations that belong to the loop."""
        return frozenset((*self.unit, *self.flush))


def find_benchmarks(tokens: Tokens, ops: Ops) -> list[Benchmark]:
    """Benchmark sessions of one thread, in time order, warm-up and first call included."""
    records = _Segments(tokens)
    chains = _confirmed(_chains(records, tokens, ops), tokens, ops)
    sessions: list[Benchmark] = []
    floor = 0
    for i, chain in enumerate(chains):
        grown = _grow(chain, tokens, floor)
        if sessions and _continues(chains[i - 1], chain, tokens):
            before = sessions[-1]
            grown = replace(before, last=grown.last, repetitions=before.repetitions + chain.repetitions)
            sessions[-1] = grown
        else:
            sessions.append(grown)
        floor = grown.last + 1
    return sessions


class _Segments:
    """Stretches between consecutive event records, with a hash of what each launched."""

    def __init__(self, tokens: Tokens) -> None:
        self.op, self.kind = tokens.op, tokens.kind
        self.launches = np.isin(tokens.kind, ENQUEUES)
        self.record = np.flatnonzero(tokens.kind == RECORD)
        first, last = self.record[:-1] + 1, self.record[1:]
        broken = np.concatenate([[0], np.cumsum(np.isin(tokens.kind, _BREAKS))])
        self.open = (broken[last] == broken[first]) & (last - first <= MAX_UNIT)
        launched = np.concatenate([[0], np.cumsum(self.launches)])
        self.count = np.where(self.open, launched[last] - launched[first], _NO_LAUNCH)
        self.hash = self._hashes(launched[first], launched[last])
        self.run = self._runs()
        self.repeated = self._repeated()

    def _hashes(self, first: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Hash of the launches [first, last) of each segment: a polynomial modulo 2**64, wherever it stands."""
        op = (self.op[self.launches] + 2).astype(np.uint64)
        with np.errstate(over="ignore"):
            base, inverse = np.uint64(0x9E3779B97F4A7C15), np.uint64(pow(0x9E3779B97F4A7C15, -1, 1 << 64))
            power = np.multiply.accumulate(np.full(len(op), base, np.uint64))
            prefix = np.concatenate([np.zeros(1, np.uint64), np.cumsum(op * power, dtype=np.uint64)])
            back = np.multiply.accumulate(np.concatenate([np.ones(1, np.uint64), np.full(len(op), inverse, np.uint64)]))
            return (prefix[last] - prefix[first]) * back[first]

    def _runs(self) -> list[int]:
        """For each segment, how many segments from it on equal the one two places later."""
        if len(self.record) < 4:
            return [0] * max(len(self.record) - 1, 0)
        equal = self.open[:-2] & self.open[2:] & (self.hash[:-2] == self.hash[2:]) & (self.count[:-2] == self.count[2:])
        index = np.arange(len(equal))
        stop = np.where(equal, len(equal), index)
        next_stop = np.minimum.accumulate(stop[::-1])[::-1]
        return [*(next_stop - index).tolist(), 0, 0]

    def unit(self, i: int) -> tuple[int, ...]:
        """Operations launched in segment i."""
        span = slice(self.record[i] + 1, self.record[i + 1])
        return tuple(self.op[span][self.launches[span]].tolist())

    def _repeated(self) -> list[int]:
        """How often the unit of each segment is timed in a row, with the same flush between."""
        after = np.append(self.open[1:], False)[: len(self.open)]
        return np.where(after, 1 + (np.array(self.run, np.int64) + 1) // 2, 1).tolist()

    def has_graph(self, i: int) -> bool:
        """Whether segment i launches a CUDA graph."""
        return bool((self.kind[self.record[i] : self.record[i + 1]] == GRAPH).any())


def _chains(segments: _Segments, tokens: Tokens, ops: Ops) -> list[Benchmark]:
    """Every run of records that may be a benchmark loop."""
    chains: list[Benchmark] = []
    i, count = 0, segments.count.tolist()
    while i < len(count):
        timed = segments.repeated[i] >= MIN_REPETITIONS or (count[i] > ESTIMATE and count[i] % ESTIMATE == 0)
        if count[i] <= 0 or not (timed or (chains and count[i] == len(chains[-1].unit))):
            i += 1
            continue
        chain, step = _chain_at(i, segments, tokens, ops, chains)
        if chain:
            chains.append(chain)
        i += step
    return chains


def _chain_at(
    i: int, segments: _Segments, tokens: Tokens, ops: Ops, chains: list[Benchmark]
) -> tuple[Benchmark | None, int]:
    """The chain that begins with segment i, if any, and how many segments to go on."""
    if segments.has_graph(i):
        return None, 1
    unit, repetitions = segments.unit(i), segments.repeated[i]
    flush = segments.unit(i + 1) if repetitions > 1 else ()
    if flush and all(ops.fill[list(unit)]) and not all(ops.fill[list(flush)]):
        return None, 1  # one record out of step: the flush was taken for the unit
    last = i + 2 * (repetitions - 1)
    found = Benchmark(int(segments.record[i]), int(segments.record[last + 1]), repetitions, unit, flush)
    flushed = len(flush) == 1 and bool(ops.fill[flush[0]]) and len(unit) <= MAX_FLUSHED_UNIT
    if flushed and repetitions >= MIN_REPETITIONS:
        return found, last - i + 2
    if period := _estimate_period(unit, ops):
        return replace(
            found, last=int(segments.record[i + 1]), repetitions=0, unit=unit[1:period], flush=unit[:1], estimate=True
        ), 2
    if chains and chains[-1].unit == unit and _is_estimate_of(chains[-1], found, tokens):
        return replace(found, flush=chains[-1].flush), last - i + 2  # so slow that it was timed once or twice
    return None, 1


def _estimate_period(unit: tuple[int, ...], ops: Ops) -> int:
    """Length of the (flush, call) that the unit repeats exactly five times, 0 if it does not."""
    period, rest = divmod(len(unit), ESTIMATE)
    if rest or period < 2 or unit != unit[:period] * ESTIMATE:
        return 0
    return period if ops.fill[unit[0]] and not all(ops.fill[list(unit[1:period])]) else 0


def _near(before: Benchmark, after: Benchmark, tokens: Tokens) -> bool:
    """Whether `after` follows `before` within a second, with nothing foreign launched between."""
    between = slice(before.last + 1, after.first)
    waited = (tokens.end - tokens.start)[between][tokens.kind[between] == SYNC].sum()  # a slow candidate's estimate
    if tokens.start[after.first] - tokens.end[before.last] - waited >= NEARBY_NS:
        return False
    return set(_launched(tokens, between)) <= before.own | after.own


def _launched(tokens: Tokens, where: slice) -> list[int]:
    return tokens.op[where][np.isin(tokens.kind[where], ENQUEUES)].tolist()


def _confirmed(chains: list[Benchmark], tokens: Tokens, ops: Ops) -> list[Benchmark]:
    """Chains that are benchmarks: with an estimate or a warm-up beside them, or short and flushed like a cache."""
    kept: list[Benchmark] = []
    for i, chain in enumerate(chains):
        before = chains[i - 1] if i and chains[i - 1].unit == chain.unit else None
        after = chains[i + 1] if i + 1 < len(chains) and chains[i + 1].unit == chain.unit else None
        if chain.estimate:
            keep = after is not None and not after.estimate and _near(chain, after, tokens)
        else:
            keep = (
                (len(chain.unit) <= SIMPLE_UNIT and bool(ops.flush[list(chain.flush)].all()))
                or _follows_flushes(chain, tokens)
                or (before is not None and _is_estimate_of(before, chain, tokens))
                or (after is not None and _is_estimate_of(chain, after, tokens))
                or (before is not None and before in kept[-1:] and _same_block(before, chain, tokens))
            )
        if keep:
            kept.append(chain)
    return kept


def _follows_flushes(chain: Benchmark, tokens: Tokens) -> bool:
    """Whether a run of its flushes alone comes right before a chain: Inductor's warm-up of the memory clock.

    Two repetitions may lie between: so many are no chain of their own where a record was lost.
    """
    leftover = 2 * (len(chain.unit) + len(chain.flush))
    recent = slice(max(chain.first - 2 * (WARMUP_FLUSHES + leftover), 0), chain.first)
    before = _launched(tokens, recent)[-WARMUP_FLUSHES - leftover :]
    run = 0
    for op in before:
        run = run + 1 if op in chain.flush else 0
        if run == WARMUP_FLUSHES:
            return set(before) <= chain.own
    return False


def _is_estimate_of(first: Benchmark, then: Benchmark, tokens: Tokens) -> bool:
    """Whether `first` estimates for `then`: Triton's (flush, call) x 5, or five pairs and then a burst of flushes."""
    if first.unit != then.unit or not _near(first, then, tokens):
        return False
    if first.estimate:
        return True
    flushes = _launched(tokens, slice(first.last, then.first))
    return first.repetitions == ESTIMATE and len(flushes) > WARMUP_FLUSHES and set(flushes) <= set(first.flush)


def _same_block(before: Benchmark, chain: Benchmark, tokens: Tokens) -> bool:
    """Whether two chains are one block of repetitions in which a record was lost: no synchronization parts them."""
    between = tokens.kind[before.last : chain.first]
    return _near(before, chain, tokens) and not np.isin(between, (SYNC, QUERY)).any()


def _continues(before: Benchmark, chain: Benchmark, tokens: Tokens) -> bool:
    """Whether a chain goes on timing the callable of the chain before it; the next candidate may launch the same."""
    if chain.estimate or before.unit != chain.unit:
        return False
    return _is_estimate_of(before, chain, tokens) or _same_block(before, chain, tokens)


def _grow(chain: Benchmark, tokens: Tokens, floor: int) -> Benchmark:
    return replace(chain, first=_grow_back(chain, tokens, floor), last=_grow_forward(chain, tokens))


def _grow_back(chain: Benchmark, tokens: Tokens, floor: int) -> int:
    """First token of the session: warm-up, estimate loop, and, beyond the second synchronization, one first call."""
    own, first, syncs, beyond = chain.own, chain.first, int(chain.estimate), 0
    for x in range(chain.first - 1, floor - 1, -1):
        kind = tokens.kind[x]
        if tokens.start[x + 1] - tokens.end[x] > QUIET_NS or kind == CAPTURE:
            break
        if kind == SYNC:
            syncs += 1
            if syncs > 2:
                break
        elif kind in ENQUEUES:
            beyond += syncs == 2
            if tokens.op[x] not in own or beyond > len(chain.unit):
                break
            first = x
        elif kind == RECORD:
            if syncs >= 2:
                break
            first = x
    return first


def _grow_forward(chain: Benchmark, tokens: Tokens) -> int:
    """Last token of the session: one synchronization, then queries; the winner's own launch is work.

    What is launched before the synchronization are repetitions, left over where a record was lost.
    """
    last, syncs, left = chain.last, 0, False
    for x in range(chain.last + 1, len(tokens)):
        kind = tokens.kind[x]
        if tokens.start[x] - tokens.end[x - 1] > QUIET_NS:
            break
        if kind == RECORD or kind in ENQUEUES:
            if syncs or (kind != RECORD and tokens.op[x] not in chain.own):
                break
            left = True
        elif kind in (SYNC, QUERY, DESTROY):
            syncs += kind == SYNC
            if syncs > 1:
                break
            last = x if syncs or not left else last
        else:
            break
    return last
