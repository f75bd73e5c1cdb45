"""Several recordings on one clock: every row of each stays what it was."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.generate import Example, as_trace, examples
from support.oracle import DeviceEvent, HostEvent
from support.small import trace

from tprof.align import combine
from tprof.analyze import Attribution, Options, requests, summarize
from tprof.errors import UsageError
from tprof.model import ints, table

if TYPE_CHECKING:
    from tprof.model import Trace

KERNEL = DeviceEvent(10, 20, 0, (1, 0, 1, 7), 0, "work", 0)
LAUNCH = HostEvent(5, 8, 0, "runtime", "cudaLaunchKernel")


def named(example: Example, source: str, epoch_ns: int | None) -> Trace:
    return as_trace(example.oracle.host, example.oracle.device, example.oracle.spans, source=source, epoch_ns=epoch_ns)


def device_rows(trace: Trace, window: tuple[int, int]) -> list[dict[str, Any]]:
    rows = summarize(Attribution(trace), Options(window=window)).to_dict()["devices"]
    return [{key: value for key, value in row.items() if key != "device"} for row in rows]


@settings(max_examples=40, deadline=None)
@given(examples(), examples(), st.sampled_from([(None, None, 0), (100, 100, 0), (1_000, 1_700, 700)]))
def test_devices_and_requests_of_each_stay_as_they_were(
    one: Example, other: Example, clock: tuple[int | None, int | None, int]
) -> None:
    first, second, shift = clock
    joined = combine([named(one, "a", first), named(other, "b", second)])
    assert joined.host.num_rows == one.trace.host.num_rows + other.trace.host.num_rows
    assert joined.device.num_rows == one.trace.device.num_rows + other.trace.device.num_rows
    own, begin = len(one.oracle.devices()), one.oracle.extent
    assert device_rows(joined, begin)[:own] == device_rows(one.trace, begin)
    low, high = other.oracle.extent
    assert device_rows(joined, (low + shift, high + shift))[own:] == device_rows(other.trace, (low, high))


@settings(max_examples=40, deadline=None)
@given(examples(), examples())
def test_requests_keep_their_phases(one: Example, other: Example) -> None:
    joined = combine([named(one, "a", None), named(other, "b", None)])
    found = sorted(map(budget, requests(Attribution(joined), Options()).to_dict()["requests"]))
    apart = [
        budget(row) for e in (one, other) for row in requests(Attribution(e.trace), Options()).to_dict()["requests"]
    ]
    assert found == sorted(apart)


def budget(row: dict[str, Any]) -> tuple[Any, ...]:
    return (
        row["name"],
        row["start_ns"],
        row["wall_ns"],
        sorted(row["phases"].items()),
        sorted(row["device_by_purpose"].items()),
    )


def with_uuid(trace: Trace, uuid: str | None, host: str = "node", ordinal: int = 0) -> Trace:
    devices = table("devices", {"host": [host], "ordinal": [ordinal], "uuid": [uuid], "source": [0]})
    return replace(trace, devices=devices)


def test_one_uuid_is_one_device() -> None:
    later = replace_times(KERNEL, 15, 30)
    a = with_uuid(as_trace([LAUNCH], [KERNEL], [], source="a"), "GPU-1")
    b = with_uuid(as_trace([LAUNCH], [later], [], source="b"), "GPU-1", ordinal=3)
    joined = combine([a, b])
    assert joined.devices.num_rows == 1
    (row,) = summarize(Attribution(joined), Options()).to_dict()["devices"]
    assert (row["events"], row["busy_ns"], row["sum_ns"]) == (2, 20, 25)


@pytest.mark.parametrize(("uuid", "host"), [(None, "node"), ("GPU-1", "other")])
def test_without_a_uuid_or_on_another_machine_devices_stay_apart(uuid: str | None, host: str) -> None:
    a = with_uuid(as_trace([LAUNCH], [KERNEL], [], source="a"), uuid)
    b = with_uuid(as_trace([LAUNCH], [KERNEL], [], source="b"), uuid, host=host)
    assert combine([a, b]).devices.num_rows == 2


def test_rows_point_to_their_own_launch_thread_and_source() -> None:
    a, b = (as_trace([LAUNCH], [KERNEL], [], source=name) for name in "ab")
    joined = combine([a, b])
    assert ints(joined.device, "launch").tolist() == [0, 1]
    assert ints(joined.device, "device").tolist() == [0, 2]
    assert ints(joined.host, "thread").tolist() == [0, 3]
    assert ints(joined.devices, "source").tolist() == [0, 0, 1, 1]
    assert joined.threads["host"].to_pylist() == ["a"] * 3 + ["b"] * 3


def test_the_later_clock_is_shifted_and_an_unknown_one_is_said() -> None:
    a = as_trace([LAUNCH], [KERNEL], [], source="a", epoch_ns=1_000)
    b = as_trace([LAUNCH], [KERNEL], [], source="b", epoch_ns=1_500)
    c = as_trace([LAUNCH], [KERNEL], [], source="c")
    joined = combine([a, b, c])
    assert ints(joined.device, "start_ns").tolist() == [10, 510, 10]
    assert joined.epoch_ns == 1_000
    assert [(n.code, n.source) for n in joined.notes] == [("no-epoch", "c")]


def test_one_trace_is_itself_and_none_is_an_error() -> None:
    a = as_trace([LAUNCH], [KERNEL], [])
    assert combine([a]) is a
    with pytest.raises(UsageError, match="no trace"):
        combine([])


def replace_times(event: DeviceEvent, start: int, end: int) -> DeviceEvent:
    return replace(event, start=start, end=end)


@pytest.mark.parametrize(
    ("paths", "hosts"),
    [
        (("/runs/a.json", "/runs/b.json"), ["a.json", "b.json"]),
        (("/runs/1/trace.json", "/runs/2/trace.json"), ["1/trace.json", "2/trace.json"]),
        (("/runs/a.json", "/runs/a.json"), ["a.json", "a.json"]),
        (("a", "/a"), ["a", "/a"]),
    ],
)
def test_an_unknown_machine_is_named_by_as_much_of_the_path_as_tells_it_apart(
    paths: tuple[str, str], hosts: list[str]
) -> None:
    sources = [trace([], [], format="torch").sources.to_pylist()[0] | {"path": path} for path in paths]
    joined = combine(
        [replace(trace(threads=1), sources=table("sources", {k: [v] for k, v in s.items()})) for s in sources]
    )
    assert joined.threads["host"].to_pylist() == joined.devices["host"].to_pylist() == hosts
