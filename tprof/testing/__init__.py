"""Test your own Triton kernels without a GPU: `from tprof.testing.stub import stub_driver`."""
