"""Settings of the recorder: an argument of `trace()` wins over its `TPROF_*` variable, which wins over the default."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tprof.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable


class Setting(NamedTuple):
    """One row of the table in docs/recording.md."""

    variable: str
    default: str
    allowed: tuple[str, ...]  # empty: any text
    meaning: str


TABLE: Final = {
    "out": Setting("TPROF_DIR", "", (), "run directory; default `tprof-<date>-<pid>` in the working directory"),
    "torch_profiler": Setting(
        "TPROF_TORCH_PROFILER", "off", ("off", "cpu", "gpu"), "run torch.profiler too: operators, or also the GPU"
    ),
    "nvtx": Setting("TPROF_NVTX", "1", ("0", "1"), "emit NVTX ranges in domain `tprof` where a tool listens"),
    "shapes": Setting(
        "TPROF_SHAPES", "first", ("first", "always"), "read tensor shapes once per grid and scalars, or at every launch"
    ),
    "max_shapes": Setting("TPROF_MAX_SHAPES", "1024", (), "shape keys kept per kernel; further ones share one key"),
    "interval": Setting("TPROF_INTERVAL", "0.25", (), "seconds between writes of the background thread, at most 0.5"),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What a recording was asked for."""

    out: Path
    torch_profiler: str
    nvtx: bool
    shapes: str
    max_shapes: int
    interval: float

    def to_dict(self) -> dict[str, Any]:
        """For run.json; the run directory itself is left out."""
        return {name: getattr(self, name) for name in TABLE if name != "out"}


def resolve(**arguments: Any) -> Settings:
    """Settings from the arguments that are not None, the environment and the defaults.

    Raises:
        UsageError: if a value is not one of the allowed ones, or not a number where one is needed.
    """
    value = {name: _value(name, arguments.get(name)) for name in TABLE}
    return Settings(
        out=Path(value["out"] or f"tprof-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"),
        torch_profiler=value["torch_profiler"],
        nvtx=value["nvtx"] == "1",
        shapes=value["shapes"],
        max_shapes=max(1, _number("max_shapes", value, int)),
        interval=min(0.5, max(0.01, _number("interval", value, float))),
    )


def _value(name: str, argument: Any) -> str:
    setting = TABLE[name]
    if isinstance(argument, bool):
        argument = int(argument)
    text = str(argument) if argument is not None else os.environ.get(setting.variable) or setting.default
    if setting.allowed and text not in setting.allowed:
        raise UsageError(f"{name}={text!r} ({setting.variable}) is unknown; use one of {', '.join(setting.allowed)}")
    return text


def _number(name: str, value: dict[str, str], kind: Callable[[str], Any]) -> Any:
    try:
        return kind(value[name])
    except ValueError:
        raise UsageError(f"{name}={value[name]!r} ({TABLE[name].variable}) is no number; give one") from None
