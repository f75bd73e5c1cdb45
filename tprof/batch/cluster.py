"""The same work on a cluster of dask.distributed, whose workers see the same files."""

from __future__ import annotations

from concurrent.futures import CancelledError
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from tprof import __version__
from tprof.batch.local import LOOK_SECONDS
from tprof.batch.work import Outcome, Task, analyse
from tprof.errors import FAILED, TprofError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_CONNECT_SECONDS: Final = 10
_GONE: Final = "the scheduler went away; run the same command again to go on where it stopped"
_PATIENCE_SECONDS: Final = 30  # without a worker


def run(tasks: Sequence[Task], address: str | None, file: Path | None) -> Iterator[Outcome | None]:
    """Outcomes as they come, and None about twice a second in between.

    Args:
        tasks: what to do; `out` and the sources must mean the same to every worker.
        address: of the scheduler.
        file: the scheduler's own file, which holds its address.

    Raises:
        UsageError: dask.distributed is not installed here.
        TprofError: there is no scheduler, it goes away, it has no workers, or one of them lacks this tprof.
    """
    if find_spec("distributed") is None:
        raise UsageError("a cluster needs dask.distributed; install it with: pip install 'triton-tprof[cluster]'")
    client = _connect(address, file)
    try:
        _check_workers(client)
        yield from _outcomes(client, tasks)
    except (OSError, CancelledError) as error:  # whatever was asked of the scheduler when its connection broke
        raise TprofError(_GONE) from error
    finally:
        client.close(timeout=LOOK_SECONDS)


def _connect(address: str | None, file: Path | None) -> Any:
    from distributed import Client  # noqa: PLC0415  in the extra `cluster`

    try:
        return Client(address, scheduler_file=file and str(file), timeout=_CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise TprofError(f"{address or file}: no scheduler answers there; start one with `dask scheduler`") from error


def _check_workers(client: Any) -> None:
    """Raise unless there are workers, all with this version of the package: what they send back must be the same."""
    try:
        client.wait_for_workers(1, timeout=_PATIENCE_SECONDS)
    except TimeoutError:
        raise TprofError("the scheduler has no workers; start some with `dask worker`") from None
    lacking = [worker for worker, spec in client.run(find_spec, "tprof").items() if spec is None]
    others = {} if lacking else client.run(_version)
    wrong = lacking or [worker for worker, version in others.items() if version != __version__]
    if wrong:
        raise TprofError(
            f"the worker {wrong[0]} has no tprof {__version__}; install it there with: "
            f"pip install 'triton-tprof=={__version__}'"
        )


def _version() -> str:
    return __version__


def _outcomes(client: Any, tasks: Sequence[Task]) -> Iterator[Outcome | None]:
    from distributed import wait  # noqa: PLC0415  as above

    ordered = sorted(tasks, key=lambda t: -t.source.size)
    # `pure=False`: the scheduler must not answer from the result of an earlier run.
    pending = {client.submit(analyse, task, pure=False): task for task in ordered}
    while pending:
        try:
            done = wait(list(pending), timeout=LOOK_SECONDS, return_when="FIRST_COMPLETED").done
        except TimeoutError:
            done = set()
        if client.status != "running" or any(future.cancelled() for future in done):
            raise TprofError(_GONE)
        for future in done:
            yield _outcome(future, pending.pop(future))
        yield None


def _outcome(future: Any, task: Task) -> Outcome:
    """What a worker sent back; a worker that dies several times with one source is that source's failure."""
    from distributed.scheduler import KilledWorker  # noqa: PLC0415  as above

    error = future.exception()
    if error is None:
        outcome: Outcome = future.result()
        return outcome
    why = "its workers were killed, most likely for want of memory" if isinstance(error, KilledWorker) else str(error)
    return Outcome(task.source, f"{task.source.path}: {why}", FAILED)
