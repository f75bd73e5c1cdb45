"""Twenty sessions of one served app at once, each over its own trace, one broken: nobody sees another's data."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

pytest.importorskip("streamlit", reason="the extra `app` is not installed")
client = pytest.importorskip("websockets.sync.client", reason="websockets is not installed")

if TYPE_CHECKING:
    from collections.abc import Iterator

SESSIONS, BROKEN, LAUNCHES = 20, 13, 3000
SECRET = re.compile(rb"secret_(\d+)_")
MOST_BYTES = 900 << 20  # of the server after all of them; it takes 200 MB before the first


def write(path: Path, number: int) -> None:
    """A trace whose kernels and request say whose they are; enough of it that sessions overlap."""
    call = {"ph": "X", "pid": 5, "tid": 5, "dur": 1}
    device = {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "dur": 2}
    events = [call | {"cat": "user_annotation", "name": f"request secret_{number}_", "ts": 1000, "dur": 90_000}]
    for n in range(LAUNCHES):
        own = {"correlation": n}
        events.append(call | {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 1004 + 9 * n, "args": own})
        place = own | {"stream": 7, "device": 0, "context": 1}
        events.append(device | {"name": f"k_secret_{number}_{n % 7}", "ts": 1006 + 9 * n, "args": place})
    path.write_text('{"traceEv' if number == BROKEN else json.dumps({"traceEvents": events}))


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.fixture(scope="module")
def served(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """The app over a folder of traces, as `tprof app --root` serves it."""
    folder, port = tmp_path_factory.mktemp("served"), free_port()
    for number in range(SESSIONS):
        write(folder / f"t{number}.json", number)
    command = [
        sys.executable, "-m", "streamlit", "run", root / "apps/tprof_app/main.py", "--server.headless", "true",
        "--server.address", "127.0.0.1", "--server.port", str(port), "--", "--root", folder,
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(root / "apps")])}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait(port)
            yield port, server
        finally:
            server.terminate()


def wait(port: int) -> None:
    for _ in range(600):
        try:
            urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1).close()
        except (URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
        else:
            return
    pytest.fail("the app did not start in 60 s")


def session(port: int, number: int, page: str) -> bytes:
    """Everything that one session is sent for a page of its own trace."""
    from streamlit.proto.BackMsg_pb2 import BackMsg
    from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

    ask = BackMsg()
    ask.rerun_script.query_string = urlencode({"source": f"folder: t{number}.json"})
    ask.rerun_script.page_name = page
    url, origin = f"ws://127.0.0.1:{port}/_stcore/stream", f"http://127.0.0.1:{port}"
    sent, done = [], False
    with client.connect(url, subprotocols=["streamlit"], origin=origin, max_size=None, open_timeout=60) as link:
        link.send(ask.SerializeToString())
        while not done:
            sent.append(link.recv(timeout=120))
            message = ForwardMsg.FromString(sent[-1])
            done = message.WhichOneof("type") == "script_finished" and message.script_finished == 0
    return b"".join(sent)


@pytest.mark.parametrize("page", ["kernels", "requests"])
def test_every_session_sees_its_own_trace_and_no_other(served: tuple[int, subprocess.Popen[bytes]], page: str) -> None:
    port, server = served
    with ThreadPoolExecutor(SESSIONS) as pool:
        found = list(pool.map(lambda number: session(port, number, page), range(SESSIONS)))
    for number, sent in enumerate(found):
        assert {*SECRET.findall(sent)} == (set() if number == BROKEN else {b"%d" % number})
        assert b"Traceback" not in sent
    assert b"was the recording finished" in found[BROKEN]
    assert server.poll() is None
    resident = int(Path(f"/proc/{server.pid}/statm").read_text(encoding="ascii").split()[1])
    assert resident * os.sysconf("SC_PAGESIZE") < MOST_BYTES
