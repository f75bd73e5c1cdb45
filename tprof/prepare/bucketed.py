"""Buckets with a fallback: hot shapes run pinned configs; any other shape is served at once, and never tuned for."""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING, Any, Final

from tprof.buckets import BucketSet, values_of
from tprof.errors import UsageError
from tprof.prepare.background import Background
from tprof.record.decisions import decided

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import triton

PINNED, TUNED, SWITCHED, CONSERVATIVE, FALLBACK = "pinned", "tuned", "switched", "conservative", "fallback"
NO_CONFIGS: Final = "has no @triton.autotune whose configs could be searched; pin its buckets, or leave search out"


class bucketed:  # noqa: N801 - reads as a word: `attend = tprof.bucketed(kernel, ...)`, then `attend[grid](...)`
    """A kernel that is launched as before, `kernel[grid](...)`, with a bounded cold start.

    The shape of a call is its integers and the sizes of its tensors, by the names of the kernel's arguments (`M`,
    `q[2]`). In a pinned bucket its config runs. In another bucket the first few configs of the kernel's own autotuner
    are timed, once per bucket and dtypes. Any other shape goes to `otherwise` at once. Which of these served a call is
    counted (`tprof.record.decisions`, the metric `tprof_decisions_total`), and named by a range in recordings.

    Args:
        kernel: a `@triton.jit` function, also beneath `@triton.heuristics` and `@triton.autotune`.
        buckets: the shapes that are served hot.
        otherwise: what serves any other shape: a config that fits all, or a function of the same arguments.
        pinned: a config by bucket.
        search: so many configs of the kernel's autotuner are timed in a bucket that is not pinned; 0: `otherwise`
            serves it.
        background: a config that a thread compiles for each specialization that goes to `otherwise`, and that serves it
            from then on.

    Raises:
        UsageError: a pinned bucket does not exist, or there are no configs to search.
    """

    def __init__(
        self,
        kernel: Any,
        *,
        buckets: BucketSet,
        otherwise: triton.Config | Callable[..., Any],
        pinned: Mapping[str, triton.Config] | None = None,
        search: int = 0,
        background: triton.Config | None = None,
    ) -> None:
        tuned = hasattr(kernel, "configs")
        self.buckets, self.otherwise, self.pinned = buckets, otherwise, dict(pinned or {})
        self.kernel = kernel.fn if tuned else kernel
        self.name = _function(kernel).__name__
        self._background, self._config = Background(self.kernel, self.name), background
        if unknown := self.pinned.keys() - {bucket.name for bucket in buckets.buckets}:
            raise UsageError(f"{buckets.name} has no bucket {min(unknown)!r} to pin a config of {self.name} for")
        if search and not tuned:
            raise UsageError(f"{self.name} {NO_CONFIGS}")
        free = [bucket.name for bucket in buckets.buckets if search and bucket.name not in self.pinned]
        self._tuners = {bucket: _bounded(kernel, search) for bucket in free}
        self._sized = {value.partition("[")[0] for bucket in buckets.buckets for value in bucket.bounds}

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """What launches it."""
        return functools.partial(self.run, grid=grid)

    def run(self, *args: Any, grid: Any, **kwargs: Any) -> Any:
        """Launch, or have `otherwise` serve the call.

        Returns:
            What the function `otherwise` returned, else Triton's compiled kernel.
        """
        named = dict(zip(self.kernel.arg_names, args, strict=False)) | kwargs
        bucket = self.buckets.find(values_of({name: named[name] for name in self._sized & named.keys()}))
        choice, config = self._choose(bucket, args, kwargs)
        with decided(self.name, bucket, choice):
            if choice == FALLBACK:
                return self.otherwise(*args, **kwargs)
            if config is None:
                return self._tuners[str(bucket)][grid](*args, **kwargs)
            constants = config.all_kwargs()
            if config.pre_hook is not None:
                config.pre_hook({**named, **constants})
            return self.kernel[grid](*args, **kwargs, **constants)

    def _choose(self, bucket: str | None, args: Any, kwargs: dict[str, Any]) -> tuple[str, triton.Config | None]:
        """What serves a call, and with which config."""
        if bucket in self.pinned:
            return PINNED, self.pinned[bucket]
        if bucket in self._tuners:
            return TUNED, None
        if self._config is not None and self._background.is_ready(args, kwargs | self._config.all_kwargs()):
            return SWITCHED, self._config
        return (CONSERVATIVE, self.otherwise) if hasattr(self.otherwise, "all_kwargs") else (FALLBACK, None)


def _bounded(tuner: Any, search: int) -> Any:
    """The autotuner for one bucket: fewer configs, and a key of dtypes alone."""
    bounded = copy.copy(tuner)
    bounded.configs, bounded.keys, bounded.cache = tuner.configs[:search], [], {}
    return bounded


def _function(kernel: Any) -> Any:
    """The Python function beneath all decorators."""
    while hasattr(kernel, "fn"):
        kernel = kernel.fn
    return kernel
