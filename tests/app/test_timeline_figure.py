"""The timeline as a figure: what is drawn, what a drag and a click mean."""

from __future__ import annotations

import pytest
from support.small import call, kernel, span, trace

from tprof.analyze import zoom as zooming
from tprof.analyze.attribution import Attribution
from tprof.analyze.lanes import lanes
from tprof.analyze.zoom import Wanted, zoom

timeline = pytest.importorskip("tprof.present.timeline", reason="the extra `app` is not installed")


def _trace():
    host = [span(1_000, 101_000, "<b>request</b>"), call(20_000, 30_000)]
    return trace(host, [kernel(30_000, 60_000, "gemm", launch=1, purpose="work", purpose_basis="inferred")], threads=1)


def _view(window=(0, 100_000), **wanted):
    of = _trace()
    return of, zoom(of, lanes(Attribution(of)), window, Wanted(**wanted))


def _drawn(figure):
    return {bar.name: bar for bar in figure.data if bar.type == "bar" and bar.customdata is not None}


def test_bars_lie_at_their_time_in_the_unit_of_the_axis() -> None:
    of, view = _view(kinds=("stream",))
    figure = timeline.timeline(view, of, 0)
    bar = _drawn(figure)["busy: work"]
    assert (list(bar.base), list(bar.x)) == ([30.0], [30.0])
    assert figure.layout.xaxis.title.text.endswith(", us")
    assert list(figure.layout.xaxis.range) == [0.0, 100.0]
    assert bar.marker.pattern.shape == "/"


def test_bars_are_cut_to_the_window_so_that_their_name_is_in_sight() -> None:
    of, view = _view((50_000, 70_000))
    bar = _drawn(timeline.timeline(view, of, 0))["range"]
    assert (list(bar.base), list(bar.x), list(bar.text)) == ([50.0], [20.0], ["&lt;b&gt;request&lt;/b&gt;"])
    assert bar.customdata[0][1] == "100 us"


def test_a_click_names_lane_begin_and_row() -> None:
    of, view = _view(kinds=("stream",))
    said = next(iter(_drawn(timeline.timeline(view, of, 0)).values())).customdata[0][0]
    assert timeline.pick(said) == ("stream", 0, 30_000, 0)


@pytest.mark.parametrize("said", ["", "x", "stream.1.2", "stream.a.b.c", "stream.1.2.3.4"])
def test_what_is_no_pick(said) -> None:
    assert timeline.pick(said) is None


@pytest.mark.parametrize(
    ("marked", "window"),
    [
        ([20.0, 10.0], (10_000, 20_000)),
        ([-5.0, 5.0], (0, 5_000)),
        ([99.9999, 200.0], (99_999, 100_000)),
        ([3.0, 3.0], (3_000, 3_001)),
    ],
)
def test_a_drag_marks_a_part_of_the_window(marked, window) -> None:
    _, view = _view()
    assert timeline.dragged(view, marked, 0) == window


def test_many_intervals_are_a_picture_with_words(monkeypatch) -> None:
    monkeypatch.setattr(zooming, "BARS", 0)
    of, view = _view()
    figure = timeline.timeline(view, of, 0)
    (image,) = figure.layout.images
    assert (image.x, image.sizex, image.sizey) == (0.0, 100.0, len(view.lanes))
    words = next(drawn for drawn in figure.data if drawn.type == "heatmap").text
    assert len(words) == len(view.lanes)
    assert "busy: work (inferred) 100 %" in set(words[1])


def test_a_drag_or_a_click() -> None:
    of, view = _view()
    assert timeline.timeline(view, of, 0).layout.dragmode == "select"
    assert timeline.timeline(view, of, 0, picking=True).layout.dragmode is False


def test_nothing_in_the_window() -> None:
    of, view = _view((500_000, 600_000))
    assert not _drawn(timeline.timeline(view, of, 0))
