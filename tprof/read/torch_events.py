"""The JSON shape of one trace event, as msgspec decodes it.

Numbers that need care (times, grids, shapes) stay raw text here: `torch_numbers` parses them in bulk.
"""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec
from msgspec import Raw

MISSING = -1
# What decoding text that may be anything raises: no JSON or other types; bytes that are no text; nested too deeply.
UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
NO_TRIPLE = b"[-1,-1,-1]"


class Args(msgspec.Struct, gc=False):
    """The `args` that become columns; every other key is skipped by the decoder."""

    correlation: int = MISSING
    external: int = msgspec.field(default=MISSING, name="External id")
    external_old: int = msgspec.field(default=MISSING, name="external id")
    device: int = MISSING
    context: int = MISSING
    stream: int = MISSING
    stream_ascend: int = msgspec.field(default=MISSING, name="Stream Id")
    task: str | None = msgspec.field(default=None, name="Task Type")
    registers: int = msgspec.field(default=MISSING, name="registers per thread")
    shared: int = msgspec.field(default=MISSING, name="shared memory")
    bytes: int = MISSING
    node: int = msgspec.field(default=MISSING, name="graph node id")
    grid: Raw = Raw(NO_TRIPLE)
    block: Raw = Raw(NO_TRIPLE)
    dims: Raw = msgspec.field(default=Raw(b""), name="Input Dims")
    types: Raw = msgspec.field(default=Raw(b""), name="Input type")
    strides: Raw = msgspec.field(default=Raw(b""), name="Input Strides")
    kernel_backend: Raw = Raw(b"")
    kernel_hash: Raw = Raw(b"")
    kernel_file: Raw = Raw(b"")
    name: Raw = Raw(b"")


class Event(msgspec.Struct, gc=False):
    """One trace event."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | str = ""
    tid: int | str = ""
    ts: Raw = Raw(b"")
    dur: Raw = Raw(b"0")
    args: Args | None = None


decode_events = msgspec.json.Decoder(list[Event]).decode


_decode_event = msgspec.json.Decoder(Event).decode
_decode_raw = msgspec.json.Decoder(dict[str, Raw]).decode
_FIELDS: Final = {f.encode_name: f for f in msgspec.structs.fields(Args)}


def loosen(text: bytes | Raw) -> Event:
    """Decode one event, whose fields may have other types than the usual ones ("7" for 7, null, a number as name).

    Raises:
        msgspec.DecodeError: the text is no JSON object.
    """
    try:
        return _decode_event(text)
    except msgspec.ValidationError:
        raw = _decode_raw(text)
    return Event(
        ph=_text(raw.get("ph")), cat=_text(raw.get("cat")), name=_text(raw.get("name")),
        pid=_id(raw.get("pid")), tid=_id(raw.get("tid")),
        ts=raw.get("ts", Raw(b"")), dur=raw.get("dur", Raw(b"0")), args=_args(raw.get("args")),
    )  # fmt: skip


def _args(raw: Raw | None) -> Args | None:
    try:
        given = _decode_raw(raw or b"{}")
    except msgspec.ValidationError:
        return None
    values: dict[str, Any] = {}
    for key, field in _FIELDS.items():
        if key in given:
            values[field.name] = given[key] if field.type is Raw else _as(given[key], field.type, field.default)
    return Args(**values)


def _as(raw: Raw, kind: Any, default: Any) -> Any:
    try:
        return msgspec.json.decode(raw, type=kind, strict=False)
    except msgspec.ValidationError:
        return default


def _text(raw: Raw | None) -> str:
    if raw is None:
        return ""
    value = msgspec.json.decode(raw)
    if value is None:
        return ""
    return value if isinstance(value, str) else bytes(raw).decode("utf-8", "replace")


def _id(raw: Raw | None) -> int | str:
    return "" if raw is None else cast("int | str", _as(raw, int, _text(raw)))
