"""Which implementation each operator really ran: by operator and input shapes the path, and whose kernels it ran."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from tprof.align.calls import is_kind
from tprof.align.captures import asked_by
from tprof.align.paths import library
from tprof.align.ranges import enclosing, looked_up
from tprof.analyze.shape_text import labels_by, split_grid
from tprof.events import PATHS
from tprof.intervals import NONE
from tprof.model import Trace, codes, first_rows, ints, refine

if TYPE_CHECKING:
    from tprof.analyze.result import Row

_SIZES = re.compile(r"\[\d[\d, ]*\](?=:| |$)")
_OWN = {"inductor": "Inductor", "aten": "PyTorch"}


def operator_rows(trace: Trace, rows: np.ndarray) -> list[Row]:
    """One row per operator, input shapes, path and implementation, the most device time first.

    The operator is the innermost around the launch, else (a kernel launched outside any) the kernel itself; `calls`
    counts operators, or launches where there are none. A Triton kernel that the recorder saw is `recorded`, with its
    arguments as shape and its module; every other path is judged by the kernel's name.

    Args:
        trace: with parents and paths.
        rows: of `device`; those that count.
    """
    facts = Facts(trace, rows)
    groups = np.zeros(len(rows), np.int64)
    for part in (facts.operator, facts.shape, facts.path, facts.implementation):
        groups = refine(groups, part)
    order = np.argsort(groups, kind="stable")
    found = [facts.row(own) for own in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1) if len(own)]
    whole = sum(row["total_ns"] for row in found)
    short = labels_by([row["operator"] for row in found], [row["shape"] or "" for row in found])
    for row, label in zip(found, short, strict=True):
        row["of_work_share"] = row["total_ns"] / whole if whole else 0.0
        row["label"] = label or None
    return sorted(found, key=lambda row: (-row["total_ns"], row["operator"], row["shape"] or ""))


class Facts:
    """What is known of some device events; arrays have shape (events,), codes point into the lists beside them."""

    def __init__(self, trace: Trace, rows: np.ndarray) -> None:
        host, device = trace.host, trace.device
        self.ns = (ints(device, "end_ns") - ints(device, "start_ns"))[rows]
        launch, captured = (ints(device, c)[rows] for c in ("launch", "capture"))
        asked = asked_by(device)[rows]
        name, names = codes(device, "name")
        self.name, self._names = name[rows], names
        self.path = codes(device, "path")[0][rows]
        self._paths = codes(device, "path")[1]
        op = enclosing(host, asked, is_kind(host, "op"))
        shapes, self._shapes = codes(host, "shape_key")
        kernel = codes(host, "kernel")[0]
        self.recorded = looked_up(kernel, asked) != NONE
        self.shape = np.where(self.recorded, looked_up(shapes, asked), looked_up(shapes, op))
        self.within = op != NONE
        code, self._operators = codes(host, "name")
        # an operator's name, or (numbered behind those) that of the kernel
        self.operator = np.where(op == NONE, len(self._operators) + self.name, looked_up(code, op)).astype(np.int64)
        replayed = (op == NONE) | (captured != NONE)  # each replay of a graph calls what was captured once
        self.call = np.where(replayed, np.where(launch == NONE, -2 - rows, launch), op)
        self.implementation, self._implementations = self._known(_modules(trace))

    def _known(self, modules: dict[str, str]) -> tuple[np.ndarray, list[str | None]]:
        """Whose each kernel is: library, module of a Triton kernel, Inductor, PyTorch; None where nothing says."""
        pair = refine(self.name.astype(np.int64), self.path)
        said: dict[str | None, int] = {None: 0}
        code = []
        for i in first_rows(pair).tolist():
            name, path = self._names[self.name[i]], self._paths[self.path[i]] if self.path[i] != NONE else PATHS[-1]
            whose = modules.get(name) if path == "triton" else _OWN.get(path) or library(name)
            code.append(said.setdefault(whose, len(said)))
        return np.array(code or [0])[pair] if len(pair) else pair, list(said)

    def name_of(self, event: int) -> str:
        """Operator of an event, else its kernel."""
        beyond = int(self.operator[event]) - len(self._operators)
        return self._operators[self.operator[event]] if beyond < 0 else self._names[beyond]

    def sizes(self, shape: int) -> set[str]:
        """Sizes of the tensors of a shape, as text; -1 has none."""
        return set() if shape == NONE else set(_SIZES.findall(self._shapes[shape]))

    def row(self, own: np.ndarray) -> Row:
        """One row of `operator_rows`: of the events `own`."""
        first = own[0]
        shape, path = int(self.shape[first]), int(self.path[first])
        names, ns = self.name[own], self.ns[own]
        per_name = np.bincount(names, ns)
        text = None if shape == NONE else self._shapes[shape]
        return {
            "operator": self.name_of(int(first)),
            "shape": split_grid(text)[1] if text and self.recorded[first] else text,
            "path": PATHS[-1] if path == NONE else self._paths[path],
            "implementation": self._implementations[int(self.implementation[first])],
            "kernel": self._names[int(per_name.argmax())],
            "kernels": len(np.unique(names)),
            "calls": len(np.unique(self.call[own])),
            "executions": len(own),
            "total_ns": int(ns.sum()),
            "basis": "recorded" if self.recorded[own].all() else "inferred",
        }


def _modules(trace: Trace) -> dict[str, str]:
    """Function, with its module, of each Triton kernel that the recorder saw compiled or looked up."""
    rows = zip(*(trace.specializations[c].to_pylist() for c in ("kernel", "function")), strict=True)
    return {kernel: function for kernel, function in rows if kernel}
