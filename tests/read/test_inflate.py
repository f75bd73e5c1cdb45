from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from tprof.errors import SourceError
from tprof.read import inflate
from tprof.read.inflate import Source, inflated_file

if TYPE_CHECKING:
    from pathlib import Path

    from tprof.events import Note

TEXT = b"".join(b"%d," % (n * n) for n in range(60_000))


@pytest.fixture(params=["isal", "zlib"], autouse=True)
def codec(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    import zlib

    monkeypatch.setattr(inflate, "_codec", zlib if request.param == "zlib" else pytest.importorskip("isal.isal_zlib"))


def read(folder: Path, content: bytes) -> tuple[bytes, list[Note]]:
    path = folder / "x"
    path.write_bytes(content)
    source = Source(path, "x")
    return b"".join(source.pieces()), source.notes


@pytest.mark.parametrize("content", [TEXT, b"", b"\x1f"])
def test_plain(tmp_path: Path, content: bytes) -> None:
    assert read(tmp_path, content) == (content, [])


def test_several_members(tmp_path: Path) -> None:
    assert read(tmp_path, gzip.compress(TEXT[:1000]) + gzip.compress(b"") + gzip.compress(TEXT[1000:])) == (TEXT, [])


def test_zero_padding_is_harmless(tmp_path: Path) -> None:
    assert read(tmp_path, gzip.compress(TEXT) + bytes(512)) == (TEXT, [])


def test_garbage_behind_the_last_member(tmp_path: Path) -> None:
    text, notes = read(tmp_path, gzip.compress(TEXT) + b"garbage")
    assert text == TEXT
    assert [(note.code, note.count) for note in notes] == [("trailing-garbage", 7)]


@pytest.mark.parametrize("missing", [1, 8, 9, 1000])
def test_cut_member_gives_what_inflates(tmp_path: Path, missing: int) -> None:
    text, notes = read(tmp_path, gzip.compress(TEXT)[:-missing])
    assert TEXT.startswith(text)
    assert len(text) > len(TEXT) - 8 * missing - 200
    assert [note.code for note in notes] == ["cut-gzip"]


def test_cut_in_the_second_header(tmp_path: Path) -> None:
    text, notes = read(tmp_path, gzip.compress(TEXT) + b"\x1f\x8b\x08")
    assert text == TEXT
    assert [note.code for note in notes] == ["cut-gzip"]


def test_damage_in_the_middle_gives_what_came_before(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(TEXT))
    half = len(packed) // 2
    packed[half : half + 64] = bytes([255]) * 64
    text, notes = read(tmp_path, bytes(packed))
    third = len(TEXT) // 3
    assert text[:third] == TEXT[:third]
    assert [note.code for note in notes] == ["cut-gzip"]


def test_wrong_checksum_loses_nothing(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(TEXT))
    packed[-6] ^= 1
    text, notes = read(tmp_path, bytes(packed))
    assert text == TEXT
    assert [note.code for note in notes] == ["cut-gzip"]


def test_progress_counts_bytes_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(gzip.compress(TEXT))
    seen: list[tuple[int, int]] = []
    list(Source(path, "x", lambda done, total: seen.append((done, total))).pieces())
    assert seen[-1] == (path.stat().st_size, path.stat().st_size)
    assert sorted(seen) == seen


def test_sqlite_goes_through_a_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite.gz"
    path.write_bytes(gzip.compress(TEXT))
    notes: list[Note] = []
    with inflated_file(path, "x", notes) as plain:
        assert plain.read_bytes() == TEXT
        assert plain != path
    assert not plain.exists()
    assert notes == []


def test_plain_file_is_used_in_place(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    path.write_bytes(TEXT)
    with inflated_file(path, "x", []) as plain:
        assert plain == path
    assert path.exists()


def test_vanished_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(TEXT)
    source = Source(path, "x")
    path.unlink()
    with pytest.raises(SourceError, match="x: cannot be read"):
        list(source.pieces())
