"""The page in Debian's Chromium: it shows a sample's figures, fails nowhere and asks no other host for anything."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import urlopen

import pytest

import tprof
from tprof.present import units

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("streamlit", reason="the extra `app` is not installed")
CHROMIUM = shutil.which("chromium")
pytestmark = [pytest.mark.browser, pytest.mark.skipif(not CHROMIUM, reason="there is no chromium on this machine")]


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _wait(url: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        assert server.poll() is None, "the app ended before it served a page"
        try:
            with urlopen(f"{url}/_stcore/health", timeout=1):
                return
        except (URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    pytest.fail("the app did not start in 30 s")


@pytest.fixture(scope="module")
def app(root: Path, sample_traces: Path) -> Iterator[str]:
    port = _free_port()
    paths = os.pathsep.join([str(root), str(root / "apps")])
    command = [
        sys.executable, "-m", "streamlit", "run", str(root / "apps/tprof_app/main.py"), "--server.headless", "true",
        "--server.address", "127.0.0.1", "--server.port", str(port), "--", str(sample_traces / "h200-torch.json.gz"),
    ]  # fmt: skip
    with subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": paths}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            _wait(f"http://127.0.0.1:{port}", server)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_sample_opens(app: str, sample_traces: Path, scheme: str) -> None:
    first = tprof.load(sample_traces / "h200-torch.json.gz").summary().to_dict()["requests"][0]
    failures: list[str] = []
    asked: set[str] = set()
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 1600}, color_scheme=scheme)
        page.on("pageerror", lambda error: failures.append(str(error)))
        page.on("request", lambda request: asked.add(request.url))
        page.goto(app)
        page.get_by_text("What was read.").wait_for(timeout=60_000)
        page.locator(".js-plotly-plot .bars").first.wait_for(timeout=60_000)
        assert page.locator("[data-testid=stMetricValue]").first.inner_text() == units.duration(first["wall_ns"])
        assert page.locator(".js-plotly-plot").count() == 3
        assert page.locator("[data-testid=stException], [data-testid=stAlertContentError]").count() == 0
        browser.close()
    assert not failures
    assert {url for url in asked if not url.startswith((app, "data:", "blob:"))} == set()
