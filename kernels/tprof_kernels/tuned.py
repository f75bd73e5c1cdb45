"""A Triton function with a bounded search: tuned candidates for the declared buckets, one conservative config else.

`triton.autotune` alone tunes again for every new value in its `key`, so a key that holds a sequence length makes every
new length pay for a search. Here the key holds the bucket's number instead, and a shape outside every bucket is never
searched for: it takes the conservative config at once.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import triton

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tprof.buckets import BucketSet

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"  # as Triton decided when it decorated our functions
OUTSIDE = -1  # number of no bucket

Choice = Literal["tuned", "conservative", "forced", "fallback"]
decisions: Counter[tuple[str, str | None, Choice]] = Counter()  # (kernel, bucket, what served it) -> calls
_forced: dict[str | None, triton.Config] = {}  # by kernel; None: every kernel


@dataclass(frozen=True)
class Tuned:
    """A jitted function, the configs that are worth timing for it, and the one that always works.

    Attributes:
        jit: the `@triton.jit` function; it takes the bucket's number as the argument `bucket`, which it does not use
            and which must stand in `do_not_specialize`.
        candidates: configs that are timed in a declared bucket.
        conservative: config that fits every supported device and shape.
        buckets: the shapes worth a search.
        key: other arguments that select a search: dtypes and sizes that are fixed by the model.
        prune: `early_config_prune` of `triton.autotune`, where a candidate does not fit every shape.
    """

    jit: Any
    candidates: Sequence[triton.Config]
    conservative: triton.Config
    buckets: BucketSet
    key: Sequence[str] = ()
    prune: Callable[..., list[triton.Config]] | None = None
    autotuner: Any = field(init=False)

    def __post_init__(self) -> None:
        prune = {"prune_configs_by": {"early_config_prune": self.prune}} if self.prune else {}
        decorate = triton.autotune(list(self.candidates), key=["bucket", *self.key], **prune)
        object.__setattr__(self, "autotuner", decorate(self.jit))

    @property
    def name(self) -> str:
        """Of the jitted function."""
        return str(getattr(self.jit, "fn", self.jit).__name__)

    def launch(self, grid: Any, values: Mapping[str, int], *args: Any, **kwargs: Any) -> None:
        """Run it.

        Args:
            grid: as Triton takes it.
            values: the sizes that the buckets speak of.
            args: arguments of the jitted function, without `bucket`.
            kwargs: the rest of them; constexprs of a config are added here.
        """
        name = self.buckets.find(values)
        number = OUTSIDE if name is None else [b.name for b in self.buckets.buckets].index(name)
        config = _forced.get(self.name) or _forced.get(None)
        choice = "forced" if config else _choice(name)
        decisions[self.name, name, choice] += 1
        if choice == "tuned":
            self.autotuner[grid](*args, bucket=number, **kwargs)
        else:
            config = config or self.conservative
            self.jit[grid](*args, bucket=number, **kwargs, **config.all_kwargs())


def _choice(bucket: str | None) -> Choice:
    """What serves a shape; `TPROF_KERNELS_TUNE=0` never searches, and the interpreter has nothing to time."""
    if bucket is None or INTERPRETED or os.environ.get("TPROF_KERNELS_TUNE") == "0":
        return "conservative"
    return "tuned"


@contextmanager
def forced(config: triton.Config, *kernels: Tuned) -> Iterator[None]:
    """Launches of these kernels (of every kernel, where none is named) take this config: to test or measure it."""
    before = dict(_forced)
    _forced.update(dict.fromkeys([kernel.name for kernel in kernels] or [None], config))
    try:
        yield
    finally:
        _forced.clear()
        _forced.update(before)


def fell_back(kernel: str) -> None:
    """Count a call that torch operators served."""
    decisions[kernel, None, "fallback"] += 1
