"""What a user of a served app may read: what the operator named, what lies below the root, and bounded uploads."""

from __future__ import annotations

import gzip

import pytest
from support.apptest import annotation, write

from tprof.errors import TprofError

pytest.importorskip("streamlit", reason="the extra `app` is not installed")
from tprof_app.served import Served, bounded


@pytest.fixture
def root(tmp_path):
    """A folder with a recording, a folder, and ways out of it."""
    top = tmp_path / "served"
    (top / "runs").mkdir(parents=True)
    write(top / "a.json", [annotation("request#0")])
    write(top / "runs" / "b.json", [annotation("request#0")])
    write(tmp_path / "secret.json", [annotation("request#0")])
    (top / "link.json").symlink_to(tmp_path / "secret.json")
    (top / "out").symlink_to(tmp_path)
    (top / "notes.txt").write_text("no trace")
    (top / ".hidden.json").write_text("{}")
    return top.resolve()


def test_arguments() -> None:
    assert Served.parsed([]) == Served()
    said = Served.parsed(["--root", ".", "--allow-nsys-rep", "--", "-x.json", "y"])
    assert (said.given, said.reports) == (("-x.json", "y"), True)
    assert said.root is not None
    assert said.root.is_absolute()


def test_listing_shows_folders_and_recordings_but_no_links(root) -> None:
    assert Served(root=root).listed("") == (["runs"], ["a.json"])
    assert Served(root=root).listed("runs") == ([], ["b.json"])


@pytest.mark.parametrize(
    "name", ["../secret.json", "runs/../../secret.json", "link.json", "out/secret.json", "/etc/passwd", "out"]
)
def test_nothing_outside_is_opened(root, name) -> None:
    with pytest.raises(TprofError, match="not below the served folder"):
        Served(root=root).below(name)


def test_without_a_root_nothing_is_below_it() -> None:
    with pytest.raises(TprofError, match="--root"):
        Served().below("a.json")


def test_a_folder_is_no_recording_and_a_run_holds_no_links(root, tmp_path) -> None:
    with pytest.raises(TprofError, match="is a folder"):
        Served(root=root).checked(root / "runs")
    run = root / "run"
    run.mkdir()
    (run / "run.json").write_text("{}")
    assert Served(root=root).checked(run) == run
    (run / "process-1.jsonl").symlink_to(tmp_path / "secret.json")
    with pytest.raises(TprofError, match="symbolic links"):
        Served(root=root).checked(run)


def test_reports_need_the_operators_word(root) -> None:
    report = root / "x.nsys-rep"
    report.write_bytes(b"\x01\x02report")
    with pytest.raises(TprofError, match="--allow-nsys-rep"):
        Served(root=root).checked(report)
    assert Served(root=root, reports=True).checked(report) == report


def test_a_bomb_is_refused(tmp_path) -> None:
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b" " * (4 << 20)))
    bounded(path)
    with pytest.raises(TprofError, match=r"bomb\.json\.gz: is over 0 GiB when inflated"):
        bounded(path, 1 << 20)
