"""Arguments that make new variants of a kernel: a lost divisibility, a 1, a size that is a constexpr."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from tprof.analyze.findings.facts import Facts, counted
from tprof.analyze.first_uses import kernel_of
from tprof.analyze.result import few
from tprof.analyze.rows import grouped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tprof.analyze.result import Row

_SIZES: Final = 3  # values of a constexpr from which on it is a size, not an option
_CONSTANT: Final = "constant "
_REST: Final = ""  # names what is no argument


def churn(facts: Facts) -> Iterator[Row]:
    """Arguments that alone made a function be compiled again."""
    rows = [row | {"number": number} for number, row in enumerate(facts.trace.specializations.to_pylist())]
    told = sorted((r for r in rows if r["start_ns"] is not None and r["arguments"]), key=lambda r: r["start_ns"])
    for same in grouped(told, "function").values():
        yield from _churn(facts, same)


def _churn(facts: Facts, rows: list[Row]) -> Iterator[Row]:
    kernel = kernel_of(rows[0])
    variants = [(row, _variant(row)) for row in rows]
    for name in sorted({name for _, variant in variants for name in variant} - _tuned(facts, kernel) - {_REST}):
        again, values = _only(name, variants)
        constant = all(value.startswith(_CONSTANT) for value in values)
        types = {value.partition(" ")[0] for value in values if not value.startswith(_CONSTANT)}
        if len(types) < 2 and not (constant and len(values) < _SIZES):
            yield _again(facts, kernel, name, again, values, constant=constant)


def _tuned(facts: Facts, kernel: str) -> set[str]:
    """Names in the configurations of its autotuner: these are meant to vary."""
    texts = {c["config"] or "" for t in facts.tunings if t.kernel == kernel for c in t.candidates}
    return {part.partition(":")[0].strip() for text in texts for part in text.split(",")}


def _variant(row: Row) -> dict[str, str]:
    """Argument -> its type and specialization, or its constant; and all the rest that makes variants differ."""
    said = {a["name"]: f"{_CONSTANT}{a['value']}" if "value" in a else _typed(a) for a in json.loads(row["arguments"])}
    return said | {_REST: f"{row['options']} {row['process']}"}


def _typed(argument: Row) -> str:
    return " ".join([argument["type"], *argument.get("hints", [])])


def _only(name: str, variants: list[tuple[Row, dict[str, str]]]) -> tuple[list[Row], list[str]]:
    """Variants that differ from an earlier one in this argument alone, and all that it was."""
    seen: dict[frozenset[tuple[str, str]], set[str]] = defaultdict(set)
    again, values = [], []
    for row, variant in variants:
        rest = frozenset(item for item in variant.items() if item[0] != name)
        mine = variant.get(name, "")
        if seen[rest] and mine not in seen[rest]:
            again.append(row)
        seen[rest].add(mine)
        values.append(mine)
    return again, list(dict.fromkeys(values))


def _again(facts: Facts, kernel: str, name: str, again: list[Row], values: list[str], *, constant: bool) -> Row:
    """The finding of one argument."""
    numbers = {row["number"] for row in again}
    mine = [c for c in facts.compiles if c["specialization"] in numbers]
    fix = f'@triton.jit(do_not_specialize=["{name}"]), if it is as fast warm; or pad {name} to a multiple of 16'
    if constant:
        fix = f"make {name} a runtime argument, or round it up to a few values: each value is a kernel of its own"
    return facts.finding(
        "specialization-churn",
        f"{kernel} was compiled again because of {name} alone",
        facts.spent(mine),
        kernel=kernel,
        why=f"{name} was {few(map(_plain, values), 4)}: {counted(len(mine), 'more variant')}",
        fix=fix,
        count=len(mine),
    )


def _plain(value: str) -> str:
    """A specialization of an integer or a pointer, or a constant, in words."""
    if value.startswith(_CONSTANT):
        return value.removeprefix(_CONSTANT)
    return "divisible by 16" if "tt.divisibility=16" in value else "neither 1 nor divisible by 16"
