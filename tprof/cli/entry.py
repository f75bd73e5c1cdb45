"""The program: its verbs, and the one place where an error becomes a sentence and an exit code."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, cast

import typer

from tprof import __version__, errors
from tprof.cli import (
    accept,
    advise,
    analyses,
    batch,
    cache,
    check,
    cold,
    demo,
    diff,
    doctor,
    export,
    plan,
    question,
    record,
    requests,
    scrub,
    top,
    warmup,
)
from tprof.cli import app as app_verb
from tprof.cli.options import ClosedError, quiet, takes_ask

if TYPE_CHECKING:
    from collections.abc import Sequence

# Typer carries its own copy of Click, or uses an installed one: its base error is found from a class that it exports.
_CommandLineError = cast("type[Exception]", typer.BadParameter.__mro__[2])

program = typer.Typer(
    name="tprof",
    help="Why was the first request slow, and why is the GPU idle? Reads torch.profiler and Nsight Systems recordings.",
    epilog=(
        "Start with `tprof demo`. Every verb takes files or directories of traces. "
        "Exit codes: 0 done, 1 failed, 2 usage, 3 gate, 4 cannot judge."
    ),
    add_completion=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
_RUNS_A_COMMAND = {"allow_interspersed_args": False}  # whose options are its own


def version() -> int:
    """Print the version."""
    sys.stdout.write(f"tprof {__version__}\n")
    return errors.DONE


def _version(asked: bool) -> None:
    if asked:
        raise typer.Exit(version())


program.command()(quiet(demo.demo))
for verb in (
    analyses.summary, analyses.idle, cold.cold, analyses.autotune, analyses.shapes, requests.requests,
    analyses.kernels, advise.advise, diff.diff,
):  # fmt: skip
    program.command()(takes_ask(verb))
program.command()(takes_ask(check.check, check.OPTIONS))
program.command(context_settings=_RUNS_A_COMMAND)(quiet(record.record))
program.command()(quiet(plan.plan))
program.command(context_settings=_RUNS_A_COMMAND)(quiet(warmup.warmup))
for own in (top.top, accept.accept, batch.batch, export.export, scrub.scrub, app_verb.app, doctor.doctor, version):
    program.command()(quiet(own))
program.add_typer(cache.program)


@program.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    _: Annotated[bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)] = False,
) -> None:
    if context.invoked_subcommand is None:
        sys.stdout.write(context.get_help() + "\n")
        raise typer.Exit(errors.DONE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code; nothing that a user can cause ends in a traceback.

    Args:
        arguments: what follows the program's name; `sys.argv` if None.
    """
    question.owned = arguments is None
    try:
        code = typer.main.get_command(program).main(args=arguments, prog_name="tprof", standalone_mode=False)
        sys.stdout.flush()
    except (ClosedError, BrokenPipeError):
        return _closed()
    except errors.TprofError as error:
        return _say(str(error), error.exit_code)
    except _CommandLineError as error:
        return _say(_usage(error), errors.USAGE)
    except (KeyboardInterrupt, typer.Abort):
        return 130  # as a shell says of a program that Ctrl-C ended
    except (OSError, MemoryError) as error:
        return _say(_system(error), errors.FAILED)
    return code or errors.DONE


def _usage(error: Exception) -> str:
    """Typer's own message and where the help is."""
    context = getattr(error, "ctx", None)
    said = error.format_message().rstrip(".") if hasattr(error, "format_message") else str(error)
    return f"{said}; see `{context.command_path if context else 'tprof'} --help`"


def _system(error: OSError | MemoryError) -> str:
    if isinstance(error, MemoryError):
        return "not enough memory for these sources; read fewer at once"
    return f"{error.filename or 'input or output'}: {error.strerror or error}"


def _say(message: str, code: int) -> int:
    """One sentence on stderr."""
    from tprof.present.names import clean  # noqa: PLC0415  the message may quote a hostile name

    sys.stderr.write(f"tprof: {clean(message)}\n")
    return code


def _closed() -> int:
    """The reader of stdout has gone (`| head`): say nothing, now or when the interpreter flushes."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return errors.DONE
