"""The incident and its cure, on the stub driver: what a server compiles and tunes in its requests, and what not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter

import pytest
from support.skips import needs_triton

import tprof
from tprof.cli import main
from tprof.errors import DONE, GATE

pytestmark = needs_triton
pytest.importorskip("prometheus_client")
LENGTHS = (512, 600, 9000, 9001, 40)  # two of the short bucket, two of the long one, one in none


class Running:
    """A server that has said that it is ready."""

    def __init__(self, root, folder, name, prepare):
        self.run = folder / f"run-{name}"
        paths = [str(root), str(root / "kernels"), *filter(None, [os.environ.get("PYTHONPATH")])]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TRITON_CACHE_DIR": str(folder / "cache")}
        script = str(root / "examples" / "serving" / "server.py")
        command = [
            sys.executable,
            script,
            "--stub",
            "--port",
            "0",
            "--prepare",
            str(prepare),
            "--record",
            str(self.run),
        ]
        self.log = (folder / f"{name}.log").open("w+")
        env["TRITON_DEFAULT_FP_FUSION"] = "1"
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.port = int(self.process.stdout.readline().rpartition(" ")[2])

    def ask(self, path, body=None):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", body, timeout=300) as answer:
            return answer.read().decode()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0
        self.process.stdout.close()
        self.log.close()


def serve(root, folder, name, prepare):
    """Serve LENGTHS; gives the samples of a scrape, what was logged, and the recording."""
    from prometheus_client.parser import text_string_to_metric_families

    server = Running(root, folder, name, prepare)
    try:
        for length in LENGTHS:
            server.ask("/generate", str(length).encode())
        with pytest.raises(urllib.error.HTTPError, match="404"):
            server.ask("/generate", b"many")
        samples = [s for family in text_string_to_metric_families(server.ask("/metrics")) for s in family.samples]
    finally:
        server.stop()
    return samples, (folder / f"{name}.log").read_text(), server.run


@pytest.fixture(scope="module")
def served(root, tmp_path_factory):
    """Unprepared, on an empty disk cache; then by a plan that is made of that recording, on the cache that it left."""
    folder = tmp_path_factory.mktemp("serving")
    unprepared = serve(root, folder, "none", "none")
    assert main(["plan", str(unprepared[2]), "-o", str(folder / "plan.json")]) == DONE
    return {"none": unprepared, "plan": serve(root, folder, "plan", folder / "plan.json")}


def events(samples, ready):
    """Cold events of attention by (event, bucket)."""
    found = Counter()
    for sample in samples:
        has = sample.labels
        if sample.name == "tprof_cold_events_total" and has["ready"] == ready and has["kernel"] == "attention_forward":
            found[has["event"], has["bucket"]] += int(sample.value)
    return found


def test_unprepared_the_first_request_of_each_bucket_pays(served):
    samples, log, run = served["none"]
    found = events(samples, "after")
    assert found["search", "attention.short"] == found["search", "attention.long"] == 1
    assert found["compile", "attention.short"] > 1
    assert found["compile", "attention.other"] == 1  # the conservative config; it is never tuned
    assert found["search", "attention.other"] == 0
    assert "attention_forward was tuned after ready" in log
    rows = tprof.load(run).requests().to_dict()["requests"]
    first, second, long, again, rare = sorted(rows, key=lambda row: row["start_ns"])
    assert [row["misses"] > 0 for row in (first, second, long, again, rare)] == [True, False, True, False, True]
    assert first["cold_tax_ns"] > 0.5 * first["wall_ns"]  # the rest is torch's imports


def test_prepared_nothing_compiles_or_tunes_in_a_request(served):
    samples, log, run = served["plan"]
    assert not events(samples, "after")
    before = events(samples, "before")
    assert {event for event, _ in before} == {
        "disk_hit",
        "module_load",
    }  # all found on disk, and no winner searched for
    assert "winners restored" in log
    assert "after ready" not in log
    rows = tprof.load(run).requests().to_dict()["requests"]
    assert [row["misses"] for row in rows] == [0] * len(LENGTHS)


def test_the_gate_is_red_before_and_green_after(served, capsys):
    for prepare, code in (("none", GATE), ("plan", DONE)):
        assert main(["check", str(served[prepare][2]), "--max-cold-after-ready", "0"]) == code
    capsys.readouterr()


def test_decisions_are_scraped(served):
    samples, _, _ = served["none"]
    found = {
        (s.labels["bucket"], s.labels["choice"]): s.value
        for s in samples
        if s.name == "tprof_decisions_total" and s.labels["kernel"] == "attention_forward"
    }
    layers = 2
    assert found == {("short", "tuned"): 2 * layers, ("long", "tuned"): 2 * layers, ("other", "conservative"): layers}
