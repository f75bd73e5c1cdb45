"""The scanner gives what the decoder gives, for any file; and it is used only where it pays."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.skips import needs_numba

from tprof import machine
from tprof.errors import SourceError
from tprof.read import inflate, torch_document, torch_scan_columns
from tprof.read.torch_columns import Codes
from tprof.read.torch_json import read_torch
from tprof.read.torch_scan_columns import Scanner
from tprof.read.torch_scan_layout import MOST_ENTRIES, MOST_LABELS, MOST_ROWS, PAD

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("code_folder")


@pytest.fixture
def assert_same(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Reads a file by decoder, by one scanner and by three side by side, and compares all that is known of it."""
    monkeypatch.setattr(pa, "cpu_count", lambda: 3)

    def compare(path: Path) -> None:
        readings = []
        for setting, threads_from in (("off", 0), ("on", 1 << 40), ("on", 0)):
            monkeypatch.setenv("TPROF_SCANNER", setting)
            monkeypatch.setattr(torch_scan_columns, "LOAD_BYTES", threads_from)
            readings.append(reading(path))
        assert readings[0] == readings[1] == readings[2]

    return compare


def reading(path: Path) -> dict[str, Any]:
    """Every table, note and error, with the order of labels."""
    try:
        trace = read_torch(path, "t.json")
    except SourceError as error:
        return {"error": str(error)}
    tables = {name: getattr(trace, name) for name in ("host", "device", "processes", "threads", "devices", "sources")}
    said = {"notes": trace.notes, "meta": dict(trace.meta), "epoch": trace.epoch_ns}
    return said | {f"{name}.{c}": plain(data[c]) for name, data in tables.items() for c in data.column_names}


def plain(column: pa.ChunkedArray) -> list[str]:
    labels = [value for chunk in column.chunks for value in chunk.dictionary.to_pylist()] if isinstance(
        column.type, pa.DictionaryType
    ) else []  # fmt: skip
    return [column.to_pylist(), labels]


def blocks_of(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks, so that a small file has some before its last one, which the decoder always reads."""
    monkeypatch.setattr(torch_document, "BLOCK_BYTES", size)
    monkeypatch.setattr(torch_document, "_WINDOW", size)
    monkeypatch.setattr(inflate, "READ_BYTES", size)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> dict[bool, int]:
    """How many blocks the scanner read, and how many it refused."""
    counts, read = {True: 0, False: 0}, Scanner.read

    def count(self: Scanner, text: bytes) -> torch_scan_columns.Scanned | None:
        found = read(self, text)
        counts[found is not None] += 1
        return found

    monkeypatch.setattr(Scanner, "read", count)
    return counts


# ---- whole files


def files(folder: str) -> list[str]:
    top = Path(os.environ.get("TPROF_CASES") or Path(__file__).parents[2] / "../shared/cases") / folder
    found = sorted(p.name for p in top.glob("*.json*")) if top.is_dir() else []
    return found or ["absent"]


@needs_numba
@pytest.mark.parametrize("name", files("torch"))
@pytest.mark.parametrize("block", [300, 1 << 21])
def test_cases(
    cases: Path, name: str, block: int, monkeypatch: pytest.MonkeyPatch, assert_same: Callable[[Path], None]
) -> None:
    blocks_of(block, monkeypatch)
    assert_same(cases / "torch" / name)


@needs_numba
@pytest.mark.parametrize("name", files("torch_real"))
def test_real_traces(
    cases: Path, name: str, monkeypatch: pytest.MonkeyPatch, assert_same: Callable[[Path], None]
) -> None:
    monkeypatch.setattr(torch_document, "BLOCK_BYTES", 1 << 17)
    assert_same(cases / "torch_real" / name)


@needs_numba
def test_the_sample_is_scanned(
    sample_traces: Path, counted: dict[bool, int], assert_same: Callable[[Path], None]
) -> None:
    assert_same(sample_traces / "h200-torch.json.gz")
    assert counted[True] > 0
    assert counted[False] == 0


@needs_numba
def test_h200_is_scanned(traces: Path, counted: dict[bool, int], assert_same: Callable[[Path], None]) -> None:
    assert_same(traces / "h200-cold-start" / "torch_profiler_2.11.pt.trace.json.gz")
    assert counted[True] > 30
    assert counted[False] == 0


# ---- what it reads and what it refuses


EVENT = b'{"ph":"X","cat":"cpu_op","name":"n","pid":1,"tid":2,"ts":1.5,"dur":2,"args":{"External id":7}}'
READ = [
    rb'{"ph":"X","name":"a\"b\\c\/\b\f\n\r\t\u00e9\u4e2d","ts":1}',
    '{"ph":"X","name":"Ünï \u007f","z":"ß","ts":1}'.encode(),
    b'{"ph":"X","name":"skipped bytes may be anything","z":"\xff\xc0"}',
    b'{"ph":"X","ts":1712195495519689.047,"dur":0.0009999}',
    b'{"ph":"X","ts":-0.0005,"dur":-0}',
    b'{"ph":"X","ts":9200000000000000.999,"dur":1}',
    b'{"ph":"X","name":"","cat":"","pid":"","tid":"x"}',
    b'{"ph":"X"}',
    b'{"args":{},"ph":"X" , "ts" :\t3}',
    b'{ "ph":"X","args":{"stream":18446744073709551615,"device":-9,"bytes":9999999999999999999}}',
    b'{"ph":"X","cat":"kernel","args":{"grid":[ 1,\n2 , -7],"block":[4294967295,1,0]}}',
    b'{"ph":"X","args":{"External id":-1,"external id":8}}',
    b'{"ph":"X","cat":"kernel","args":{"correlation":"12","bytes":"-5","stream":"0x0"}}',
    b'{"ph":"X","args":{"Input Dims":[[1, 2],[]],"Input type":["a","\\""],"Input Strides":null}}',
    b'{"ph":"X","args":{"kernel_backend":"triton","kernel_file":null,"kernel_hash":[{"a":{}}]}}',
    b'{"ph":"X","args":{"z":[[],{},[{"a":[1,{"b":null}]},true,false,1.5e+3,-0.1E9,1e400]]},"y":{"name":[]}}',
    b'{"ph":"X","name":"one","ts":1,"ts":2,"args":{"stream":1,"stream":2}}',
    b'{"ph":"M","name":"process_name","pid":1,"tid":"t","ts":0,"args":{"name":"p \xc3\xbc","labels":3}}',
    b'{"ph":"M","name":"process_name","pid":1,"args":{"name":{"a":[1]}}}',
    b'{"ph":"s","id":1,"pid":1,"tid":2,"ts":3,"cat":"ac2g","name":"ac2g"}',
    b'{"ph":"","name":"a"}',
    b"{}",
]
REFUSED = [
    rb'{"ph":"X","n\u0061me":"a"}',
    b'{"ph":"X","n\xc3\xa4me":"a"}',
    b'{"ph":"XX"}',
    b'{"ph":"\xc3\xa4"}',
    b'{"ph":1}',
    b'{"ph":"X","name":"\xff"}',
    rb'{"ph":"X","name":"\ud83d"}',
    rb'{"ph":"X","z":"\ud83d\ude00"}',
    b'{"ph":"X","z":"\x01"}',
    rb'{"ph":"X","z":"\x"}',
    rb'{"ph":"X","z":"\u12g4"}',
    b'{"ph":"X","name":5}',
    b'{"ph":"X","cat":null}',
    b'{"ph":"X","ts":1e3}',
    b'{"ph":"X","ts":"1"}',
    b'{"ph":"X","ts":null}',
    b'{"ph":"X","ts":9200000000000001}',
    b'{"ph":"X","ts":0.' + b"1" * 30 + b"}",
    b'{"ph":"X","dur":01}',
    b'{"ph":"X","dur":1.}',
    b'{"ph":"X","dur":.5}',
    b'{"ph":"X","pid":1.0}',
    b'{"ph":"X","pid":null}',
    b'{"ph":"X","tid":18446744073709551616}',
    b'{"ph":"X","pid":-1' + b"0" * 30 + b"}",
    b'{"ph":"X","z":NaN}',
    b'{"ph":"X","args":[1]}',
    b'{"ph":"X","args":null}',
    b'{"ph":"X","args":{"stream":1},"args":{}}',
    b'{"ph":"X","args":{"stream":1.0}}',
    b'{"ph":"X","args":{"stream":null}}',
    b'{"ph":"X","args":{"grid":[1,2]}}',
    b'{"ph":"X","args":{"grid":[1,2,3.0]}}',
    b'{"ph":"X","args":{"Stream Id":1}}',
    b'{"ph":"X","args":{"Task Type":"a"}}',
    b'{"ph":"X","pid":"1","args":{"bytes":"1"}}',
    b'{"ph":"X","args":{"bytes":"1.0"}}',
    b'{"ph":"X","args":{"bytes":""}}',
    b'{"ph":"X","name":"a","name":"b"}',
    b'{"ph":"X",}',
    b'{"ph":"X" "ts":1}',
    b'{"ph":"X","z":[1,]}',
    b'{"ph":"X","z":[1}',
    b'{"ph":"X","z":{"a"}}',
    b'{"ph":"X","z":{"a":1,}}',
    b'{"ph":"X","z":tru}',
    b'{"ph":"X","z":1-2}',
    b'{"ph":"X","z":+1}',
    b'{"ph":"X","z":' + b"[" * 61 + b"]" * 61 + b"}",
    b"null",
    b"[1]",
    b'{"ph":"s","name":"\xff"}',
    b'{"ph":"X","z":\x0b1}',
]


@pytest.fixture(scope="module")
def scanner(kept_code: Path) -> Scanner:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TPROF_CACHE_DIR", str(kept_code))
        scan = machine.load(torch_scan_columns.SCAN, compile_it=True)
    assert scan
    return Scanner(scan)


def scan(scanner: Scanner, *events: bytes) -> torch_scan_columns.Scanned | None:
    return scanner.read(b"[" + b" ,\n".join(events) + b"]" + bytes(PAD))


def padded(folder: Path, *events: bytes) -> Path:
    """A file whose blocks of 64 bytes are some before the last."""
    path = folder / "t.json"
    path.write_bytes(b'{"traceEvents":[' + b", ".join([EVENT, *events, EVENT, EVENT, EVENT]) + b"]}")
    return path


@needs_numba
@pytest.mark.parametrize("event", READ)
def test_read(
    scanner: Scanner, event: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, assert_same: Callable[[Path], None]
) -> None:
    assert scan(scanner, EVENT, event, EVENT) is not None
    blocks_of(64, monkeypatch)
    assert_same(padded(tmp_path, event))


@needs_numba
@pytest.mark.parametrize("event", REFUSED)
def test_refused(
    scanner: Scanner, event: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, assert_same: Callable[[Path], None]
) -> None:
    assert scan(scanner, EVENT, event, EVENT) is None
    blocks_of(64, monkeypatch)
    assert_same(padded(tmp_path, event))


@needs_numba
@pytest.mark.parametrize(
    "text", [b"", b"[]", b"[{}", b"[{},]", b"[{}{}]", b"[{}]]", b"{}", b"[{}] ", b"[,{}]", b"x[{}]"]
)
def test_lists_that_are_none(scanner: Scanner, text: bytes) -> None:
    assert scanner.read(text + bytes(PAD)) is None


@needs_numba
def test_more_than_fits_is_refused(scanner: Scanner) -> None:
    label = b'{"ph":"M","args":{"name":1}}'
    assert scan(scanner, *[b'{"ph":"X"}'] * MOST_ROWS) is not None
    assert scan(scanner, *[b'{"ph":"X"}'] * (MOST_ROWS + 1)) is None
    assert scan(scanner, *(b'{"ph":"X","name":"%d"}' % n for n in range(MOST_ENTRIES))) is None
    assert scan(scanner, *[label] * MOST_LABELS) is not None
    assert scan(scanner, *[label] * (MOST_LABELS + 1)) is None


@needs_numba
def test_texts_that_nearly_agree_stay_apart(scanner: Scanner) -> None:
    names = [b"a" * n for n in range(1, 40)] + [b"a" * n + b"b" + b"a" * (38 - n) for n in range(39)]
    found = scan(scanner, *(b'{"ph":"X","name":"%s"}' % name for name in names * 2))
    assert found is not None
    assert [name.encode() for name in found.texts[1]] == names
    owners, codes = found.coded(1, Codes())
    assert owners.tolist() == list(range(2 * len(names)))
    assert codes.tolist() == [*range(len(names))] * 2


# ---- generated and damaged files

texts = st.sampled_from(["aten::add", "", "é中😀", 'q"\\/\n', "\x7f", "x" * 40, "cudaLaunchKernel"]) | st.text(
    max_size=5
)
numbers = st.sampled_from([0, -1, 7, 2**31, 2**63, 2**64 - 1, 2**64, 10**30]) | st.integers(-99, 10**16)
times = st.integers(0, 10**16) | st.decimals(0, 10**15, places=3).map(float) | st.sampled_from(["1.5", None, 1e22, -3])
values = st.recursive(
    texts | numbers | st.booleans() | st.none() | st.floats(allow_nan=True),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
args = st.dictionaries(
    st.sampled_from([
        "External id", "external id", "correlation", "stream", "device", "context", "bytes", "name", "grid", "block",
        "Input Dims", "Input type", "Input Strides", "kernel_backend", "kernel_hash", "registers per thread", "z",
    ]),
    st.integers(-1, 99) | st.integers(-1, 99) | st.lists(st.integers(-2, 9), min_size=3, max_size=3) | values,
    max_size=6,
)  # fmt: skip
usual_texts = st.sampled_from(["aten::add", "", "é中", 'q"\\/\n', "x" * 40, "cudaLaunchKernel"])
plausible_args = st.dictionaries(
    st.sampled_from(["External id", "correlation", "stream", "device", "bytes", "z"]),
    st.integers(-1, 2**64 - 1) | st.sampled_from(["5", "0x1f"]), max_size=4,
) | st.fixed_dictionaries({
    "Input Dims": st.lists(st.lists(st.integers(0, 99), max_size=2), max_size=2), "kernel_backend": usual_texts,
    "grid": st.lists(st.integers(-2, 2**33), min_size=3, max_size=3), "Input type": st.lists(usual_texts, max_size=2),
})  # fmt: skip
plausible_events = st.fixed_dictionaries(
    {"ph": st.sampled_from("XXXXMs"), "cat": st.sampled_from(["cpu_op", "kernel", "cuda_runtime", "ac2g", "", "new"])},
    optional={
        "name": usual_texts, "pid": st.integers(0, 3), "tid": st.integers(0, 3) | st.sampled_from(["stream 7", "a"]),
        "ts": st.integers(0, 10**15) | st.decimals(0, 10**9, places=3).map(float),
        "dur": st.floats(0.1, 99),
        "args": plausible_args | st.fixed_dictionaries({"name": usual_texts}),
        "z": st.lists(usual_texts | st.integers()),
    },
)  # fmt: skip
odd_events = st.fixed_dictionaries(
    {"ph": st.sampled_from("XXXXMsfiC")},
    optional={
        "cat": st.sampled_from(["cpu_op", "kernel", "cuda_runtime", "gpu_memcpy", "ac2g", "", "new"]) | texts,
        "name": texts, "pid": st.integers(0, 3) | texts, "tid": st.integers(0, 3) | texts | numbers, "ts": times,
        "dur": times, "args": args, "z": values,
    },
)  # fmt: skip
events = st.one_of([plausible_events] * 15 + [odd_events])
mutations = st.just([]) | st.lists(
    st.tuples(
        st.floats(0, 1), st.integers(0, 4),
        st.binary(max_size=2) | st.sampled_from([b'"', b"}", b"]", b"{", b"\\", b",", b" \n", b"0", b"e5", b'"ts":3,']),
    ),
    max_size=3,
)  # fmt: skip


def layout(found: list[dict[str, Any]], style: int, order: Callable[[list[Any]], None]) -> bytes:
    for event in found:
        items = list(event.items())
        order(items)
        event.clear()
        event.update(items)
    separators = (",", ":") if style == 0 else (" ,\t", " :\r\n") if style == 1 else None
    text = json.dumps(found, indent=style if style > 1 else None, separators=separators, ensure_ascii=style % 2 == 0)
    return text.encode("utf-8", "surrogatepass") if style % 3 else b'{"schemaVersion":1,"traceEvents":' + text.encode(
        "utf-8", "surrogatepass"
    ) + b',"traceName":"x"}'  # fmt: skip


files_of_any_kind = st.fixed_dictionaries({
    "found": st.lists(events, min_size=12, max_size=24), "style": st.integers(0, 4), "damage": mutations,
    "random": st.randoms(use_true_random=False), "block": st.sampled_from([300, 700, 1500]),
    "cut": st.floats(0, 1) | st.just(1.0), "pack": st.booleans(),
})  # fmt: skip


@needs_numba
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=files_of_any_kind)
def test_any_file_gives_the_same(
    tmp_path: Path, assert_same: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch, case: dict[str, Any]
) -> None:
    blocks_of(case["block"], monkeypatch)
    text = bytearray(layout(case["found"], case["style"], case["random"].shuffle))
    for where, length, instead in case["damage"]:
        begin = int(where * len(text))
        text[begin : begin + length] = instead
    content = bytes(text[: int(case["cut"] * len(text))])
    path = tmp_path / "t.json"
    path.write_bytes(gzip.compress(content, 1) if case["pack"] else content)
    assert_same(path)
