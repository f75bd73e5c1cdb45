"""Compiled variants of a recorded process."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tprof.read.run_journal import Record


def of_kernel(kernel: Record) -> Record:
    """A compiled kernel as a specialization; it does not tell the hints of its arguments."""
    constant = kernel.get("constexprs") or {}
    arguments = [
        {"name": name, "type": "constexpr", "value": constant[name]}
        if name in constant
        else {"name": name, "type": kind}
        for name, kind in (kernel.get("signature") or {}).items()
    ]
    facts = {name: kernel.get(name) for name in ("function", "file", "line", "options")}
    return {**facts, "arguments": arguments}


def scalars(shape: Record | None) -> str | None:
    """Numbers among the arguments of a shape key, by name, as JSON; null where there is none."""
    found = {name: value for name, value in (shape or {}).get("args", {}).items() if isinstance(value, (int, float))}
    return json.dumps(found) if found else None


def key_parts(kernel: Record | None) -> str | None:
    """What the disk cache's key of a kernel was made of, besides the variant itself, as JSON."""
    if not kernel or "key_parts" not in kernel:
        return None
    target = kernel.get("target") or {}
    return json.dumps({"target": f"{target.get('backend')}:{target.get('arch')}", **kernel["key_parts"]})
