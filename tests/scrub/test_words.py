from __future__ import annotations

import pytest

from tprof.scrub.words import Words, program

HOME = "/home" + "/alice"  # in one piece it would be a path of a machine

TEXTS = {
    r'"\/home\/alice\/x.py"': '"x.py"',
    HOME: "user",
    r"C:\\Users\\bob\\x.cu": "x.cu",
    "-I/usr/include/cuda.h": "-Icuda.h",
    f"file://{HOME}/x": "x",
    "bob@corp.example http://inner:8/x/y": "address address",
    f"{HOME}/lib/python3.11/site-packages/torch/nn/m.py(3): f": "torch/nn/m.py(3): f",
    "/src/triton/python/triton/compiler/compiler.py(1): compile": "triton/compiler/compiler.py(1): compile",
    f"PATH=/usr/bin:{HOME}/bin": "PATH=bin:bin",
    "/Users" + "/Al Smith/x.py": "user/x.py",
    "layer/1/attention": "layer/1/attention",
    "void at::native::k<a/b>(int)": "void at::native::k<a/b>(int)",
    "1 / 2": "1 / 2",
}


@pytest.mark.parametrize("text", TEXTS)
def test_text(text):
    words = Words()
    words.learn(text.encode())
    assert words.text(text) == TEXTS[text]


def test_users_and_hosts_are_replaced_everywhere_but_as_keys():
    words = Words()
    words.learn(HOME.replace("alice", "name").encode() + b"/x")
    assert words.host("gpu7.inner.example") == "host-1"
    assert words.host("gpu8") == "host-2"
    assert (
        words.text('{"name": "gpu7 of name, gpu7.inner.example, gpu70"}') == '{"name": "host-1 of user, host-1, gpu70"}'
    )


def test_programs_lose_folder_and_arguments():
    assert program("/usr/bin/python3 train.py --token=x") == "python3"
    assert program("Ascend Hardware") == "Ascend Hardware"
