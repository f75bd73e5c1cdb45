"""Names of device API calls, in every vendor's spelling, and what they do."""

from __future__ import annotations

import pytest
from support.small import call, span, trace

from tprof.align import calls
from tprof.align.calls import call_class, call_classes, is_kind


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cudaLaunchKernel", calls.LAUNCH),
        ("cudaLaunchKernelExC", calls.LAUNCH),
        ("cuLaunchKernelEx", calls.LAUNCH),
        ("cuLaunchCooperativeKernel", calls.LAUNCH),
        ("cudaLaunchCooperativeKernel", calls.LAUNCH),
        ("hipLaunchKernel", calls.LAUNCH),
        ("hipModuleLaunchKernel", calls.LAUNCH),
        ("hipExtModuleLaunchKernel", calls.LAUNCH),
        ("urEnqueueKernelLaunch", calls.LAUNCH),
        ("cudaGraphLaunch", calls.GRAPH),
        ("cuGraphLaunch", calls.GRAPH),
        ("hipGraphLaunch", calls.GRAPH),
        ("cudaMemcpyAsync", calls.COPY),
        ("cuMemsetD8Async", calls.COPY),
        ("hipMemcpyWithStream", calls.COPY),
        ("cudaEventRecord", calls.RECORD),
        ("cudaEventRecordWithFlags", calls.RECORD),
        ("cudaEventQuery", calls.QUERY),
        ("cudaEventElapsedTime", calls.QUERY),
        ("cudaEventDestroy", calls.DESTROY),
        ("cudaStreamSynchronize", calls.SYNC),
        ("cudaDeviceSynchronize", calls.SYNC),
        ("cudaEventSynchronize", calls.SYNC),
        ("cuCtxSynchronize", calls.SYNC),
        ("hipDeviceSynchronize", calls.SYNC),
        ("cuModuleLoadData", calls.LOAD),
        ("cuModuleLoad", calls.LOAD),
        ("hipModuleLoadDataEx", calls.LOAD),
        ("cuLibraryLoadData", calls.LIBRARY),
        ("cudaStreamBeginCapture", calls.CAPTURE),
        ("cudaGraphInstantiate", calls.CAPTURE),
        ("cudaMalloc", calls.ALLOC),
        ("cudaFree", calls.ALLOC),
        ("cuMemCreate", calls.ALLOC),
        ("cudaHostAlloc", calls.ALLOC),
        ("cuInit", calls.INIT),
        ("cudaGetDevice", calls.OTHER),
        ("cudaStreamWaitEvent", calls.OTHER),
        ("cudaEventCreateWithFlags", calls.OTHER),
        ("cuModuleGetFunction", calls.OTHER),
        ("cuModuleUnload", calls.OTHER),
        ("cudaStreamIsCapturing", calls.OTHER),
        ("cudaFuncGetAttributes", calls.OTHER),
    ],
)
def test_class_of_a_call(name: str, expected: int) -> None:
    assert call_class(name) == expected


def test_only_rows_of_the_device_api_are_calls() -> None:
    host = trace(
        [
            call(0, 1),
            call(1, 2, kind="driver", name="cuLaunchKernel"),
            span(0, 9, "cudaLaunchKernel"),
            span(3, 4, "read", "osrt"),
        ]
    ).host
    assert call_classes(host).tolist() == [calls.LAUNCH, calls.LAUNCH, calls.NOT_A_CALL, calls.NOT_A_CALL]
    assert is_kind(host, "range", "osrt").tolist() == [False, False, True, True]
    assert call_classes(trace().host).tolist() == []
