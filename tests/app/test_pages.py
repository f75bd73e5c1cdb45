"""What Cold start, Shapes, Idle, Kernels, Requests and Compare show: the figures and commands of the command line."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("streamlit.testing.v1", reason="the extra `app` is not installed")
pytest.importorskip("plotly", reason="the extra `app` is not installed")
from support.apptest import NSIGHT, TORCH, charts, run_page, texts
from support.incident import CANDIDATES, LENGTHS, incident

import tprof
from tprof.analyze import Options
from tprof.analyze.diff import diff


@pytest.fixture(scope="module")
def trace(sample_traces):
    return tprof.load(sample_traces / TORCH)


def _bars(chart) -> list[dict]:
    return [trace for trace in chart["data"] if trace["type"] == "bar" and trace.get("customdata")]


def _commands(app) -> list[str]:
    return [block.value for block in app.code]


# ---- Cold start


def test_the_waterfall_draws_every_cold_stretch(sample_traces, trace) -> None:
    app = run_page([sample_traces / TORCH], "Cold start")
    rows = trace.cold().tables["waterfall"]
    drawn = sum(len(bar["customdata"]) for bar in _bars(charts(app)[0]))
    assert drawn == len(rows)
    assert app.dataframe[0].value["number"].tolist() == [str(row["number"]) for row in rows]
    path = sample_traces / TORCH
    assert _commands(app) == [f"tprof cold {path} --format csv --table waterfall", f"tprof cold {path}"]


def test_a_request_is_a_window(sample_traces, trace) -> None:
    first = trace.requests().tables["requests"][0]
    window = f"{first['start_ns']}:{first['start_ns'] + first['wall_ns']}"
    app = run_page([sample_traces / TORCH], "Cold start")
    app.selectbox[0].set_value(window).run()
    assert app.query_params["window"] == window
    told = trace.cold(Options(window=(first["start_ns"], first["start_ns"] + first["wall_ns"])))
    assert app.dataframe[1].value["spans"].tolist() == [row["spans"] for row in told.tables["phases"]]
    assert _commands(app)[1].endswith(f"--window {window}")


def test_a_kernel_is_a_filter(sample_traces, trace) -> None:
    app = run_page([sample_traces / TORCH], "Cold start", kernel="softmax", part="Kernels and variants")
    rows = trace.cold(Options(kernels=("softmax",))).tables["first_uses"]
    assert app.dataframe[0].value["kernel"].tolist() == ["softmax"]
    assert len(app.dataframe[1].value) == len(rows)
    assert _commands(app)[0] == f"tprof cold {sample_traces / TORCH} --kernel softmax"


def test_candidates_of_each_search(sample_traces, trace) -> None:
    app = run_page([sample_traces / TORCH], "Cold start", part="Searches", search="1")
    rows = [row for row in trace.autotune().tables["candidates"] if row["tuning"] == 1]
    measured = charts(app)[0]["data"][0]
    assert measured["x"] == pytest.approx([row["time_ns"] / 1e3 for row in rows])
    assert f"tprof autotune {sample_traces / TORCH}" in _commands(app)


def test_a_plan_needs_a_recording_of_tprof(sample_traces) -> None:
    app = run_page([sample_traces / TORCH], "Cold start", part="Warm-up plan")
    assert "A plan needs recordings of tprof" in app.info[0].value
    assert _commands(app) == [f"tprof plan {sample_traces / TORCH} -o plan.json"]


def test_a_recording_of_tprof_tells_winners_and_gives_a_plan(tmp_path) -> None:
    run = incident(tmp_path / "run")
    app = run_page([run], "Cold start")
    names = charts(app)[0]["layout"]["yaxis"]["ticktext"]
    assert names.count("attention ✓ BLOCK 16") == len(LENGTHS)
    assert len(names) == len(LENGTHS) * CANDIDATES
    plan = run_page([run], "Cold start", part="Warm-up plan")
    assert not plan.exception
    assert _commands(plan)[0] == f"tprof plan {run} -o plan.json"
    assert plan.get("download_button")[0].proto.label == "Download plan.json"
    assert json.loads(_commands(plan)[1])["format"] == "tprof-plan"


def test_start_up_is_of_whole_recordings(tmp_path) -> None:
    run = incident(tmp_path / "run")
    assert "No process said that it was ready" in run_page([run], "Cold start", part="Start-up").info[0].value
    shown = run_page([run], "Cold start", part="Start-up", window="0s:1s").info[0].value
    assert "Start-up is told of whole recordings" in shown


# ---- Shapes


def test_first_and_warm_calls(sample_traces, trace) -> None:
    app = run_page([sample_traces / TORCH], "Shapes")
    rows = trace.shapes().tables["shapes"]
    assert charts(app)[0]["data"][0]["x"] == [row["first_call_ns"] for row in rows]
    assert app.dataframe[0].value["verdict"].tolist() == [row["verdict"] for row in rows]


def test_lives_have_a_lane_per_shape(sample_traces, trace) -> None:
    app = run_page([sample_traces / TORCH], "Shapes", part="Lives", kernel="softmax")
    steps = trace.shapes(Options(kernels=("softmax",))).tables["timeline"]
    assert charts(app)[0]["layout"]["yaxis"]["ticktext"] == list(
        dict.fromkeys(f"softmax {step['label']}" for step in steps)
    )
    calls = next(t for t in charts(app)[0]["data"] if t["name"] == "call")
    assert len(calls["x"]) == sum(step["step"] in ("call", "cold call") for step in steps)


def test_buckets_of_the_settings_are_counted(sample_traces, tmp_path, monkeypatch) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.tprof.buckets.long]\nkernels = ["matmul"]\nbig = { "grid[0]" = "8.." }\n'
    )
    monkeypatch.chdir(tmp_path)
    app = run_page([sample_traces / TORCH], "Shapes", part="Concentration and buckets")
    assert app.dataframe[1].value["bucket"].tolist()[0].startswith("long.")


# ---- Idle


def test_idle_draws_phases_and_lengths(sample_traces, trace) -> None:
    app = run_page([sample_traces / TORCH], "Idle")
    result = trace.idle(Options(top=100))
    phases, lengths = charts(app)
    drawn = sum(int(row[0].replace(",", "")) for bar in _bars(phases) for row in bar["customdata"])
    assert drawn == sum(row["total_ns"] for row in result.tables["phases"])
    drawn = sum(int(text.replace(",", "")) for bar in lengths["data"] for text in bar["customdata"])
    assert drawn == sum(row["total_ns"] for row in result.tables["lengths"])
    assert len(app.dataframe[2].value) == len(result.tables["gaps"])


def test_gaps_can_be_counted(sample_traces, trace) -> None:
    app = run_page([sample_traces / TORCH], "Idle", by="Number")
    assert charts(app)[1]["data"][0]["y"] == [row["gaps"] for row in trace.idle().tables["lengths"]]


def test_two_devices_are_filtered(cases) -> None:
    path = cases / "nsight/nsysai-h100-2gpu-2026.2.sqlite.gz"
    app = run_page([path], "Idle")
    names = app.multiselect[0].options
    assert len(names) == 2
    assert len(charts(app)[0]["layout"]["yaxis"]["ticktext"]) == 2
    app.multiselect[0].set_value([names[1]]).run()
    assert _commands(app)[0] == f"tprof idle {path} --device {names[1]}"
    assert not app.exception


# ---- Kernels


def test_kernels_by_path_and_purpose(sample_traces, trace) -> None:
    rows = [r for r in trace.kernels().tables["kernels"] if (r["path"], r["purpose"]) == ("triton", "work")]
    app = run_page([sample_traces / TORCH], "Kernels", path="triton", purpose="work")
    assert app.dataframe[0].value["name"].tolist() == [row["name"] for row in rows]
    assert {bar["name"] for bar in _bars(charts(app)[0])} == {"work"}


def test_one_kernel_has_durations_and_launches(sample_traces, trace) -> None:
    app = run_page([sample_traces / TORCH], "Kernels", kernel="matmul")
    told = trace.kernels(Options(kernels=("matmul",)))
    calls = sum(sum(bar["y"]) for bar in _bars(charts(app)[0]))
    assert calls == sum(row["calls"] for row in told.tables["kernels"])
    assert app.dataframe[2].value["grid"].tolist() == [row["grid"] for row in told.tables["launches"]]
    assert set(_commands(app)) == {f"tprof kernels {sample_traces / TORCH} --kernel matmul"}
    app.button[0].click().run()
    assert "kernel" not in app.query_params


# ---- Requests


def test_budgets_and_latency(sample_traces, trace) -> None:
    app = run_page([sample_traces / TORCH], "Requests", order="Longest first")
    result = trace.requests()
    names = [row["name"] for row in sorted(result.payload["requests"], key=lambda row: -row["wall_ns"])]
    budgets, latency = charts(app)
    assert budgets["layout"]["yaxis"]["ticktext"] == names
    every = next(row for row in result.tables["latency"] if (row["name"], row["of"]) == ("all", "all"))
    assert latency["data"][0]["x"] == [every[key] for key in ("p50_ns", "p95_ns", "p99_ns", "max_ns")]


def test_without_a_request_the_ranges_are_named(sample_traces) -> None:
    app = run_page([sample_traces / TORCH], "Requests", range="nothing*")
    assert "No range here is a request" in app.info[0].value
    assert "request#0 L=512" in app.text[0].value
    app.text_input[0].set_value("request#0*").run()
    assert _commands(app)[0] == f"tprof requests {sample_traces / TORCH} --range 'request#0*'"
    assert not app.info


# ---- Compare


def test_compare_is_tprof_diff(sample_traces, trace) -> None:
    before = tprof.load(sample_traces / NSIGHT)
    paths = [sample_traces / TORCH, sample_traces / NSIGHT]
    app = run_page(paths, "Compare", source=TORCH, other=NSIGHT)
    told = diff([before.attribution], [trace.attribution], Options())
    assert app.dataframe[0].value["figure"].tolist() == [row["figure"] for row in told.tables["figures"]]
    assert charts(app)[0]["data"][0]["x"] == pytest.approx([row["change_ns"] / 1e9 for row in told.tables["figures"]])
    assert set(_commands(app)) == {f"tprof diff {paths[1]} {paths[0]}"}
    assert "noise-unknown" in texts(app).replace("\\", "")
    next(button for button in app.button if button.label == "Swap the sides").click().run()
    assert (app.query_params["source"], app.query_params["other"]) == (NSIGHT, TORCH)
    assert set(_commands(app)) == {f"tprof diff {paths[0]} {paths[1]}"}


def test_compare_with_itself_differs_in_nothing(sample_traces, tmp_path) -> None:
    copy = tmp_path / "copy.json.gz"
    copy.write_bytes((sample_traces / TORCH).read_bytes())
    app = run_page([sample_traces / TORCH, copy], "Compare", source=TORCH, other="copy.json.gz")
    assert not app.dataframe
    assert len(app.info) == 6


def test_compare_asks_for_another_recording(sample_traces) -> None:
    app = run_page([sample_traces / TORCH], "Compare")
    assert "There is no other recording" in app.info[0].value


def test_compare_takes_single_recordings(sample_traces) -> None:
    paths = [sample_traces / TORCH, sample_traces / NSIGHT]
    app = run_page(paths, "Compare")
    assert "One recording is compared with one" in app.info[0].value
    assert not app.dataframe
