"""The page of a batch: the report as the command line has it, and the way to the pages of each recording."""

from __future__ import annotations

import pytest

pytest.importorskip("streamlit.testing.v1", reason="the extra `app` is not installed")
pytest.importorskip("plotly", reason="the extra `app` is not installed")
from support import job
from support.apptest import HOSTILE, annotation, assert_no_markup, charts, run_page, texts, write
from support.batched import batch

from tprof.batch import compare

PARTS = ("Findings", "Shapes and buckets", "Requests", "Sources")
WARM = {"warm compile": "compile"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Folder and report of eight ranks, one of them slow and one cold, and of a file that is not there."""
    top = tmp_path_factory.mktemp("batch")
    job.write(top / "job")
    return batch([top / "job", top / "gone.json"], top / "OUT", WARM)


def _plain(app) -> str:
    return texts(app).replace("\\", "")


def _links(app) -> list[str]:
    return [link.proto.query_string for link in app.get("page_link")]


def test_a_batch_opens_its_own_page(made) -> None:
    folder, result = made
    app = run_page([folder.path])
    assert not app.exception
    assert (app.header[0].value, app.query_params["source"]) == ("Batch", "batch: OUT")
    shown = {card.label: card.value for card in app.metric}
    assert (shown["Recordings"], shown["Processes compared"]) == ("8 of 9", str(job.RANKS))
    for row in result.tables["findings"]:
        assert row["why"] in _plain(app)
    assert f"Rank {job.SLOW} was late for collectives" in _plain(app)
    assert any(f"source=rank-{job.SLOW}.json" in link for link in _links(app))


def test_ranks_are_drawn_side_by_side(made) -> None:
    folder, result = made
    app = run_page([folder.path], "Batch")
    bars = {bar["name"]: bar for bar in charts(app)[0]["data"] if bar["type"] == "bar"}
    rows = result.tables["ranks"]
    for name, key in (("work", "work_ns"), ("collectives", "collective_ns"), ("late, cold", "late_cold_ns")):
        assert bars[name]["x"] == pytest.approx([row[key] / 1e6 for row in rows])
    assert bars["late, cold"]["xaxis"] == "x2"
    assert charts(app)[0]["layout"]["yaxis"]["ticktext"] == [row["name"] for row in rows]


@pytest.mark.parametrize("part", PARTS)
def test_every_part(made, part) -> None:
    folder, result = made
    app = run_page([folder.path], "Batch", part=part)
    assert not app.exception
    assert not app.error
    table = {"Findings": "ranks", "Shapes and buckets": "shapes", "Requests": "requests", "Sources": "failed"}[part]
    assert len(app.dataframe[0].value) == len(result.payload[table])


def test_a_source_leads_to_its_pages_and_shows_its_tables(made) -> None:
    folder, result = made
    row = result.tables["sources"][3]
    app = run_page([folder.path], "Batch", part="Sources", trace=row["trace"], table="kernels")
    assert [link.rpartition("source=")[2] for link in _links(app)] == ["rank-3.json"] * 4
    assert app.dataframe[2].value["calls"].tolist() == folder.part("kernels", row["trace"])["calls"].to_pylist()
    page = run_page([folder.path], "Overview", source="rank-3.json")
    assert not page.exception
    assert page.header[0].value == "Overview"


def test_a_source_that_is_gone_has_its_tables_only(tmp_path) -> None:
    first, second, *_ = job.write(tmp_path / "job")
    folder, result = batch([first, second], tmp_path / "OUT")
    first.unlink()
    app = run_page([folder.path], "Batch", part="Sources", trace=result.tables["sources"][0]["trace"])
    assert "The recording is gone" in texts(app)
    assert not _links(app)
    assert len(app.dataframe) == 2
    shown = run_page([folder.path], "Batch")
    assert not shown.exception


def test_a_recording_has_no_page_batch(made, sample_traces) -> None:
    app = run_page([made[0].path, sample_traces / "cold-torch"], "Batch", source="cold-torch")
    assert not app.exception
    assert app.header[0].value == "Overview"


def test_below_the_served_folder(tmp_path) -> None:
    job.write(tmp_path / "job")
    folder, result = batch([tmp_path / "job"], tmp_path / "OUT")
    slow = result.tables["sources"][job.SLOW]["trace"]
    app = run_page([], "Batch", tmp_path.resolve(), source="folder: OUT", part="Sources", trace=slow)
    assert not app.exception
    assert all(link.endswith(f"rank-{job.SLOW}.json") for link in _links(app))
    assert str(tmp_path) not in _plain(app)
    (folder.path / "kernels" / "link").symlink_to("/")
    (folder.path / "new").touch()
    refused = run_page([], "Batch", tmp_path.resolve(), source="folder: OUT")
    assert "symbolic links" in _plain(refused)


@pytest.mark.parametrize("content", [None, "{", "[]", '{"schema_version": 0}'])
def test_a_batch_without_a_sound_report_is_one_sentence(tmp_path, content) -> None:
    (tmp_path / "batch.json").write_text("{}")
    if content:
        (tmp_path / "overall.json").write_text(content)
    app = run_page([tmp_path])
    assert not app.exception
    assert len(app.error) == 1
    assert "run the same `tprof batch` again" in _plain(app)


def test_two_batches_are_compared_as_tprof_diff_does(made, tmp_path) -> None:
    job.write(tmp_path / "job", slow=None)
    before, _ = batch([tmp_path / "job"], tmp_path / "BEFORE", WARM)
    after, _ = made
    told = compare.diff(before, after)
    app = run_page([after.path, before.path], "Compare", source="batch: OUT", other="batch: BEFORE")
    assert not app.exception
    assert app.dataframe[0].value["trace"].tolist() == [row["trace"] for row in told.tables["sources"]]
    assert {block.value for block in app.code} == {f"tprof diff {before.path} {after.path}"}
    alone = run_page([after.path], "Compare")
    assert "There is no other batch" in alone.info[0].value


def test_names_of_a_trace_are_never_markup(tmp_path) -> None:
    write(tmp_path / "a.json", [annotation(HOSTILE)])
    folder, _ = batch([tmp_path / "a.json", tmp_path / "<img src=x onerror=alert(1)>.json"], tmp_path / "OUT")
    for part in PARTS:
        assert_no_markup(run_page([folder.path], "Batch", part=part))
