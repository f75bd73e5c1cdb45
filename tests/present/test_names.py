from __future__ import annotations

import pytest

from tprof.present.names import clean, kernel, short

FILL = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>, std::array<char*, 1ul> >"
    "(int, at::native::FillFunctor<int>, std::array<char*, 1ul>)"
)


@pytest.mark.parametrize("width", [1, 2, 5, 30, 80])
@pytest.mark.parametrize("name", [FILL, "matmul", "x" * 500, "", "<<<>>>", "a::b<", "operator()(int)"])
def test_never_wider_than_asked(name: str, width: int) -> None:
    assert len(kernel(name, width)) <= width
    assert len(short(name, width)) <= width


def test_the_essentials_of_a_template() -> None:
    assert kernel(FILL, 60) == "vectorized_elementwise_kernel<FillFunctor<int>>"
    nsight = FILL.replace("<4,", "<(int)4,").replace("1ul", "(unsigned long)1")
    assert kernel(nsight, 60) == "vectorized_elementwise_kernel<FillFunctor<int>>"
    assert kernel(FILL, 20) == "vectorized…ctor<int>>"[:10] + "…" + "tor<int>>"


def test_plain_names_stay() -> None:
    assert kernel("triton_per_fused_gelu_native_layer_norm_0", 60) == "triton_per_fused_gelu_native_layer_norm_0"
    assert kernel("Memcpy DtoH (Device -> Pageable)", 60) == "Memcpy DtoH (Device -> Pageable)"


def test_nothing_reaches_the_terminal_that_moves_it() -> None:
    assert clean("a\x1b[2Jb\tc\nd") == "a\ufffd[2Jb c d"
    assert clean("\u202eabc\u200b") == "\ufffdabc\ufffd"
    assert clean("lone \ud800") == "lone \ufffd"
    assert clean("Größe 矩阵 🙂") == "Größe 矩阵 🙂"
    assert clean(None) == "None"
