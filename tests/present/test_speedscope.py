from __future__ import annotations

import json

from support.small import call, span, trace

from tprof.align import align
from tprof.analyze import Attribution
from tprof.analyze.stretches import thread_phases
from tprof.present import speedscope


def test_weights_fill_each_thread():
    of = Attribution(align(trace([span(0, 100, "op", kind="op"), call(40, 60), span(30, 90, "x", thread=1, tid=2)])))
    said = json.loads(speedscope.render(of.trace, thread_phases(of), "9"))
    first, second = said["profiles"]
    names = [said["shared"]["frames"][i]["name"] for (i,) in first["samples"]]
    assert list(zip(names, first["weights"], strict=True)) == [
        ("framework code", 40),
        ("launch", 20),
        ("framework code", 40),
    ]
    assert (second["startValue"], second["endValue"], sum(second["weights"])) == (30, 90, 60)


def test_a_trace_without_threads():
    of = Attribution(trace())
    assert json.loads(speedscope.render(of.trace, thread_phases(of), "9"))["profiles"] == []
