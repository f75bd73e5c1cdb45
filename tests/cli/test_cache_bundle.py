from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_pack_and_unpack(tprof: Callable, tmp_path: Path) -> None:
    (tmp_path / "triton" / "KEY").mkdir(parents=True)
    (tmp_path / "triton" / "KEY" / "mm.cubin").write_bytes(bytes(2048))
    (tmp_path / "key").write_bytes(bytes(range(32)))
    bundle, key = tmp_path / "b.zip", ("--key", tmp_path / "key")
    from_here = ("--triton", tmp_path / "triton", "--inductor", tmp_path / "none")
    to_there = ("--triton", tmp_path / "new", "--inductor", tmp_path / "none")
    assert tprof("cache", "pack", bundle, *from_here, *key).out == f"{bundle}: 1 file, 2.00 KiB, signed\n"
    refused = tprof("cache", "pack", bundle, *from_here)
    assert (refused.code, "--force" in refused.err) == (2, True)
    untrusted = tprof("cache", "unpack", bundle, *to_there)
    assert (untrusted.code, "--trust" in untrusted.err) == (2, True)
    assert not (tmp_path / "new").exists()
    assert tprof("cache", "unpack", bundle, *to_there, *key).out.endswith("written, 0 were there already\n")
    assert (tmp_path / "new" / "KEY" / "mm.cubin").read_bytes() == bytes(2048)
    assert "0 files, 0 B written, 1 were there already" in tprof("cache", "unpack", bundle, *to_there, "--trust").out
    bundle.write_bytes(bundle.read_bytes()[:100])
    damaged = tprof("cache", "unpack", bundle, *to_there, "--trust")
    assert (damaged.code, "is damaged" in damaged.err) == (1, True)
