"""The app in each of its states, without a browser: frame, Overview, Timeline, Data. Streamlit is the extra `app`."""

from __future__ import annotations

import gzip

import pytest

pytest.importorskip("streamlit.testing.v1", reason="the extra `app` is not installed")
pytest.importorskip("plotly", reason="the extra `app` is not installed")
from support.apptest import HOSTILE, NSIGHT, ODD, TORCH, annotation, assert_no_markup, charts, run_page, texts, write

import tprof
from tprof.present import units
from tprof.present.sentence import finding_cost
from tprof.samples import sample_paths

PAGES = ("Overview", "Timeline", "Data")


def _cards(app) -> dict[str, str]:
    return {card.label: card.value for card in app.metric}


def _told(element) -> str:
    return element.value.replace("\\", "")


# ---- every page in every state


@pytest.mark.parametrize("first", PAGES)
@pytest.mark.parametrize("name", [TORCH, NSIGHT])
def test_a_sample(sample_traces, name, first) -> None:
    app = run_page([sample_traces / name], first)
    assert not app.exception
    assert not app.error
    assert app.query_params["source"] == name
    assert len(charts(app)) == (first != "Data")


@pytest.mark.parametrize("first", PAGES)
def test_nothing_opened_offers_the_samples(first) -> None:
    app, offered = run_page([], first), [f"sample: {name}" for name in sample_paths()]
    assert not app.exception
    assert [button.label.replace("\\", "") for button in app.button] == offered
    opened = app.button[-1].click().run()
    assert opened.query_params["source"] == offered[-1]
    assert not opened.exception


@pytest.mark.parametrize("first", PAGES)
@pytest.mark.parametrize("case", ODD)
def test_odd_recordings(cases, case, first) -> None:
    app = run_page([cases / case], first)
    assert not app.exception
    assert not app.error


@pytest.mark.parametrize("first", PAGES)
@pytest.mark.parametrize("content", [b"", b"hello", b'{"a": 1}', b"SQLite format 3\0", gzip.compress(b"\0\1\2")])
def test_a_damaged_file_is_one_sentence(tmp_path, content, first) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    app = run_page([path], first)
    assert not app.exception
    assert len(app.error) == 1
    assert "bad.json" in _told(app.error[0])
    assert not app.metric


def test_a_missing_file_is_one_sentence(tmp_path) -> None:
    app = run_page([tmp_path / "gone.json"])
    assert not app.exception
    assert "gone.json" in _told(app.error[0])


# ---- Overview


def test_cards_are_the_figures_of_the_library(sample_traces) -> None:
    trace = tprof.load(sample_traces / TORCH)
    said, shapes = trace.summary().payload, trace.shapes().tables["shapes"]
    first, device, cold = said["requests"][0], said["devices"][0], said["cold"]
    shown = _cards(run_page([sample_traces / TORCH]))
    assert shown["First request"] == units.duration(first["wall_ns"])
    assert shown["Cold tax of it"] == units.duration(first["cold_tax_ns"])
    assert shown["Compile or load"] == units.duration(cold["compile_ns"])
    assert shown["Autotuning"] == units.duration(cold["autotune_ns"])
    assert shown["Device 0 idle"] == units.rate(device["idle_ns"], device["span_ns"])
    assert shown["Cold shapes"] == f"{sum(bool(row['request_misses']) for row in shapes)} of {len(shapes)}"


def test_every_finding_has_its_cost_and_leads_to_its_window(sample_traces) -> None:
    app = run_page([sample_traces / NSIGHT])
    shown = texts(app)
    links = [link.proto.query_string for link in app.get("page_link")]
    for row in tprof.load(sample_traces / NSIGHT).summary().payload["findings"]:
        assert finding_cost(row) in shown.replace("\\", "")
        assert any(f"window={row['start_ns']}%3A{row['end_ns']}" in link for link in links)


def test_the_wall_clock_carries_exact_nanoseconds(sample_traces) -> None:
    app = run_page([sample_traces / TORCH])
    said = tprof.load(sample_traces / TORCH).summary().payload
    assert f"{said['devices'][0]['busy_by_purpose']['tuning']:,}" in app.get("plotly_chart")[0].proto.spec
    assert app.code[0].value == f"tprof summary {sample_traces / TORCH}"


def test_a_recording_without_a_device_or_a_request(tmp_path) -> None:
    app = run_page([write(tmp_path / "cpu.json", [annotation("step")])])
    assert not app.exception
    assert "First request" not in _cards(app)
    assert "no device events" in texts(app)


def test_names_of_a_trace_are_never_markup(tmp_path) -> None:
    path = write(tmp_path / "cpu.json", [annotation(HOSTILE)])
    for first in PAGES:
        assert_no_markup(run_page([path], first))


# ---- Timeline


def test_the_address_says_what_the_timeline_shows(sample_traces) -> None:
    trace = tprof.load(sample_traces / TORCH)
    low = trace.attribution.extent[0]
    window = f"{low + 10**9}:{low + 2 * 10**9}"
    app = run_page([sample_traces / TORCH], "Timeline", window=window, phase=["compile"], min="1000000")
    axis = charts(app)[0]["layout"]["xaxis"]["range"]
    assert axis == [1.0, 2.0]
    assert app.multiselect[1].value == ["compile"]
    assert {bar["name"] for bar in charts(app)[0]["data"] if bar["type"] == "bar"} == {"compile or load", "range"}


def test_a_filter_changes_the_address_and_can_be_cleared(sample_traces) -> None:
    app = run_page([sample_traces / TORCH], "Timeline")
    app.text_input[0].set_value("*nothing*").run()
    assert app.query_params["kernel"] == "*nothing*"
    app.multiselect[0].set_value(["stream"]).run()
    assert "Nothing of this window passes the filters" in texts(app)
    next(button for button in app.button if button.label == "Clear filters").click().run()
    assert "kernel" not in app.query_params
    assert len(charts(app)) == 1


def test_steps_out_of_a_window(sample_traces) -> None:
    app = run_page([sample_traces / TORCH], "Timeline", window="1s:2s", crumb=["0s:8s"])
    labels = [button.label for button in app.button]
    assert "8.00 s ›" in labels
    app.button[labels.index("8.00 s ›")].click().run()
    assert app.query_params["window"] == "0s:8s"
    assert "crumb" not in app.query_params
    next(button for button in app.button if button.label == "All").click().run()
    assert "window" not in app.query_params


def test_what_was_picked_is_explained(sample_traces) -> None:
    trace = tprof.load(sample_traces / TORCH)
    app = run_page([sample_traces / TORCH], "Timeline", pick="stream.0.0.0")
    assert app.dataframe[0].value["name"].tolist() == [trace.device["name"][0].as_py()]
    assert not run_page([sample_traces / TORCH], "Timeline", pick="what").dataframe


@pytest.mark.parametrize("window", ["5", "2s:1s", "x:y"])
@pytest.mark.parametrize("first", PAGES)
def test_a_wrong_window_is_one_sentence_with_a_way_out(sample_traces, window, first) -> None:
    app = run_page([sample_traces / TORCH], first, window=window)
    assert not app.exception
    if first == "Data":  # which is about all of the recording
        return
    assert len(app.error) == 1
    next(button for button in app.button if button.label == "Show the whole recording").click().run()
    assert not app.error


def test_a_window_is_named_and_can_be_left(sample_traces) -> None:
    app = run_page([sample_traces / TORCH], window="1s:2s")
    assert "Only from 1,000.000 ms to 2,000.000 ms" in texts(app)
    assert app.code[0].value == f"tprof summary {sample_traces / TORCH} --window 1s:2s"
    next(button for button in app.button if button.label == "Show all").click().run()
    assert "window" not in app.query_params


# ---- opening


def test_several_sources_are_one_recording_or_each_alone(sample_traces, tmp_path) -> None:
    cpu = write(tmp_path / "cpu.json", [annotation("request#0")])
    app = run_page([sample_traces / TORCH, cpu])
    assert app.selectbox[0].options == ["all 2 files as one recording", TORCH, "cpu.json"]
    assert app.code[0].value == f"tprof summary {sample_traces / TORCH} {cpu}"
    second = app.selectbox[0].select_index(2).run()
    assert _cards(second)["First request"] == "5.00 us"
    assert second.query_params == {"source": "cpu.json"}


def test_the_served_folder_is_browsed(tmp_path) -> None:
    (tmp_path / "runs").mkdir()
    write(tmp_path / "runs" / "a.json", [annotation("request#0")])
    app = run_page([], root=tmp_path.resolve())
    browser = next(box for box in app.selectbox if box.label == "Folder or recording")
    assert browser.options == ["runs/"]
    app = browser.select("runs/").run()
    browser = next(box for box in app.selectbox if box.label == "Folder or recording")
    assert browser.options == [".. (up)", "a.json"]
    app = browser.select("a.json").run()
    assert app.query_params["source"] == "folder: runs/a.json"
    assert app.code[0].value == "tprof summary runs/a.json"


@pytest.mark.parametrize("source", ["folder: ../x.json", "folder: /etc/passwd", "upload: mine.json", "what"])
def test_a_link_to_what_is_not_offered(tmp_path, source) -> None:
    app = run_page([], root=tmp_path.resolve(), source=source)
    assert not app.exception
    assert len(app.error) == 1
    assert str(tmp_path) not in texts(app).replace("\\", "")


def test_an_upload_is_read_and_its_folder_is_not_shown(sample_traces) -> None:
    app = run_page()
    packed = (sample_traces / TORCH).read_bytes()
    app.get("file_uploader")[0].set_value([("mine.json.gz", packed, "application/gzip")]).run()
    assert not app.exception
    assert not app.error
    assert "Compile or load" in _cards(app)
    assert app.code[0].value == "tprof summary mine.json.gz"
    assert app.query_params["source"] == "upload: mine.json.gz"


@pytest.mark.parametrize("name", ["mine.txt", "mine.nsys-rep"])
def test_a_bad_upload_names_the_file_only(name) -> None:
    app = run_page()
    app.get("file_uploader")[0].set_value([(name, b"hello", "text/plain")]).run()
    assert not app.exception
    assert _told(app.error[0]).startswith(f"{name}: ")


def test_data_shows_what_was_read(sample_traces) -> None:
    app = run_page([sample_traces / TORCH], "Data")
    sources = app.dataframe[0].value
    assert sources["path"].tolist() == [str(sample_traces / TORCH)]
    assert sources["rows_read"].tolist() == [tprof.load(sample_traces / TORCH).sources["rows_read"][0].as_py()]
    assert f"tprof idle {sample_traces / TORCH}" in app.code[-1].value


def test_main_takes_the_arguments_of_the_command_line(root, tmp_path, monkeypatch) -> None:
    from streamlit.testing.v1 import AppTest

    monkeypatch.setattr("sys.argv", ["main.py", str(write(tmp_path / "cpu.json", [annotation("request#0")]))])
    app = AppTest.from_file(str(root / "apps/tprof_app/main.py"), default_timeout=60).run()
    assert not app.exception
    assert _cards(app)["First request"] == "5.00 us"


def test_a_window_for_perfetto_is_a_trace_again(sample_traces, tmp_path) -> None:
    from tprof_app.recording import Recording
    from tprof_app.screens.timeline import _perfetto

    recording = Recording((str(sample_traces / TORCH),)).open()
    low = recording.extent[0]
    path = tmp_path / "window.json"
    path.write_bytes(_perfetto(recording, (low + 7 * 10**9, low + 8 * 10**9)))
    window, whole = tprof.load(path), recording.trace
    assert 0 < window.device.num_rows < whole.device.num_rows
    assert window.host.num_rows < whole.host.num_rows
