"""The machine code of `torch_scan`: compiled once with numba, kept in the cache folder, loaded with llvmlite alone.

numba's own cache would do, but using it costs 0.35 s of CPU time (the import, and unpickling what it needs to compile
more); this way it is 0.03 s, so that the scanner pays for files a tenth as large.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from contextlib import suppress
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tprof.read import cache

if TYPE_CHECKING:
    from collections.abc import Callable

    Scan = Callable[[int, int, int], int]

_SYMBOL: Final = "tprof_scan"
_SOURCES: Final = ("torch_scan.py", "torch_scan_json.py", "torch_scan_layout.py")
_DIGEST_BYTES: Final = 32


def can_compile() -> bool:
    """Whether numba is installed, and this machine is of a kind that the code is written for."""
    return find_spec("numba") is not None and sys.byteorder == "little" and sys.maxsize > 1 << 32


def folder() -> Path:
    """Where compiled code is kept."""
    return cache.folder() / "machine-code"


def may_be_compiled() -> bool:
    """Whether there is compiled code at all; whether it is for this machine costs an import."""
    return any(folder().glob("scan-*.o"))


@functools.cache
def load(*, compile_it: bool) -> Scan | None:
    """The scanner's function `scan`; None if it is not compiled yet and need not be.

    Args:
        compile_it: compile it if need be: some seconds.
    """
    path = folder() / f"scan-{_key()}.o"
    code = _kept(path)
    if code is None and compile_it:
        code = _compile()
        _keep(path, code)
    return None if code is None else _callable(code)


def _key() -> str:
    """What the code depends on: its source, the compiler, and this machine's processor."""
    import llvmlite  # noqa: PLC0415  optional
    from llvmlite import binding  # noqa: PLC0415  optional

    here = Path(__file__).parent
    host = f"{llvmlite.__version__} {binding.get_process_triple()} {binding.get_host_cpu_name()}"
    text = f"{host} {binding.get_host_cpu_features().flatten()}".encode()
    return sha256(b"\0".join([text, *((here / name).read_bytes() for name in _SOURCES)])).hexdigest()[:16]


def _kept(path: Path) -> bytes | None:
    """Code from the cache; only what this user wrote, and only if it is whole."""
    try:
        state, content = path.stat(), path.read_bytes()
    except OSError:
        return None
    digest, code = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    mine = state.st_uid == os.getuid() and not state.st_mode & 0o022
    return code if mine and sha256(code).digest() == digest else None


def _keep(path: Path, code: bytes) -> None:
    """Put code into the cache in one step; a folder that cannot be written costs only the next compilation."""
    part = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.touch(mode=0o600)
        part.write_bytes(sha256(code).digest() + code)
        part.replace(path)
    except OSError:
        with suppress(OSError):
            part.unlink()


def _compile() -> bytes:
    """An object file with nothing but `scan` and what it calls."""
    from llvmlite import binding  # noqa: PLC0415  optional
    from numba import types  # noqa: PLC0415  optional

    from tprof.read.torch_scan import scan  # noqa: PLC0415  imports numba

    signature = (types.int64, types.int64, types.int64)
    scan.compile(signature)
    module = binding.parse_assembly(scan.inspect_llvm(signature))
    functions = [function for function in module.functions if not function.is_declaration]
    for function in functions[1:]:  # the wrappers for Python, which need numba, go; the rest is inlined
        function.linkage = "internal"
    functions[0].name = _SYMBOL
    machine = _machine(binding)
    passes = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=3))
    passes.getModulePassManager().run(module, passes)
    return bytes(machine.emit_object(module))


def _machine(binding: Any) -> Any:
    """This machine, as the compiler's target."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(), features=binding.get_host_cpu_features().flatten(), opt=3, jit=True
    )


_engines: list[Any] = []  # own the code's memory


def _callable(code: bytes) -> Scan:
    from llvmlite import binding  # noqa: PLC0415  optional

    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _machine(binding))
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines.append(engine)
    number = ctypes.c_int64
    # numba's convention: where the result goes, where an exception would go, the arguments. ctypes frees the GIL
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, number, number, number)
    function = kind(engine.get_function_address(_SYMBOL))

    def scan(text: int, size: int, work: int) -> int:
        result, error = number(-1), ctypes.c_void_p()
        failed = function(ctypes.addressof(result), ctypes.addressof(error), text, size, work)
        return -1 if failed else result.value

    return scan
