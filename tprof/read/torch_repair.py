"""Repairs of JSON text that torch.profiler and its relatives are known to break."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from tprof.read.torch_events import UNDECODABLE

if TYPE_CHECKING:
    from collections.abc import Callable

_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BAD_ESCAPE: Final = re.compile(rb'\\(?:u(?![0-9a-fA-F]{4})|[^"\\/bfnrtu])', re.DOTALL)
_ESCAPE: Final = re.compile(rb"\\(.)", re.DOTALL)
_NUMBER: Final = re.compile(rb"([:\[,]\s*)[-+]?(?:nan|inf|infinity)(?=\s*[,}\]])", re.IGNORECASE)
_HALF_KEY: Final = re.compile(rb'([{,]\s*)([A-Za-z_]\w*)"\s*:')
_EVENT_KEY: Final = rb'"(?:ph|cat|name|pid|tid|ts|dur|args|id|s|bp)"\s*:'
# A value ends before the next key or line; a name that holds what looks like keys, before the next key of an event.
_NAME: Final = re.compile(rb'("name"\s*:\s*")(.*?)(?="\s*(?:,\s*' + _EVENT_KEY + rb"|\}))", re.DOTALL)
_KEY: Final = rb'"[^"\n]{1,80}"\s*:'
_VALUE: Final = re.compile(
    rb"(" + _KEY + rb'\s*")(.*?)(?="\s*(?:,\s*' + _KEY + rb"|,?\s*[\r\n]|,?\s*[}\]]|,?\s*\Z))", re.DOTALL
)
_QUOTE: Final = re.compile(rb'(\\.)|"', re.DOTALL)
_SPACES: Final = bytes(max(byte, 32) for byte in range(256))  # control characters to blanks


def repair(text: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Text with known damage mended, and the codes of what was mended.

    Each repair is tried alone first, so that the code says what was wrong; then one on top of the other.
    """
    for code, step in _STEPS:
        if valid(mended := step(text)):
            return mended, (code,)
    codes = []
    for code, step in _STEPS:
        mended = step(text)
        if mended != text:
            codes.append(code)
            text = mended
    return text, tuple(codes)


def valid(text: bytes) -> bool:
    """Whether a text is one JSON value."""
    try:
        msgspec.json.decode(text)
    except UNDECODABLE:
        return False
    return True


def _utf8(text: bytes) -> bytes:
    return text.decode("utf-8", "replace").encode()


def _controls(text: bytes) -> bytes:
    """Blanks for control characters: between values they mean the same, inside strings they are not allowed."""
    return text.translate(_SPACES)


def _escapes(text: bytes) -> bytes:
    """A string with an impossible escape was never escaped (Windows paths): all its backslashes are themselves."""

    def mend(found: re.Match[bytes]) -> bytes:
        if not _BAD_ESCAPE.search(found[0]):
            return found[0]
        return _ESCAPE.sub(lambda m: m[0] if m[1] in b'"\\' else b"\\" + m[0], found[0])

    return _STRING.sub(mend, text)


def _numbers(text: bytes) -> bytes:
    return _NUMBER.sub(rb"\1null", text)


def _keys(text: bytes) -> bytes:
    return _HALF_KEY.sub(rb'\1"\2":', text)


def _quotes(text: bytes) -> bytes:
    for field in (_VALUE, _NAME):
        mended = field.sub(lambda m: m[1] + _QUOTE.sub(lambda q: q[1] or b'\\"', m[2]), text)
        if valid(mended):
            return mended
    return mended


_STEPS: Final[tuple[tuple[str, Callable[[bytes], bytes]], ...]] = (
    ("not-utf8", _utf8),
    ("bad-escape", _escapes),
    ("not-a-number", _numbers),
    ("control-character", _controls),
    ("missing-quote", _keys),
    ("bad-quote", _quotes),
)
