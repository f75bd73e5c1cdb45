"""Shares of pixels as a picture: one strip per lane, stacked by part. A PNG of 20 KB shows any number of events."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from typing import TYPE_CHECKING, Final

import numpy as np

from tprof.present import colours

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ROWS, _GAP = 16, 4  # pixels of a lane's strip, and between two
_HATCH: Final = 5  # every so many pixels of something inferred are lighter


def picture(shares: Sequence[Mapping[tuple[str, str], np.ndarray]]) -> str:
    """A data URI of a PNG whose rows are the lanes, top down, and whose columns are the pixels.

    Args:
        shares: of each lane, by part and basis, its share of each pixel (0 to 1); shape (pixels,).
    """
    parts = list(dict.fromkeys(part for lane in shares for part in lane))
    strips = [_strip(lane, parts) for lane in shares]
    palette = [(0, 0, 0), *(_rgb(part) for part, _ in parts), *(_light(_rgb(part)) for part, _ in parts)]
    content = b64encode(_png(np.concatenate(strips), palette)).decode()
    return f"data:image/png;base64,{content}"


def _strip(lane: Mapping[tuple[str, str], np.ndarray], parts: Sequence[tuple[str, str]]) -> np.ndarray:
    """Palette indices of one lane, shape (rows, pixels): the parts stacked from the bottom, 0 above them.

    The lowest row shows the first part that has any time in a pixel, however little.
    """
    reach = np.cumsum(list(lane.values()), axis=0)
    level = ((np.arange(_ROWS) + 0.5) / _ROWS)[::-1, None, None]
    level[-1] = 0
    which = (reach <= level + 1e-12).sum(axis=1)  # 1e-12: sums of shares need not reach 1 exactly
    index = np.array([*(parts.index(part) + 1 for part in lane), 0], np.uint8)
    light = np.array([*(len(parts) * (basis == "inferred") for _, basis in lane), 0], np.uint8)
    hatch = np.add.outer(np.arange(_ROWS), np.arange(reach.shape[1])) % _HATCH == 0
    drawn = index[which] + np.where(hatch, light[which], 0)
    gap = np.zeros((_GAP // 2, drawn.shape[1]), np.uint8)
    return np.concatenate([gap, drawn.astype(np.uint8), gap])


def _rgb(part: str) -> tuple[int, int, int]:
    red, green, blue = bytes.fromhex(colours.of_part(part).lstrip("#"))
    return red, green, blue


def _light(colour: tuple[int, int, int]) -> tuple[int, int, int]:
    red, green, blue = ((c + 255) // 2 for c in colour)
    return red, green, blue


def _png(index: np.ndarray, palette: Sequence[tuple[int, int, int]]) -> bytes:
    """An indexed PNG (RFC 2083) whose colour 0 is transparent; `index` has shape (rows, columns), uint8."""
    lines = np.concatenate([np.zeros((len(index), 1), np.uint8), index], axis=1)  # each begins with its filter: none
    head = struct.pack(">IIBBBBB", index.shape[1], index.shape[0], 8, 3, 0, 0, 0)
    chunks = (
        (b"IHDR", head), (b"PLTE", bytes(v for colour in palette for v in colour)), (b"tRNS", b"\0"),
        (b"IDAT", zlib.compress(lines.tobytes(), 3)), (b"IEND", b""),
    )  # fmt: skip
    packed = (struct.pack(">I", len(c)) + k + c + struct.pack(">I", zlib.crc32(k + c)) for k, c in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)
