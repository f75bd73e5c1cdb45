"""The picture of shares, decoded again."""

from __future__ import annotations

import struct
import zlib
from base64 import b64decode

import numpy as np

from tprof.present.colours import of_part
from tprof.present.pixmap import picture

COMPILE, WORK = ("compile", "recorded"), ("busy.work", "recorded")


def _decoded(uri: str):
    """Palette index of every pixel, and the palette."""
    data = b64decode(uri.removeprefix("data:image/png;base64,"))
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    chunks, at = {}, 8
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert struct.unpack_from(">I", data, at + 8 + size)[0] == zlib.crc32(kind + body)
        chunks[kind], at = body, at + 12 + size
    width, height = struct.unpack_from(">II", chunks[b"IHDR"])
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, width + 1)
    colours = ["#" + chunks[b"PLTE"][3 * i : 3 * i + 3].hex() for i in range(len(chunks[b"PLTE"]) // 3)]
    return rows[:, 1:], colours


def test_parts_are_stacked_in_proportion_from_the_bottom() -> None:
    index, palette = _decoded(picture([{COMPILE: np.array([1.0, 0.25, 0.0]), WORK: np.array([0.0, 0.5, 0.0])}]))
    heights = [
        [sum(palette[i] == of_part(part) for i in column if i) for part in ("compile", "busy.work")]
        for column in index.T
    ]
    assert heights == [[16, 0], [4, 8], [0, 0]]
    assert palette[index[-3, 1]] == of_part("compile")  # two rows of gap lie below


def test_the_least_share_shows() -> None:
    index, palette = _decoded(picture([{COMPILE: np.array([1e-9, 0.0])}]))
    assert [[palette[i] for i in column if i] for column in index.T] == [[of_part("compile")], []]


def test_lanes_are_rows_and_inferred_is_hatched() -> None:
    index, palette = _decoded(picture([{COMPILE: np.ones(10)}, {("compile", "inferred"): np.ones(10)}]))
    assert index.shape == (40, 10)
    assert {palette[i] for i in np.unique(index[2:18])} == {of_part("compile")}
    lower = {palette[i] for i in np.unique(index[22:38])}
    assert of_part("compile") in lower
    assert len(lower) == 2
