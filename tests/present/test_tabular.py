from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tprof.analyze import Result
from tprof.errors import UsageError
from tprof.present import tabular

if TYPE_CHECKING:
    import tprof

VERBS = ["summary", "idle", "cold", "kernels", "requests"]
KEYS = {
    "summary": {"window", "devices", "cold", "requests", "findings"},
    "idle": {"window", "devices", "gaps"},
    "cold": {"cold", "phases", "kernels", "candidates", "spans"},
    "kernels": {"kernels"},
    "requests": {"requests"},
}


@pytest.mark.parametrize("verb", VERBS)
def test_json_has_the_documented_keys(trace: tprof.Trace, verb: str) -> None:
    data = json.loads(tabular.json_text(getattr(trace, verb)()))
    assert data["schema_version"] == 1
    assert set(data) >= {"schema_version", "sources", "warnings"} | KEYS[verb]
    assert all(set(w) == {"code", "message", "count", "source"} for w in data["warnings"])


def test_json_keeps_full_names(hostile: tprof.Trace) -> None:
    names = {k["name"] for k in json.loads(tabular.json_text(hostile.kernels()))["kernels"]}
    assert '<script>alert("x")</script>' in names
    assert max(map(len, names)) > 4000


def test_json_is_ascii(hostile: tprof.Trace) -> None:
    assert tabular.json_text(hostile.kernels()).isascii()


@pytest.mark.parametrize("verb", VERBS)
def test_csv_is_rectangular(trace: tprof.Trace, verb: str) -> None:
    result = getattr(trace, verb)()
    for table, rows in result.tables.items():
        read = list(csv.reader(io.StringIO(tabular.csv_text(result, table))))
        assert len(read) == len(rows) + 1
        assert {len(line) for line in read} == {len(read[0])}


def test_csv_gives_no_formula_to_a_spreadsheet(hostile: tprof.Trace) -> None:
    names = [row["name"] for row in csv.DictReader(io.StringIO(tabular.csv_text(hostile.kernels())))]
    assert '\'=HYPERLINK("http://example.invalid")' in names
    assert not [n for n in names if n[:1] in "=+-@"]


@pytest.mark.parametrize("verb", VERBS)
def test_parquet_has_integers_and_fractions(trace: tprof.Trace, verb: str) -> None:
    result = getattr(trace, verb)()
    for table, rows in result.tables.items():
        read = pq.read_table(io.BytesIO(tabular.parquet_bytes(result, table)))
        assert read.num_rows == len(rows)
        for field in read.schema:
            if field.name.endswith("_ns"):
                assert field.type == pa.int64()
            if field.name.endswith("share"):
                assert field.type == pa.float64()


def test_nested_values_become_json_text() -> None:
    result = Result("x", {"t": [{"a": {"b": 1}, "c_ns": None}]}, {})
    assert tabular.arrow(result).to_pylist() == [{"a": '{"b": 1}', "c_ns": None}]
    assert tabular.csv_text(result) == 'a,c_ns\n"{""b"": 1}",\n'


def test_an_unknown_table_is_named() -> None:
    with pytest.raises(UsageError, match="x has no table 'no'; it has t"):
        tabular.csv_text(Result("x", {"t": []}, {}), "no")
