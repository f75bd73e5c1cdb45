"""The page in each of its states, without a browser. Streamlit and Plotly are the extra `app`."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

import tprof
from tprof.present import units

if TYPE_CHECKING:
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

testing = pytest.importorskip("streamlit.testing.v1", reason="the extra `app` is not installed")
pytest.importorskip("plotly", reason="the extra `app` is not installed")


def _script(given: list[str]) -> None:
    from tprof_app.overview import page

    page(given)


def _page(*given: object) -> AppTest:
    return testing.AppTest.from_function(_script, args=([str(path) for path in given],), default_timeout=60).run()


def _texts(app: AppTest) -> str:
    kinds = (app.markdown, app.caption, app.info, app.warning, app.error, app.success)
    return "\n".join(element.value for kind in kinds for element in kind)


def _cards(app: AppTest) -> dict[str, str]:
    return {card.label: card.value for card in app.metric}


def _write(path: Path, events: list[dict[str, object]]) -> Path:
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def _op(name: str) -> dict[str, object]:
    return {"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": 1, "ts": 10.0, "dur": 5.0}


def test_sample_shows_the_figures_of_the_library(sample_traces: Path) -> None:
    path = sample_traces / "h200-torch.json.gz"
    said = tprof.load(path).summary().to_dict()
    app = _page(path)
    first, device, cold = said["requests"][0], said["devices"][0], said["cold"]
    assert not app.exception
    assert not app.error
    assert _cards(app) == {
        "First request": units.duration(first["wall_ns"]),
        "Cold tax of it": units.duration(first["cold_tax_ns"]),
        "Compile or load": units.duration(cold["compile_ns"]),
        "Tuning": units.duration(cold["autotune_ns"]),
        "Device idle": units.rate(device["idle_ns"], device["span_ns"]),
        "Unattributed": "0 %",
    }
    budgets, gaps, sources = (table.value for table in app.dataframe)
    assert budgets["wall_ns"].tolist() == [row["wall_ns"] / 1e6 for row in said["requests"]]
    assert budgets["cold_tax_ns"].tolist() == [row["cold_tax_ns"] / 1e6 for row in said["requests"]]
    assert gaps["gap_ns"].tolist() == [row["gap_ns"] / 1e6 for row in tprof.load(path).idle().tables["gaps"]]
    assert sources["path"].tolist() == [str(path)]


def test_every_finding_has_cost_share_denominator_and_basis(sample_traces: Path) -> None:
    path = sample_traces / "h200-nsight.sqlite.gz"
    shown = _texts(_page(path))
    for row in tprof.load(path).summary().to_dict()["findings"]:
        figures = f"{units.duration(row['cost_ns'])}, {units.share(row['share'])} of the "
        assert figures in shown
        assert row["basis"] in shown


def test_every_panel_names_its_command(sample_traces: Path) -> None:
    path = sample_traces / "h200-torch.json.gz"
    commands = [block.value for block in _page(path).code]
    assert commands == [f"tprof {verb} {path}" for verb in ("summary", "requests", "idle", "summary", "doctor")]


def test_charts_carry_exact_nanoseconds(sample_traces: Path) -> None:
    path = sample_traces / "h200-torch.json.gz"
    said = tprof.load(path).summary().to_dict()
    charts = [chart.proto.spec for chart in _page(path).get("plotly_chart")]
    assert len(charts) == 3
    assert f"{said['devices'][0]['busy_by_purpose']['tuning']:,}" in charts[0]
    assert f"{said['requests'][0]['phases']['compile']:,}" in charts[1]
    assert f"{max(said['devices'][0]['idle_by_phase'].values()):,}" in charts[2]


def test_without_a_source_the_samples_are_offered() -> None:
    app = _page()
    assert not app.exception
    assert app.selectbox[0].options == ["sample: h200-nsight", "sample: h200-torch"]
    second = app.selectbox[0].select_index(1).run()
    assert "Compile or load" in _cards(second)


def test_no_source_at_all_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    from tprof_app import sources

    def none() -> dict[str, Path]:
        raise tprof.TprofError("no sample traces are installed; reinstall")

    monkeypatch.setattr(sources, "sample_paths", none)
    app = _page()
    assert not app.exception
    assert [e.value.replace("\\", "") for e in app.error] == ["no sample traces are installed; reinstall"]
    assert app.get("file_uploader")


@pytest.mark.parametrize("content", [b"", b"hello", b'{"a": 1}', b"SQLite format 3\0", gzip.compress(b"\0\1\2")])
def test_bad_file_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    app = _page(path)
    assert not app.exception
    assert len(app.error) == 1
    assert "bad.json" in app.error[0].value.replace("\\", "")
    assert not app.metric


def test_missing_file_is_one_sentence(tmp_path: Path) -> None:
    app = _page(tmp_path / "gone.json")
    assert not app.exception
    assert "gone.json" in app.error[0].value.replace("\\", "")


def test_recording_without_a_device(tmp_path: Path) -> None:
    app = _page(_write(tmp_path / "cpu.json", [_op("request#0")]))
    assert not app.exception
    assert _cards(app)["Device idle"] == units.UNKNOWN
    assert _cards(app)["First request"] == "5.00 us"
    assert "no device events" in _texts(app)


def test_recording_without_a_request(tmp_path: Path) -> None:
    app = _page(_write(tmp_path / "cpu.json", [_op("step")]))
    assert not app.exception
    assert _cards(app)["First request"] == units.UNKNOWN
    assert "tprof requests --range GLOB" in _texts(app)


def test_names_of_a_trace_are_never_markup(tmp_path: Path) -> None:
    name = "request <img src=x onerror=alert(1)> ![i](http://x.invalid/i.png) **b** $x$ :red[r]"
    app = _page(_write(tmp_path / "cpu.json", [_op(name)]))
    assert not app.exception
    shown = _texts(app)
    assert "<img" not in shown.replace("\\<", "")
    assert "![i]" not in shown
    assert "://" not in shown
    assert not any(block.proto.allow_html for block in app.markdown)
    assert "<img" not in app.get("plotly_chart")[0].proto.spec.replace("\\u003c", "<")


def test_several_sources_are_one_recording_or_each_alone(sample_traces: Path, tmp_path: Path) -> None:
    cpu = _write(tmp_path / "cpu.json", [_op("request#0")])
    app = _page(sample_traces / "h200-torch.json.gz", cpu)
    assert app.selectbox[0].options == ["all 2 files as one recording", "h200-torch.json.gz", "cpu.json"]
    assert not app.exception
    assert app.code[0].value == f"tprof summary {sample_traces / 'h200-torch.json.gz'} {cpu}"
    assert _cards(app.selectbox[0].select_index(2).run())["First request"] == "5.00 us"


def test_upload_is_read_and_its_folder_is_not_shown(sample_traces: Path) -> None:
    app = _page()
    packed = (sample_traces / "h200-torch.json.gz").read_bytes()
    app.get("file_uploader")[0].set_value([("mine.json.gz", packed, "application/gzip")]).run()
    assert not app.exception
    assert not app.error
    assert "Compile or load" in _cards(app)
    assert app.code[0].value == "tprof summary mine.json.gz"
    assert app.dataframe[-1].value["path"].tolist() == ["mine.json.gz"]


def test_bad_upload_names_the_file_only() -> None:
    app = _page()
    app.get("file_uploader")[0].set_value([("mine.txt", b"hello", "text/plain")]).run()
    assert not app.exception
    assert app.error[0].value.replace("\\", "").startswith("mine.txt: ")


def test_main_takes_the_sources_of_the_command_line(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["main.py", str(_write(tmp_path / "cpu.json", [_op("request#0")]))])
    app = testing.AppTest.from_file(str(root / "apps/tprof_app/main.py"), default_timeout=60).run()
    assert not app.exception
    assert _cards(app)["First request"] == "5.00 us"
