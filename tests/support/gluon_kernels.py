"""A Gluon kernel for the tests of the recorder; import only where triton has Gluon."""

from __future__ import annotations

import triton.experimental.gluon.language as gl
from triton.experimental import gluon


@gluon.jit
def fill(o, value, B: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    i = gl.program_id(0) * B + gl.arange(0, B, layout)
    gl.store(o + i, value + gl.zeros([B], gl.float32, layout))
