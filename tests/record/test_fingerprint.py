"""A kernel's fingerprint: it changes with what is compiled, and with nothing else."""

from __future__ import annotations

import importlib.util
import pkgutil
import sys
from collections import Counter

import pytest
from support.skips import needs_triton

from tprof.record.fingerprint import MARK, _is_jitted, _read, fingerprint, lines

pytestmark = needs_triton
HELPERS = """
import triton, triton.language as tl

@triton.jit
def shifted(x, BY: tl.constexpr = 7):
    return x + BY
"""
KERNELS = """
import triton, triton.language as tl
import helpers

SCALE, UNUSED = tl.constexpr(2), tl.constexpr(5)

@triton.jit
def scaled(x):
    return x * SCALE

@triton.jit
def other(x):
    return x - UNUSED

@triton.jit
def kernel(x, o):
    tl.store(o, helpers.shifted(scaled(tl.load(x))) + 1)
"""


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    """Makes the module of KERNELS, with a change, as another process would have it."""
    made = iter(range(9))

    def load(old="", new=""):
        folder = tmp_path / str(next(made))
        folder.mkdir()
        for name, text in (("helpers", HELPERS), ("kernels", KERNELS)):
            path = folder / f"{name}.py"
            path.write_text(text.replace(old, new) if old else text)
            spec = importlib.util.spec_from_file_location(name, path)
            module = importlib.util.module_from_spec(spec)
            monkeypatch.setitem(sys.modules, name, module)
            spec.loader.exec_module(module)
        return module

    return load


def ordered(module) -> bool:
    """Whether Triton's key of the kernel is another once the function that it calls has one."""
    first, again = module.kernel.cache_key, module.scaled.cache_key
    module.kernel.hash, module.kernel.used_global_vals = None, {}
    return (first != module.kernel.cache_key) and bool(again)


def test_it_does_not_depend_on_what_was_hashed_before_and_changes_no_key(kernels):
    import triton

    untouched, touched = kernels(), kernels()
    assert touched.scaled.cache_key
    known = fingerprint(untouched.kernel)
    assert known == fingerprint(touched.kernel)
    assert known.startswith(MARK)
    assert untouched.kernel.hash is untouched.scaled.hash is None
    version = tuple(map(int, triton.__version__.split(".")[:2]))
    assert ordered(untouched) == ((3, 5) <= version <= (3, 7))


@pytest.mark.parametrize(
    ("old", "new"),
    [("x * SCALE", "SCALE * x"), ("constexpr(2)", "constexpr(3)"), ("x + BY", "BY + x"), ("= 7", "= 8"),
     ("+ 1)", "+ 2)"), ("@triton.jit\ndef scaled", "@triton.jit(noinline=True)\ndef scaled")],
)  # fmt: skip
def test_an_edit_of_what_is_compiled_changes_it(kernels, old, new):
    assert fingerprint(kernels().kernel) != fingerprint(kernels(old, new).kernel)


@pytest.mark.parametrize(
    ("old", "new"), [("@triton.jit\n", "\n\n@triton.jit\n"), ("constexpr(5)", "constexpr(6)"), ("x - UNUSED", "x")]
)
def test_a_move_and_an_edit_of_something_else_do_not(kernels, old, new):
    assert fingerprint(kernels().kernel) == fingerprint(kernels(old, new).kernel)


def test_lines_are_those_of_the_function_and_of_what_it_calls(kernels):
    assert lines(kernels().kernel) == {"kernel": 15, "scaled": 7, "shifted": 4}


def test_functions_that_call_each_other_have_one(kernels):
    module = kernels("x * SCALE", "kernel(x, SCALE)")
    assert fingerprint(module.kernel) != fingerprint(module.scaled)


def test_methods_of_an_aggregate_belong_to_what_uses_it(kernels):
    def told(*methods):
        module = kernels("x * SCALE", "Pair(x)")
        module.Pair = type("Pair", (), {"hash_attrs": [getattr(module, name) for name in methods]})
        return fingerprint(module.kernel)

    assert told() == told()
    assert told() != told("other")


@pytest.mark.parametrize("what", [None, len, fingerprint, object()])
def test_what_has_no_source_of_triton_has_none(what):
    assert fingerprint(what) is None
    assert lines(what) == {}


def test_keys_of_our_own_kernels_do_not_depend_on_the_order():
    """What several kernels call reads no constant of its module."""
    import tprof_kernels

    modules = [importlib.import_module(m.name) for m in pkgutil.iter_modules(tprof_kernels.__path__, "tprof_kernels.")]
    found = {value for module in modules for value in vars(module).values() if _is_jitted(value)}
    calls = [value for function in found for _, value in _read(function.fn) if value in found and value is not function]
    shared = [function for function, times in Counter(calls).items() if times > 1]
    assert len(shared) > 3
    assert not [f.__name__ for f in shared for _, value in _read(f.fn) if type(value).__name__ == "constexpr"]
