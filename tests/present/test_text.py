from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import pytest

from tprof.analyze import Result
from tprof.events import Note
from tprof.present import text, views, words
from tprof.present.segments import budget_segments, wall_segments

if TYPE_CHECKING:
    import tprof

VERBS = ["summary", "idle", "cold", "kernels", "requests"]
ESCAPES = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("verb", VERBS)
def test_fits_and_says_nothing_dangerous(trace: tprof.Trace, verb: str, width: int) -> None:
    shown = text.plain(getattr(trace, verb)(), width=width)
    assert max(map(len, shown.splitlines()), default=0) <= width
    assert not ESCAPES.search(shown)


def test_narrower_than_eighty_is_eighty(cold_start: tprof.Trace) -> None:
    assert text.plain(cold_start.idle(), width=20) == text.plain(cold_start.idle(), width=80)
    assert text.console(io.StringIO(), 1000).width == 200


def test_the_wall_clock_sums_to_the_window(cold_start: tprof.Trace) -> None:
    result = cold_start.summary()
    segments = wall_segments(result.tables["wall"])
    assert sum(s.ns for s in segments) == result.payload["window"]["wall_ns"]
    assert sum(s.share for s in segments) == pytest.approx(1)
    assert "window                 25.0 s   100 %" in text.plain(result, width=80)


@pytest.mark.parametrize("width", [40, 80, 133])
def test_a_bar_fills_its_width(cold_start: tprof.Trace, width: int) -> None:
    to = text.console(io.StringIO())
    segments = wall_segments(cold_start.summary().tables["wall"])
    assert len(text.bar(segments, width, to)) == width
    request = cold_start.summary().payload["requests"][0]
    assert len(text.bar(budget_segments(request["phases"], request["wall_ns"]), width, to)) == width


def test_letters_without_colour_blocks_with(cold_start: tprof.Trace) -> None:
    segments = wall_segments(cold_start.summary().tables["wall"])
    assert text.bar(segments, 60, text.console(io.StringIO())).plain.startswith("C")
    coloured = text.Console(force_terminal=True, color_system="truecolor", file=io.StringIO())
    assert set(text.bar(segments, 60, coloured).plain) == {"▓", "█"}


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch, cold_start: tprof.Trace) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    to = text.console(io.StringIO(), 80)
    text.show(cold_start.summary(), to)
    assert "\x1b" not in to.file.getvalue()


def test_the_answer_names_request_and_cause(cold_start: tprof.Trace) -> None:
    shown = " ".join(text.plain(cold_start.summary()).split())
    assert "The first request (request#0 L=512) took 8.94 s, > 99.9 % of it cold start" in shown
    assert "3 of 8 requests" in shown


def test_long_tables_are_cut_unless_asked(cold_start: tprof.Trace) -> None:
    cut, whole = text.plain(cold_start.kernels()), text.plain(cold_start.kernels(), every_row=True)
    assert "more: tprof kernels --top 18" in cut
    assert len(whole.splitlines()) > len(cut.splitlines())


def test_a_verb_without_top_lists_everything() -> None:
    cut = [
        key for key, view in views.VIEWS.items() if key[0] in {"accept", "cache", "doctor", "plan"} and not view.whole
    ]
    assert cut == []
    entries = [{"source": f"{i}.json", "kept_bytes": i} for i in range(30)]
    assert "29.json" in text.plain(Result("cache", {"entries": entries}, {}))


def test_a_dot_in_a_name_is_no_part_of_the_wall_clock() -> None:
    assert words.part_label("busy.tuning") == "busy: tuning"
    assert words.part_label("import torch._inductor") == "import torch._inductor"
    assert words.part_label("(Triton 3.8)") == "(Triton 3.8)"


def test_an_unknown_table_shows_every_column() -> None:
    shown = text.plain(Result("new", {"things": [{"some_ns": 1500, "flag": True, "other": None}]}, {}))
    assert all(word in shown for word in ("some", "1.50 us", "yes", "–"))


def test_warnings_are_one_line_each() -> None:
    to = text.console(io.StringIO(), 80)
    to.print(text.warnings([Note("x", "first\nline", 3), *[Note("y", "again")] * 9]))
    lines = to.file.getvalue().splitlines()
    assert lines[0] == "warning: first line (3)"
    assert lines[-1] == "… and 2 more warnings: --format json"
