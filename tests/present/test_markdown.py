from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tprof.present import markdown

if TYPE_CHECKING:
    import tprof


@pytest.mark.parametrize("verb", ["summary", "idle", "cold", "kernels", "requests"])
def test_tables_are_rectangular(trace: tprof.Trace, verb: str) -> None:
    width = 0
    for line in markdown.render(getattr(trace, verb)()).splitlines():
        bars = len(re.findall(r"(?<!\\)\|", line))
        assert not line.startswith("|") or width in {0, bars}
        width = bars if line.startswith("|") else 0


def test_no_markup_gets_through(hostile: tprof.Trace) -> None:
    shown = re.sub(r"`[^`\n]*`", "", markdown.render(hostile.kernels()))  # what is left outside code spans
    assert "<" not in shown
    assert "](" not in shown
    assert not re.search(r"(?<!\\)@everyone", shown)


def test_escape() -> None:
    assert markdown.escape("<b>|*x*") == r"&lt;b&gt;\|\*x\*"
    assert markdown.escape("a\n# b") == r"a \# b"


def test_names_are_whole(cold_start: tprof.Trace) -> None:
    assert "at::native::FillFunctor<int>, std::array<char *, (unsigned long)1>" in markdown.render(cold_start.kernels())
