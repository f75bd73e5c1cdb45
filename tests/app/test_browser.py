"""The app in Debian's Chromium: every page, zoom, filter, links, both themes. Pictures go to `.screenshots`.

`TPROF_SCREENSHOTS=docs/images` makes those anew that lie there: the ones of docs/app.md.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import pytest
from support import job
from support.batched import batch

import tprof
from tprof.present import units

if TYPE_CHECKING:
    from collections.abc import Iterator

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("streamlit", reason="the extra `app` is not installed")
CHROMIUM = shutil.which("chromium")
pytestmark = [pytest.mark.browser, pytest.mark.skipif(not CHROMIUM, reason="there is no chromium on this machine")]
PAGES = ("", "cold", "timeline", "shapes", "idle", "kernels", "requests", "compare", "data")
SAMPLE = "cold-torch"
# Streamlit looks for its own service below the page's path first; it is above it.
PROBED = re.compile(r"/_stcore/(health|host-config)$")
SETTLED = """() =>
    document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'
    && !document.querySelector('[data-testid=stSkeleton]') && document.querySelector('[data-testid=stHeading]')"""


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
def app(root: Path, sample_traces: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port, made = _free_port(), tmp_path_factory.mktemp("batch")
    job.write(made / "job")
    folder, _ = batch([made / "job", made / "gone.json"], made / "OUT", {"warm compile": "compile"})
    paths = os.pathsep.join([str(root), str(root / "apps")])
    sources = [str((sample_traces / name).relative_to(root)) for name in (SAMPLE, "h200-nsight.sqlite.gz")]
    command = [
        sys.executable, "-m", "streamlit", "run", str(root / "apps/tprof_app/main.py"), "--server.headless", "true",
        "--server.address", "127.0.0.1", "--server.port", str(port), "--", *sources, str(folder.path),
    ]  # fmt: skip
    with subprocess.Popen(
        command, cwd=root, env={**os.environ, "PYTHONPATH": paths}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            _wait(f"http://127.0.0.1:{port}", server)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


@pytest.fixture(scope="module")
def chromium() -> Iterator[object]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        )
        yield browser
        browser.close()


class Session:
    """A fresh session of a browser that notes what goes wrong."""

    def __init__(self, browser, url: str, scheme: str) -> None:
        self.url, self.scheme, self.failures, self.asked = url, scheme, [], set()
        self.page = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme=scheme).new_page()
        self.page.on("pageerror", lambda error: self.failures.append(str(error)))
        self.page.on("console", self._said)
        self.page.on("request", lambda request: self.asked.add(request.url))

    def _said(self, message) -> None:
        if message.type == "error" and not PROBED.search(message.location["url"]):
            self.failures.append(message.text)

    def open(self, path: str, **parameters: str) -> None:
        query = "&".join(f"{key}={value}" for key, value in {"source": SAMPLE, **parameters}.items())
        self.page.goto(f"{self.url}/{path}?{query}")
        self.settle()

    def settle(self) -> None:
        self.page.wait_for_timeout(800)  # until the server has begun to answer
        self.page.wait_for_function(SETTLED, timeout=60_000)
        self.page.wait_for_timeout(800)

    def check(self) -> None:
        """Nothing failed, no chart is empty, nobody else was asked for anything."""
        assert not self.failures
        assert self.page.locator("[data-testid=stException], [data-testid=stAlertContentError]").count() == 0
        plots = self.page.locator(".js-plotly-plot")
        drawn = ".point, .points path, .imagelayer image, .hm image, .trace path"
        empty = f"plot => plot.querySelectorAll('{drawn}').length === 0"
        assert [i for i in range(plots.count()) if plots.nth(i).evaluate(empty)] == []
        assert {url for url in self.asked if not url.startswith((self.url, "data:", "blob:"))} == set()

    def shoot(self, name: str) -> None:
        named = os.environ.get("TPROF_SCREENSHOTS")
        path = Path(named or ".screenshots") / f"{name}-{self.scheme}.png"
        if named and not path.exists():
            return
        path.parent.mkdir(exist_ok=True)
        inner = self.page.locator("[data-testid=stMainBlockContainer]")
        height = min(int(inner.evaluate("block => block.scrollHeight")) + 20, 3000)
        self.page.set_viewport_size({"width": 1280, "height": max(height, 700)})
        self.page.wait_for_timeout(800)
        self.page.screenshot(path=path)
        self.page.set_viewport_size({"width": 1280, "height": 900})

    def window(self) -> list[int]:
        """The window in the address."""
        said = parse_qs(urlsplit(self.page.url).query).get("window", [""])[0]
        return [int(part) for part in said.split(":")] if said else []

    def drag(self, begin: float, end: float) -> None:
        """Mark a part of the timeline, given as fractions of its width."""
        self.page.wait_for_timeout(300)
        box = self.page.locator(".js-plotly-plot .nsewdrag").first.bounding_box()
        y = box["y"] + box["height"] / 2
        self.page.mouse.move(box["x"] + begin * box["width"], y)
        self.page.mouse.down()
        self.page.mouse.move(box["x"] + end * box["width"], y, steps=8)
        self.page.mouse.up()
        self.settle()

    def bars(self) -> list[object]:
        """Kinds of bars of the first chart, with what a click on each would pick."""
        of = "plot => plot.data.filter(d => d.type === 'bar').map(d => [d.name, JSON.stringify(d.customdata)])"
        return self.page.locator(".js-plotly-plot").first.evaluate(of)

    def axis(self) -> list[float]:
        """Ends of the first chart's axis, ns."""
        said = "plot => [plot.layout.xaxis.range.map(Number), plot.layout.xaxis.title.text]"
        ends, title = self.page.locator(".js-plotly-plot").first.evaluate(said)
        return [end * {"s": 1e9, "ms": 1e6, "us": 1e3}[title.rpartition(" ")[2]] for end in ends]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page(app, chromium, scheme) -> None:
    session = Session(chromium, app, scheme)
    for path in PAGES:
        session.open(path)
        session.check()
        session.shoot(path or "overview")
        assert path != "compare" or session.page.locator(".js-plotly-plot").count() > 1
    background = session.page.evaluate("() => getComputedStyle(document.querySelector('.stApp')).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", background)[:3])) < 300) == (scheme == "dark")


def test_the_first_page_says_what_the_library_says(app, chromium, sample_traces) -> None:
    first = tprof.load(sample_traces / SAMPLE).summary().to_dict()["requests"][0]
    session = Session(chromium, app, "light")
    session.open("")
    session.page.locator("[data-testid=stMetricValue]").first.wait_for(timeout=20_000)
    assert session.page.locator("[data-testid=stMetricValue]").first.inner_text() == units.duration(first["wall_ns"])


def test_zoom_twice_filter_and_come_back(app, chromium) -> None:
    session = Session(chromium, app, "light")
    session.open("timeline")
    whole = session.axis()
    session.drag(0.3, 0.6)
    first = session.window()
    session.drag(0.4, 0.6)
    second = session.window()
    assert first[0] < second[0] < second[1] < first[1]
    assert (second[1] - second[0]) / (first[1] - first[0]) == pytest.approx(0.2, abs=0.03)
    assert session.axis()[1] - session.axis()[0] == pytest.approx(second[1] - second[0], rel=0.01)
    session.page.get_by_text("Filters", exact=True).click()
    session.page.get_by_role("textbox", name="Kernel").fill("*Fill*")
    session.page.get_by_role("textbox", name="Kernel").press("Enter")
    session.settle()
    assert parse_qs(urlsplit(session.page.url).query)["kernel"] == ["*Fill*"]
    session.shoot("timeline-zoomed")
    session.check()

    other = Session(chromium, app, "light")
    other.page.goto(session.page.url)
    other.settle()
    assert other.axis() == session.axis()
    assert other.bars() == session.bars() != []
    other.check()

    session.page.get_by_role("button", name="All", exact=False).first.click()
    session.settle()
    assert session.window() == []
    assert session.axis() == whole


def test_a_click_on_a_bar_explains_it(app, chromium) -> None:
    session = Session(chromium, app, "light")
    session.open("timeline", lanes="ranges")
    session.page.get_by_text("Click for details").click()
    session.settle()
    box = session.page.locator(".js-plotly-plot .nsewdrag").first.bounding_box()
    session.page.mouse.click(box["x"] + 0.1 * box["width"], box["y"] + 0.25 * box["height"])
    session.settle()
    assert parse_qs(urlsplit(session.page.url).query)["pick"][0].startswith("ranges.")
    assert session.page.get_by_role("heading", name="Details").count() == 1
    session.shoot("timeline-details")
    session.check()


def test_a_finding_leads_to_its_window(app, chromium) -> None:
    session = Session(chromium, app, "light")
    session.open("")
    session.page.get_by_text("Show in the timeline").first.click()
    session.settle()
    assert urlsplit(session.page.url).path == "/timeline"
    assert len(session.window()) == 2
    session.check()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_batch_and_the_way_to_its_recordings(app, chromium, scheme) -> None:
    session = Session(chromium, app, scheme)
    for part in ("Sources", "Requests", "Shapes%20and%20buckets", "Findings"):
        session.open("batch", source="batch:%20OUT", part=part)
        session.check()
        session.shoot(f"batch-{part.partition('%')[0].lower()}")
    assert session.page.locator(".js-plotly-plot").count() == 1
    named = session.page.get_by_test_id("stSidebarNavLink").all_inner_texts()  # each after the name of its icon
    assert [text.split()[-1] for text in named] == ["Batch", "Compare"]
    session.page.get_by_text("What its devices waited for").last.click()
    session.settle()
    told = parse_qs(urlsplit(session.page.url).query)
    assert (urlsplit(session.page.url).path, told) == ("/idle", {"source": [f"rank-{job.SLOW}.json"]})
    session.check()


def test_a_request_of_a_batch_leads_to_its_window(app, chromium) -> None:
    session = Session(chromium, app, "light")
    session.open("batch", source="batch:%20OUT", part="Requests")
    session.page.get_by_test_id("stDataFrame").scroll_into_view_if_needed()
    grid = session.page.get_by_test_id("stDataFrame").bounding_box()
    session.page.mouse.click(grid["x"] + 15, grid["y"] + 52)  # the box before the first row; the table is a canvas
    session.settle()
    session.page.get_by_role("link", name="Timeline").click()
    session.settle()
    assert urlsplit(session.page.url).path == "/timeline"
    assert len(session.window()) == 2
    session.check()


def test_pages_keep_the_view(app, chromium) -> None:
    session = Session(chromium, app, "light")
    session.open("timeline", window="7s:8s")
    session.page.get_by_role("link", name="Idle").click()
    session.settle()
    told = parse_qs(urlsplit(session.page.url).query)
    assert (told["source"], told["window"]) == ([SAMPLE], ["7s:8s"])
    session.check()
