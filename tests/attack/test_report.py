"""The HTML report of a hostile trace in a browser, from file://: nothing runs, is loaded, or is refused."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from tprof.cli import main

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium")
pytestmark = [pytest.mark.browser, pytest.mark.skipif(not CHROMIUM, reason="there is no chromium on this machine")]

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = (
    '"><img src=http://x.invalid/i.png onerror=document.title="run">', "<script>document.title='run'</script>",
    "</style><script src=http://x.invalid/s.js></script>", "{{7*7}}{% raw %}%s{0.__class__}", "](javascript:run)",
)  # fmt: skip


def test_a_hostile_trace_is_only_shown(tmp_path: Path) -> None:
    call = {"ph": "X", "pid": 5, "tid": 5}
    events = []
    for n, name in enumerate(HOSTILE):
        own = {"correlation": n}
        events += [
            call | {"cat": "user_annotation", "name": f"request {name}", "ts": 1000 + 90 * n, "dur": 80},
            call | {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 1004 + 90 * n, "dur": 1, "args": own},
            {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 1006 + 90 * n, "dur": 20,
             "args": own | {"stream": 7, "device": 0, "context": 1}},
        ]  # fmt: skip
    source, page_file = tmp_path / "<b>x.json", tmp_path / "report.html"
    source.write_text(json.dumps({"traceEvents": events, "deviceProperties": [{"id": 0, "name": HOSTILE[0]}]}))
    assert main(["summary", str(source), "--html", str(page_file), "-o", str(tmp_path / "out.json")]) == 0
    asked, said = [], []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        page.goto(page_file.as_uri())
        title, text = page.title(), page.inner_text("body")
        browser.close()
    assert asked == [page_file.as_uri()]
    assert said == []  # a policy that refused something would say so
    assert title != "run"
    assert HOSTILE[1] in text
