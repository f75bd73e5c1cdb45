from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from tprof.analyze import Result
from tprof.present.html import Chapter, fragment, report

if TYPE_CHECKING:
    import tprof

VOID = {"meta", "br", "link", "img", "input"}


class Page(HTMLParser):
    """Elements, their attributes and texts; complains of what does not nest."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def made(*traces: tprof.Trace) -> str:
    return report(
        [Chapter(f"t{i}", t.summary(), t.idle(), t.cold(), t.kernels()) for i, t in enumerate(traces)], "1.2.3"
    )


def test_it_parses_and_loads_nothing(trace: tprof.Trace) -> None:
    page = Page(made(trace))
    assert not {tag for tag, _ in page.tags} & {"script", "link", "iframe", "object", "img", "form"}
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "src"]
        assert attributes.get("href", "#").startswith("#")
    assert "url(" not in made(trace)
    assert "@import" not in made(trace)


def test_strict_policy_comes_first(empty: tprof.Trace) -> None:
    policy = [a["content"] for tag, a in Page(made(empty)).tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]
    assert made(empty).index("Content-Security-Policy") < made(empty).index("<style>")


def test_hostile_names_are_text(hostile: tprof.Trace) -> None:
    text = made(hostile)
    assert "<script" not in text
    assert '<script>alert("x")</script>' in Page(text).texts
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text)
    text.encode()


def test_code_in_a_caption_is_code() -> None:
    row = {"kernel": None, "phase": "compile", "total_ns": 1, "basis": "recorded"}
    page = fragment(Result("shapes", {"uncharged": [row]}, {}))
    assert "it sums to <code>tprof cold</code>" in page


def test_ids_are_unique_and_links_lead_somewhere(cold_start: tprof.Trace, one_event: tprof.Trace) -> None:
    page = Page(made(cold_start, one_event))
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    targets = {a["href"][1:] for _, a in page.tags if "href" in a}
    assert targets == {"c1", "c2"}
    assert {a["aria-labelledby"] for _, a in page.tags if "aria-labelledby" in a} <= set(ids)


def test_the_wall_bar_is_whole(cold_start: tprof.Trace) -> None:
    bar = made(cold_start).split('class="bar"', 1)[1].split("</div>", 1)[0]
    grown = [float(x) for x in re.findall(r"flex-grow:([0-9.]+)", bar)]
    assert sum(grown) == pytest.approx(1, abs=1e-4)
    assert 'class="hatched"' in bar


def test_the_figures_a_newcomer_needs(cold_start: tprof.Trace) -> None:
    text = " ".join(" ".join(Page(made(cold_start)).texts).split())
    for said in (
        "8.94 s",
        "> 99.9 % of its wall time",
        "3 of 8",
        "99.3 %",
        "16 compiles",
        "20 candidates",
        "inferred",
        "1.2.3",
    ):
        assert said in text


def test_light_and_dark_and_print(empty: tprof.Trace) -> None:
    text = made(empty)
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text


def test_an_empty_trace_says_so(empty: tprof.Trace) -> None:
    assert "No device work was recorded" in made(empty)
