"""The command line: a function per verb. Results go to stdout, everything else to stderr."""

from tprof.cli.entry import main

__all__ = ["main"]
