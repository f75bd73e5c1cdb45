"""A cache that was there and missed: which part of the key differs, or where the entry is."""

from __future__ import annotations

import pytest
from support.runs import WALL, Writer, run_json

import tprof

PARTS = {
    "triton": "aa" * 32, "source": "bb" * 32, "fingerprint": "tprof:ee", "lines": {"add": 3, "tile": 9},
    "backend": "V13.0-90", "environment": {},
}  # fmt: skip
OPTIONS = {"num_warps": 4}


def start(folder, number, *, hit=False, folder_of_cache="/cache", version="3.6.0", digest=None, at=1_000, **other):
    """A process that compiled or found `add`; `other` are parts of the key that differ."""
    w = Writer(pid=100 + number)
    w.lines[0]["wall_ns"] = WALL + number * 1_000_000
    w.lines[0]["error_ns"] = 1
    w.lines[0]["versions"]["triton"] = version
    jit = w.begin("jit", "compile", "add", at)
    w.lines.append({
        "type": "specialization", "id": 1, "span": jit, "function": "m.add", "file": "m.py", "line": 3,
        "arguments": [{"name": "n", "type": "i32", "hints": []}], "options": other.pop("options", OPTIONS),
    })  # fmt: skip
    w.kernel(1, "add")
    target = {"backend": "cuda", "arch": other.pop("arch", 90)}
    w.lines[-1] |= {"hash": digest or f"of process {number}", "target": target, "key_parts": PARTS | other}
    w.end(jit, at + 500, cache_hit=hit, kernel=1, specialization=1)
    run_json(folder, environment={"TRITON_CACHE_DIR": folder_of_cache})
    return w.write(folder)


def misses(*folders):
    rows = tprof.load(*folders).cold().to_dict()["cache_misses"]
    return [(row["part"], row["before"], row["after"]) for row in rows]


@pytest.mark.parametrize(
    ("second", "found"),
    [
        (
            {"version": "3.7.1", "triton": "cc" * 32},
            ("Triton build", "3.6.0 (aaaaaaaaaaaa)", "3.7.1 (cccccccccccc)"),
        ),
        ({"source": "dd" * 32, "fingerprint": "tprof:ff"}, ("kernel source", "bbbbbbbbbbbb", "dddddddddddd")),
        ({"source": "dd" * 32, "fingerprint": None}, ("kernel source", "bbbbbbbbbbbb", "dddddddddddd")),
        ({"source": "dd" * 32}, ("order of first uses (old Triton)", "bbbbbbbbbbbb", "dddddddddddd")),
        ({"source": "dd" * 32, "version": "3.8.0"}, ("kernel source", "bbbbbbbbbbbb", "dddddddddddd")),
        ({"source": "dd" * 32, "lines": {"add": 3, "tile": 7}}, ("lines in the file", "tile:9", "tile:7")),
        ({"backend": "V13.1-90"}, ("assembler", "V13.0-90", "V13.1-90")),
        ({"arch": 100}, ("GPU", "cuda:90", "cuda:100")),
        ({"environment": {"DISABLE_LLVM_OPT": "1"}}, ("environment DISABLE_LLVM_OPT", "unset", "1")),
        ({"options": {"num_warps": 8}}, ("option num_warps", "4", "8")),
    ],
)
def test_the_part_of_the_key_that_differs_is_named(tmp_path, second, found):
    assert misses(start(tmp_path / "a", 0), start(tmp_path / "b", 1, **second)) == [found]


def test_a_hit_and_other_arguments_are_no_misses(tmp_path):
    assert misses(start(tmp_path / "a", 0), start(tmp_path / "b", 1, hit=True, digest="of process 0")) == []
    other = start(tmp_path / "c", 2)
    path = other / "process-102.jsonl"
    path.write_text(path.read_text().replace('"i32"', '"i64"'))
    assert misses(tmp_path / "a", other) == []


@pytest.mark.parametrize(
    ("second", "part"),
    [
        ({}, "cache entry"),
        ({"folder_of_cache": "/elsewhere"}, "cache folder"),
    ],
)
def test_the_same_key_says_where_its_entry_is(tmp_path, second, part):
    folders = [start(tmp_path / "a", 0, digest="one"), start(tmp_path / "b", 1, digest="one", **second)]
    assert [row[0] for row in misses(*folders)] == [part]


def test_two_processes_at_once_both_compile(tmp_path):
    start(tmp_path / "a", 0, digest="one")
    start(tmp_path / "a", 1, digest="one", at=1_200)
    assert misses(tmp_path / "a") == [("both at once", "not stored yet", "compiled too")]


def test_what_an_older_recorder_did_not_say_is_not_guessed(tmp_path):
    folders = [start(tmp_path / "a", 0), start(tmp_path / "b", 1)]
    for folder in folders:
        for path in folder.glob("*.jsonl"):
            path.write_text(path.read_text().replace("key_parts", "unknown"))
    assert [row[0] for row in misses(*folders)] == ["unattributed"]
