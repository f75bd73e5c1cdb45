"""Machine code: functions compiled once with numba (extra `fast`), kept in the cache folder, loaded with llvmlite.

numba's own cache would do, but using it costs 0.35 s of CPU time (the import, and unpickling what it needs to compile
more); this way it is 0.03 s, so that a function pays for files a tenth as large. Whoever has such a function has
another way too, which is its reference: `Native.choose` says None where that one is to be taken.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any, Final

from tprof.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    Call = Callable[..., int]

_DIGEST_BYTES: Final = 32
_SETTINGS: Final = ("on", "off", "auto")


@dataclass(frozen=True)
class Native:
    """A function of integers and arrays that can be had as machine code; it returns an integer, and -1 if it fails.

    Attributes:
        module: where it is; importing that imports numba.
        name: of the function, which is not compiled before it is asked for.
        signature: its arguments as numba spells them: `int64`, or `int16[::1]` for an array in one piece.
        load_from: size of the task from which on kept code is loaded.
        compile_from: from which on code is compiled if need be: some seconds.
        parts: other modules whose source is a part of it.
    """

    module: str
    name: str
    signature: tuple[str, ...]
    load_from: int
    compile_from: int
    parts: tuple[str, ...] = ()

    def choose(self, size: int) -> Call | None:
        """The function, if it pays for a task of some size.

        `TPROF_SCANNER` decides otherwise: `on` takes it for every task and compiles it if need be, `off` never does.

        Raises:
            UsageError: the setting is none of `on`, `off`, `auto`; or it is `on` and numba is not installed.
        """
        setting = os.environ.get("TPROF_SCANNER") or "auto"
        if setting not in _SETTINGS:
            raise UsageError(f"TPROF_SCANNER={setting!r}: use on, off or auto")
        if setting == "on" and not can_compile():
            raise UsageError("TPROF_SCANNER=on needs numba; install it with: pip install 'triton-tprof[fast]'")
        now = setting == "on" or size >= self.compile_from
        wanted = now or (size >= self.load_from and self.may_be_compiled())
        return None if setting == "off" or not wanted or not can_compile() else load(self, compile_it=now)

    def may_be_compiled(self) -> bool:
        """Whether there is compiled code at all; whether it is for this machine costs an import."""
        return any(code_folder().glob(f"{self.name}-*.o"))


def cache_folder() -> Path:
    """Where everything is kept that can be made again."""
    if said := os.environ.get("TPROF_CACHE_DIR"):
        return Path(said)
    home = os.path.expanduser("~")  # noqa: PTH111  Path.home() raises for a user without a home
    base = os.environ.get("XDG_CACHE_HOME") or Path(home, ".cache")
    return Path(base, "tprof") if os.path.isabs(base) else Path(gettempdir(), f"tprof-{os.getuid()}")  # noqa: PTH117


def code_folder() -> Path:
    """Where compiled code is kept."""
    return cache_folder() / "machine-code"


def can_compile() -> bool:
    """Whether numba is installed, and this machine is of a kind that the code is written for."""
    return find_spec("numba") is not None and sys.byteorder == "little" and sys.maxsize > 1 << 32


@functools.cache
def load(native: Native, *, compile_it: bool) -> Call | None:
    """The function; None if it is not compiled yet and need not be.

    Args:
        native: which.
        compile_it: compile it if need be: some seconds.
    """
    path = code_folder() / f"{native.name}-{_key(native)}.o"
    code = _kept(path)
    if code is None and compile_it:
        code = _compile(native)
        _keep(path, code)
    return None if code is None else _callable(native, code)


def _key(native: Native) -> str:
    """What the code depends on: its source, the compiler, and this machine's processor."""
    import llvmlite  # noqa: PLC0415  optional
    from llvmlite import binding  # noqa: PLC0415  optional

    root = Path(__file__).parents[2]
    sources = (root / f"{name.replace('.', '/')}.py" for name in (native.module, *native.parts))
    host = f"{llvmlite.__version__} {binding.get_process_triple()} {binding.get_host_cpu_name()} {native.signature}"
    text = f"{host} {binding.get_host_cpu_features().flatten()}".encode()
    return sha256(b"\0".join([text, Path(__file__).read_bytes(), *(s.read_bytes() for s in sources)])).hexdigest()[:16]


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


def _compile(native: Native) -> bytes:
    """An object file with nothing but the function and what it calls."""
    from llvmlite import binding  # noqa: PLC0415  optional
    from numba.core import sigutils  # noqa: PLC0415  optional

    function = getattr(import_module(native.module), native.name)
    signature, _ = sigutils.normalize_signature(f"({', '.join(native.signature)},)")
    function.compile(signature)
    module = binding.parse_assembly(function.inspect_llvm(signature))
    functions = [f for f in module.functions if not f.is_declaration]
    for other in functions[1:]:  # the wrappers for Python, which need numba, go; the rest is inlined
        other.linkage = "internal"
    functions[0].name = _symbol(native)
    machine = _machine(binding)
    passes = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=3))
    passes.getModulePassManager().run(module, passes)
    return bytes(machine.emit_object(module))


def _symbol(native: Native) -> str:
    return f"tprof_{native.name}"


def _machine(binding: Any) -> Any:
    """This machine, as the compiler's target."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(), features=binding.get_host_cpu_features().flatten(), opt=3, jit=True
    )


_engines: list[Any] = []  # own the code's memory
_ARRAY: Final = 7  # values that numba passes of an array: owner, parent, items, item's bytes, data, shape, step


def _callable(native: Native, code: bytes) -> Call:
    from llvmlite import binding  # noqa: PLC0415  optional

    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _machine(binding))
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines.append(engine)
    number = ctypes.c_int64
    count = sum(_ARRAY if "[" in kind else 1 for kind in native.signature)
    # numba's convention: where the result goes, where an exception would go, the arguments. ctypes frees the GIL
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *[number] * count)
    function = kind(engine.get_function_address(_symbol(native)))

    def call(*args: int | np.ndarray) -> int:
        result, error = number(-1), ctypes.c_void_p()
        given = [value for arg in args for value in ((arg,) if isinstance(arg, int) else _array(arg))]
        failed = function(ctypes.addressof(result), ctypes.addressof(error), *given)
        return -1 if failed else result.value

    return call


def _array(a: np.ndarray) -> tuple[int, ...]:
    return 0, 0, a.size, a.itemsize, a.ctypes.data, a.size, a.itemsize
