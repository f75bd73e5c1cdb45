"""NVTX ranges of an Nsight export: names, domains, payloads, and the ranges that nobody closed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tprof.read import nsight_schema as ns
from tprof.read.columns import Pick
from tprof.read.nsight_host import HostRows
from tprof.read.nsight_rows import TID_MASK, Reading, distinct, numbers, pid, pids
from tprof.read.nsight_strings import Labels, constant, empty_to_null, encode, flat

if TYPE_CHECKING:
    from collections.abc import Sequence

    NameRow = tuple[int, int, int, int, str]  # event type, globalTid, domain, category, text

_PAYLOADS = ("uint64Value", "int64Value", "uint32Value", "int32Value", "doubleValue", "floatValue")
_INTS = ("category", "textId", "endGlobalTid", "domainId", "jsonTextId", *_PAYLOADS[:4])
_TEXTS = ("text", "jsonText")
_REALS = _PAYLOADS[4:]
_IS_RANGE = (Pick("eventType", ns.NVTX_RANGES),)
_IS_NAME = (Pick("eventType", (ns.NVTX_CATEGORY, ns.NVTX_THREAD_NAME, ns.NVTX_DOMAIN)),)


def ranges(reading: Reading, thread_names: dict[int, str]) -> HostRows:
    """Push/pop and start/end ranges. Marks, categories, domains and the like only count as skipped.

    Args:
        reading: the export.
        thread_names: names of threads by globalTid; those that NVTX gave are added.
    """
    required = ("start", "end", "eventType", "globalTid")
    data = reading.rows(ns.NVTX, required, _INTS, _TEXTS, _REALS, _IS_RANGE)
    _count_others(reading, len(data))
    names = _name_rows(reading)
    thread_names.update({g: text for kind, g, _, _, text in names if kind == ns.NVTX_THREAD_NAME})
    _note_unclosed(reading, data)
    is_start_end = np.isin(numbers(data, "eventType"), ns.NVTX_START_END)
    return HostRows(
        start=numbers(data, "start"),
        end=numbers(data, "end"),
        gtid=numbers(data, "globalTid"),
        kind=Labels(is_start_end.astype(np.int32), ["range", "startend"]),
        name=_texts(reading, data).fallback(constant("", len(data))),
        domain=_domains(data, names),
        attrs=_attrs(reading, data, names),
    )


def _count_others(reading: Reading, found: int) -> None:
    has_types = "eventType" in reading.db.columns(ns.NVTX)
    others = reading.db.count(ns.NVTX) - reading.db.count(ns.NVTX, _IS_RANGE) if has_types else 0
    if others:
        reading.skipped[ns.NVTX] += others
    if others and not found:
        reading.note("no-ranges", "the capture has NVTX rows but no range; nvtx 0.2.12 and later shows none under "
                     "Nsight Systems 2024.2 and earlier", others)  # fmt: skip


def _texts(reading: Reading, data: pa.Table, text: str = "text", ident: str = "textId") -> Labels:
    """The text of each row, wherever the producer put it."""
    return encode(empty_to_null(data[text])).fallback(reading.strings.lookup(data[ident], "[string {}]"))


def _name_rows(reading: Reading) -> list[NameRow]:
    """Rows that name domains, categories and threads."""
    if not {"eventType", "globalTid"} <= set(reading.db.columns(ns.NVTX)):
        return []
    ints = ("eventType", "globalTid", "domainId", "category", "textId")
    data = reading.db.fetch(ns.NVTX, ints, ("text",), where=_IS_NAME)
    text = _texts(reading, data)
    columns = [numbers(data, c).tolist() for c in ints[:4]]
    return [(*row, text.values[c]) for *row, c in zip(*columns, text.codes, strict=True) if c >= 0]


def _domains(data: pa.Table, names: Sequence[NameRow]) -> Labels:
    """Names of domains. Every process numbers its own domains; 0 is the default one, which has no name."""
    named: dict[tuple[int, ...], str]
    named = {(pid(g), domain): text for kind, g, domain, _, text in names if kind == ns.NVTX_DOMAIN}
    group, keys = distinct(pids(numbers(data, "globalTid")), numbers(data, "domainId"))
    return _grouped(group, [named.get(k, f"[domain {k[1]}]") if k[1] else None for k in keys])


def _categories(data: pa.Table, names: Sequence[NameRow]) -> Labels:
    """JSON of each row's category: its name, or its number where it has none."""
    named: dict[tuple[int, ...], str]
    named = {(pid(g), d, c): text for kind, g, d, c, text in names if kind == ns.NVTX_CATEGORY}
    keys = (pids(numbers(data, "globalTid")), numbers(data, "domainId"), numbers(data, "category"))
    group, rows = distinct(*keys)
    return _grouped(group, [json.dumps(named.get(k, k[2])) if k[2] else None for k in rows])


def _grouped(group: np.ndarray, values: Sequence[str | None]) -> Labels:
    return Labels(group.astype(np.int32), ["" if v is None else v for v in values]).drop([v is None for v in values])


def _attrs(reading: Reading, data: pa.Table, names: Sequence[NameRow]) -> pa.Array:
    """Payload, category and ending thread as JSON; null for rows that have none of them."""
    json_text = _texts(reading, data, "jsonText", "jsonTextId").map(json.dumps)
    parts = {
        "payload": _payload(data),
        "category": _categories(data, names).array().cast(pa.string()),
        "end_tid": pc.cast(pc.bit_wise_and(data["endGlobalTid"], TID_MASK), pa.string()),
        "json": json_text.array().cast(pa.string()),
    }
    fields = [pc.binary_join_element_wise(f'"{k}":', flat(v), ",", "").fill_null("") for k, v in parts.items()]
    body = pc.utf8_rtrim(pc.binary_join_element_wise(*fields, ""), ",")
    return pc.binary_join_element_wise("{", empty_to_null(body), "}", "")


def _payload(data: pa.Table) -> pa.Array:
    """The one payload of each row as JSON."""
    unsigned = pa.array(numbers(data, "uint64Value").view(np.uint64), mask=data["uint64Value"].is_null().to_numpy())
    whole = [pc.cast(data[c], pa.string()) for c in _PAYLOADS[1:4]]
    finite = [pc.if_else(pc.is_finite(data[c]), data[c], pa.scalar(None, pa.float64())) for c in _REALS]
    return pc.coalesce(pc.cast(unsigned, pa.string()), *whole, *(pc.cast(f, pa.string()) for f in finite))


def _note_unclosed(reading: Reading, data: pa.Table) -> None:
    """Warn of ranges that nsys closed itself: all of them end when their process, or the capture, does."""
    end = numbers(data, "end")
    if not len(end):
        return
    duration = reading.db.fetch(ns.DETAILS, ("duration",))["duration"].to_pylist()
    closed = np.isin(end, [d for d in duration if d])
    for one in np.unique(process := pids(numbers(data, "globalTid"))):
        of_process = process == one
        last = of_process & (end == end[of_process].max())
        if last.sum() > 1:
            closed |= last
    if count := int(closed.sum()):
        reading.note("unclosed-ranges", f"{count} NVTX ranges were still open when their process or the capture ended; "
                     "their durations are not theirs", count)  # fmt: skip
