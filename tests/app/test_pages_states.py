"""Cold start, Shapes, Idle, Kernels, Requests and Compare in each state of a recording, without a browser."""

from __future__ import annotations

import pytest

pytest.importorskip("streamlit.testing.v1", reason="the extra `app` is not installed")
pytest.importorskip("plotly", reason="the extra `app` is not installed")
from support.apptest import HOSTILE, NSIGHT, ODD, TORCH, annotation, assert_no_markup, run_page, write

PAGES = ("Cold start", "Shapes", "Idle", "Kernels", "Requests", "Compare")
PARTS = [
    *(("Cold start", part) for part in ("Kernels and variants", "Searches", "Start-up", "Graphs", "Warm-up plan")),
    *(("Shapes", part) for part in ("Lives", "Concentration and buckets", "Not charged")),
]


def _sound(app) -> None:
    assert not app.exception
    assert not app.error


@pytest.mark.parametrize("first", PAGES)
@pytest.mark.parametrize("name", [TORCH, NSIGHT])
def test_a_sample_is_drawn(sample_traces, name, first) -> None:
    other = NSIGHT if name == TORCH else TORCH
    app = run_page([sample_traces / name, sample_traces / other], first, source=name, other=other)
    _sound(app)
    assert app.get("plotly_chart")
    assert app.code
    assert app.dataframe


@pytest.mark.parametrize(("first", "part"), PARTS)
def test_every_part_of_a_page(sample_traces, first, part) -> None:
    app = run_page([sample_traces / TORCH], first, part=part)
    _sound(app)
    assert app.code or app.info
    assert app.button_group[0].value == part


@pytest.mark.parametrize("first", PAGES)
def test_nothing_opened_offers_the_samples(first) -> None:
    app = run_page([], first)
    _sound(app)
    assert "sample: h200-torch" in [button.label.replace("\\", "") for button in app.button]


@pytest.mark.parametrize("first", PAGES)
@pytest.mark.parametrize("case", ODD)
def test_odd_recordings(cases, sample_traces, case, first) -> None:
    name = case.rpartition("/")[2]
    app = run_page([cases / case, sample_traces / TORCH], first, source=name, other=TORCH)
    _sound(app)
    assert app.code or app.info


@pytest.mark.parametrize("first", PAGES)
def test_a_damaged_file_is_one_sentence(tmp_path, first) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(b"hello")
    app = run_page([path], first)
    assert not app.exception
    assert len(app.error) == 1
    assert "bad.json" in app.error[0].value.replace("\\", "")


@pytest.mark.parametrize("first", PAGES[:-1])
def test_a_part_without_events_says_so(sample_traces, first) -> None:
    app = run_page([sample_traces / TORCH], first, window="3600s:3601s")
    _sound(app)
    assert app.info or app.dataframe


@pytest.mark.parametrize("first", PAGES)
def test_names_of_a_trace_are_never_markup(tmp_path, first) -> None:
    launch = {"ph": "X", "pid": 1, "tid": 1, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 11, "dur": 1,
              "args": {"correlation": 1}}  # fmt: skip
    kernel = {"ph": "X", "pid": 0, "tid": 7, "cat": "kernel", "name": HOSTILE, "ts": 12.0, "dur": 3,
              "args": {"correlation": 1, "device": 0, "stream": 7, "grid": [1, 1, 1], "block": [1, 1, 1]}}  # fmt: skip
    path = write(tmp_path / "a.json", [annotation(HOSTILE), launch, kernel])
    other = write(tmp_path / "b.json", [{**annotation(HOSTILE), "dur": 9.0}])
    for more in ({}, {"kernel": "request*"}):
        app = run_page([path, other], first, source="a.json", other="b.json", **more)
        _sound(app)
        assert_no_markup(app)
