"""One page of the app without a browser."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from streamlit.testing.v1 import AppTest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TORCH, NSIGHT = "h200-torch.json.gz", "h200-nsight.sqlite.gz"  # among the sample traces
ODD = (  # among the cases
    "torch/cpu_only.json", "torch/cuda_graph.json", "torch/empty_events.json", "torch/truncated.json.gz",
    "nsight/nsysai-h100-2gpu-2026.2.sqlite.gz", "nsight/flameox-graphs-2025.5.2.sqlite.gz",
)  # fmt: skip
HOSTILE = "request <img src=x onerror=alert(1)> ![i](http://x.invalid/i.png) **b** $x$ :red[r]"


def _script(given: list[str], first: str, root: str) -> None:
    from pathlib import Path

    from tprof_app.frame import show
    from tprof_app.served import Served

    show(Served(tuple(given), Path(root) if root else None), first)


def run_page(
    given: Sequence[object] = (), first: str = "Overview", root: Path | None = None, **params: str | list[str]
) -> AppTest:
    """Run the app on some sources, with a page and parameters as its address would say them."""
    arguments = ([str(path) for path in given], first, str(root or ""))
    app = AppTest.from_function(_script, args=arguments, default_timeout=60)
    app.query_params.update(params)
    return app.run()


def texts(app: AppTest) -> str:
    """All text of a page, Markdown as it is written."""
    kinds = (app.markdown, app.caption, app.info, app.warning, app.error, app.success)
    return "\n".join(element.value for kind in kinds for element in kind)


def charts(app: AppTest) -> list[dict]:
    """The figures of a page."""
    return [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]


def assert_no_markup(app: AppTest) -> None:
    """A page of a recording with the name `HOSTILE` shows it as text."""
    assert not app.exception
    shown = texts(app)
    assert "<img" not in shown.replace("\\<", "")
    assert "![i]" not in shown
    assert "http://" not in shown.replace("\\", "")
    assert not any(block.proto.allow_html for block in app.markdown)
    for chart in app.get("plotly_chart"):
        assert "<img" not in chart.proto.spec.replace("\\u003c", "<")


def write(path: Path, events: list[dict[str, object]]) -> Path:
    """A torch.profiler trace."""
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def annotation(name: str) -> dict[str, object]:
    """A range of the user's."""
    return {"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": 1, "ts": 10.0, "dur": 5.0}
