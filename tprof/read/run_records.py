"""What each type of record of a run directory holds (docs/run-directory.md), as far as it is read.

A record that holds something else is damaged: whoever reads the others may rely on these types. Fields and types of
records that are not listed here are let through.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Required, TypedDict

import msgspec

from tprof.events import PHASES  # noqa: TC001  msgspec reads the annotation
from tprof.model import TIME_LIMIT

Id = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]  # an int32 of the launch file
Int = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Small = Annotated[int, msgspec.Meta(ge=-(1 << 31), lt=1 << 31)]
Time = Annotated[int, msgspec.Meta(gt=-TIME_LIMIT, lt=TIME_LIMIT)]
Milliseconds = Annotated[float, msgspec.Meta(ge=0, lt=1e12)]  # whose nanoseconds fit an int64
Named = dict[str, Any]


class _Pair(TypedDict, total=False):
    t_ns: Required[Time]
    wall_ns: Required[Time]
    error_ns: Time


class _Process(TypedDict, total=False):
    t_ns: Time
    wall_ns: Time
    error_ns: Time
    pid: Int
    ppid: Int | None
    worker_of: Int | None
    rank: Small | None
    host: str
    program: str | None
    versions: dict[str, str | None]
    started_ns: Time | None


class _Clock(_Pair, total=False):
    when: str


class _Close(_Pair, total=False):
    lost: dict[str, Int]


class _Thread(TypedDict, total=False):
    tid: Required[Int]
    name: str | None


class _Device(TypedDict, total=False):
    name: str | None
    capability: Small | None


class _Devices(TypedDict, total=False):
    devices: list[_Device]


# Attributes of spans of every kind: those that two kinds have mean the same, but for `key`.
_Attrs = TypedDict(
    "_Attrs",
    {
        "async": bool, "skipped": bool, "cache_hit": bool | None, "kernel": Id | None, "hash": str | None, "stage": str,
        "op": str, "origin": str, "registers": Small | None, "spills": Small | None, "text": str | None,
        "config": Named | None, "timings_ms": list[Milliseconds | None] | None, "failed": str | None,
        "function": str | None, "key_names": list[str], "key": list[str] | str | None, "values": list[Any],
        "asked": Named, "best": Any, "caller": list[str] | None, "request_id": str | None, "method": str,
        "configs": Int,
    },
    total=False,
)  # fmt: skip


class _Begin(TypedDict, total=False):
    id: Required[Annotated[int, msgspec.Meta(ge=1, lt=1 << 31)]]
    parent: Required[Id]
    kind: Required[str]
    phase: Required[Literal[PHASES] | None]  # type: ignore[valid-type]  # the vocabulary is a constant
    name: Required[str]
    tid: Required[Int]
    request: Required[Id]
    t_ns: Required[Time]
    attrs: _Attrs


class _End(TypedDict, total=False):
    id: Required[Id]
    t_ns: Required[Time]
    ok: Required[bool]
    began_ns: Time
    error: str | None
    attrs: _Attrs


class _Instant(TypedDict, total=False):
    t_ns: Required[Time]
    tid: Required[Int]
    span: Id
    name: str | None
    function: str | None
    reasons: list[str] | None
    cache: str | None
    outcome: str | None
    best: str | None
    choices: list[Named] | None
    inputs: list[Any] | None


class _Interpreter(TypedDict):
    t_ns: Time


class _Import(TypedDict):
    name: str
    t_ns: Time
    end_ns: Time


class _Argument(TypedDict, total=False):
    name: Required[str]
    type: Required[str]
    hints: list[str]


class _Specialization(TypedDict, total=False):
    id: Id
    span: Id
    function: Required[str]
    file: str | None
    line: Small | None
    arguments: list[_Argument] | None
    options: Named | None


class _KeyParts(TypedDict, total=False):
    fingerprint: str | None
    lines: dict[str, Int]
    source: str | None
    triton: str | None
    backend: str | None
    environment: dict[str, str | None] | None


class _Kernel(TypedDict, total=False):
    id: Required[Id]
    name: Required[str]
    hash: Required[str | None]
    function: str | None
    file: str | None
    line: Small | None
    signature: dict[str, str] | None
    constexprs: Named | None
    options: Named | None
    shared_bytes: Small | None
    binary_bytes: Int | None
    target: Named | None
    key_parts: _KeyParts


class _Shape(TypedDict, total=False):
    id: Required[Id]
    kernel: Required[Id]
    t_ns: Time
    grid: list[Int]
    args: Named


class _Note(TypedDict, total=False):
    code: str
    message: str


class _Run(TypedDict, total=False):
    format_version: Any
    created: _Pair
    host: str
    versions: dict[str, str | None]
    environment: dict[str, str]
    settings: Named


_TYPES: Final[dict[str, Any]] = {
    "run": _Run, "process": _Process, "clock": _Clock, "close": _Close, "thread": _Thread, "devices": _Devices,
    "begin": _Begin, "end": _End, "mark": _Instant, "graph_cache": _Instant, "recompile": _Instant,
    "selection": _Instant, "interpreter": _Interpreter, "import": _Import, "specialization": _Specialization,
    "kernel": _Kernel, "shape": _Shape, "note": _Note,
}  # fmt: skip


def checked(kind: str, record: Named) -> None:
    """See that a record holds what its type must.

    Raises:
        msgspec.ValidationError: it does not.
    """
    if kind in _TYPES:
        msgspec.convert(record, _TYPES[kind])
