"""Raw JSON of a trace as the short texts that columns hold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


def strings(values: Iterable[object]) -> list[str]:
    """Texts that Arrow can hold: a lone surrogate becomes a question mark."""
    return [text if text.isascii() else text.encode("utf-8", "replace").decode() for text in map(str, values)]


def shape_text(raw: tuple[bytes, bytes, bytes]) -> str:
    """Input shapes, types and strides in short: `c10::BFloat16[512,1024]:[1024,1] Scalar`."""
    dims, types, strides = (_list(part) for part in raw)
    parts = []
    for row in range(max(len(dims), len(types))):
        kind = _at(types, row) or ""
        shape, step = _at(dims, row), _at(strides, row)
        text = str(kind) + (_compact(shape) if shape or kind not in ("", "Scalar", "ScalarList") else "")
        parts.append((text + (f":{_compact(step)}" if step else "")) or "-")
    return " ".join(parts)


def extra_text(raw: tuple[bytes, bytes, bytes]) -> str:
    """What Inductor says of a kernel that it calls, as JSON."""
    names = ("kernel_backend", "kernel_hash", "kernel_file")
    return json.dumps({name: _value(part) for name, part in zip(names, raw, strict=True) if part})


def _value(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode("utf-8", "replace")


def _list(raw: bytes) -> list[Any]:
    value = _value(raw) if raw else []
    return value if isinstance(value, list) else []


def _at(values: list[Any], row: int) -> Any:
    return values[row] if row < len(values) else None


def _compact(value: Any) -> str:
    return "[]" if not value else json.dumps(value, separators=(",", ":"))
