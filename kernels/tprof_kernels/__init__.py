"""Triton kernels for PyTorch whose cold start is bounded: few candidates, declared buckets, a conservative path."""

from __future__ import annotations
