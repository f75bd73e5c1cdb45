"""The examples for pytest, continuous integration and Prometheus: they parse, and name what there is."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import typer.main

from tprof.cli.entry import program

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
METRICS = (EXAMPLES.parent / "docs" / "metrics.md").read_text()


def test_the_workflow_uses_options_that_there_are() -> None:
    yaml = pytest.importorskip("yaml")
    (job,) = yaml.safe_load((EXAMPLES / "ci" / "github-actions.yml").read_text())["jobs"].values()
    runs = [shlex.split(step["run"]) for step in job["steps"] if step.get("run", "").startswith("tprof")]
    assert [words[1] for words in runs] == ["record", "check", "scrub"]
    verbs = typer.main.get_command(program).commands
    for _, verb, *words in runs:
        given = {word for word in words[: words.index("--")] if word[0] == "-"} if "--" in words else set(words)
        known = {name for option in verbs[verb].params for name in option.opts}
        assert {word for word in given if word.startswith("-")} <= known


def _expressions() -> list[str]:
    yaml = pytest.importorskip("yaml")
    groups = yaml.safe_load((EXAMPLES / "prometheus" / "alerts.yml").read_text())["groups"]
    panels = json.loads((EXAMPLES / "prometheus" / "dashboard.json").read_text())["panels"]
    rules = [rule["expr"] for group in groups for rule in group["rules"]]
    return [*rules, *(target["expr"] for panel in panels for target in panel["targets"])]


def test_alerts_and_dashboard_ask_for_metrics_and_labels_that_there_are() -> None:
    rows = dict(re.findall(r"\| `(tprof_\w+)` \| \w+ \|([^|]*)\|", METRICS))
    for expression in _expressions():
        for metric, labels in re.findall(r"(tprof_\w+)(?:\{([^}]*)\})?", expression):
            said = rows[metric.removesuffix("_bucket") if metric.endswith("_seconds_bucket") else metric]
            assert {name for name, _ in re.findall(r"(\w+)(=~?)", labels)} <= set(re.findall(r"\w+", said))


def test_prometheus_scrapes_the_server_of_the_example() -> None:
    yaml = pytest.importorskip("yaml")
    said = yaml.safe_load((EXAMPLES / "prometheus" / "prometheus.yml").read_text())
    assert said["rule_files"] == ["alerts.yml"]
    assert said["scrape_configs"][0]["static_configs"] == [{"targets": ["localhost:8000"]}]
