"""The first screen: the answer in words and six cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from tprof.present import units
from tprof.present.sentence import answer
from tprof.present.words import label
from tprof_app.text import plain

if TYPE_CHECKING:
    from tprof.analyze import Result
    from tprof.analyze.result import Row

Card = tuple[str, str, str, str]  # title, value, denominator and basis, what it means


def or_load(summary: Result) -> bool:
    """Whether compiling cannot be told from loading in this recording."""
    return bool(summary.to_dict()["cold"]["compile_includes"])


def headline(summary: Result) -> None:
    """The answer in words, as the command line gives it."""
    st.markdown(f"**{plain(answer(summary))}**")


def cards(summary: Result) -> None:
    """Six figures, each with its denominator and basis."""
    shown = summary.to_dict()
    wall_ns = shown["window"]["wall_ns"]
    six = [
        *_first_cards(shown["requests"]),
        *_cold_cards(shown["cold"], wall_ns, or_load=or_load(summary)),
        *_device_cards(shown["devices"], wall_ns),
    ]
    for row in (six[:3], six[3:]):
        for column, (title, value, note, said) in zip(st.columns(3), row, strict=True):
            column.metric(title, value, note, delta_color="off", delta_arrow="off", border=True, help=said)


def _first_cards(requests: list[Row]) -> list[Card]:
    wall, tax = (
        "Wall time of the request that began first.",
        "Its part in cold phases: what was spent, not what could be saved.",
    )
    if not requests:
        unknown = units.UNKNOWN, "no request range"
        return [("First request", *unknown, wall), ("Cold tax of it", *unknown, tax)]
    row = requests[0]
    share = f"{units.rate(row['cold_tax_ns'], row['wall_ns'])} of its time, {row['basis']}"
    return [
        ("First request", units.duration(row["wall_ns"]), f"the first of {units.count(len(requests))}", wall),
        ("Cold tax of it", units.duration(row["cold_tax_ns"]), share, tax),
    ]


def _cold_cards(cold: Row, wall_ns: int, *, or_load: bool) -> list[Card]:
    def card(title: str, key: str, said: str) -> Card:
        share = f"{units.rate(cold[key], wall_ns)} of the window, {cold['basis']}"
        return title, units.duration(cold[key]), share, said

    compiling = label("compile", or_load=or_load).capitalize()
    return [
        card(compiling, "compile_ns", "Triton's part, on all threads; graph compilers are counted apart."),
        card("Tuning", "autotune_ns", "Timing candidate configurations, without compiling them."),
    ]


def _device_cards(devices: list[Row], wall_ns: int) -> list[Card]:
    of = f"of {len(devices)} devices'" if len(devices) > 1 else "of the device's"
    idle, span = (sum(row[key] for row in devices) for key in ("idle_ns", "span_ns"))
    parts = (item for row in devices for item in row["wall_by_phase"].items())
    unknown = units.rate(sum(ns for part, ns in parts if part.endswith(".unattributed")), wall_ns * len(devices))
    return [
        (
            "Device idle",
            units.rate(idle, span),
            f"{of} span",
            "Between the first and the last device event nothing ran.",
        ),
        ("Unattributed", unknown, f"{of} window", "What the recording cannot explain; never guessed."),
    ]
