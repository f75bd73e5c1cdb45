"""Trace -> small result tables. No input or output, no plots; every function takes an `Attribution` and `Options`."""

from tprof.analyze.advice import advise
from tprof.analyze.attribution import Attribution
from tprof.analyze.autotune import autotune
from tprof.analyze.cold import cold
from tprof.analyze.idle import idle
from tprof.analyze.kernels import kernels
from tprof.analyze.options import Options
from tprof.analyze.requests import requests
from tprof.analyze.result import Result, Row
from tprof.analyze.shapes import shapes
from tprof.analyze.summary import summarize

__all__ = [
    "Attribution",
    "Options",
    "Result",
    "Row",
    "advise",
    "autotune",
    "cold",
    "idle",
    "kernels",
    "requests",
    "shapes",
    "summarize",
]
