"""Bundles of compiled kernels: what goes in comes out, and nothing else; what is wrong leaves no trace."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import zipfile
from pathlib import Path

import pytest

from tprof.errors import TprofError, UsageError
from tprof.prepare import bundle
from tprof.prepare.bundle import Packed, pack, unpack

STEP = 37  # bytes of the bundle that are tried
KEY = b"a secret that both sides have"


@pytest.fixture
def caches(tmp_path) -> dict[str, Path]:
    """One kernel as Triton keeps it, and a file of Inductor's."""
    kernel = tmp_path / "triton" / "KEY"
    kernel.mkdir(parents=True)
    (kernel / "mm.cubin").write_bytes(b"\x7fELF" + bytes(1000))
    (kernel / "mm.json").write_text("{}")
    group = {"child_paths": {name: str(kernel / name) for name in ("mm.cubin", "mm.json")}}
    (kernel / "__grp__mm.json").write_text(json.dumps(group))
    (kernel / "lock").write_text("")
    (kernel / "tmp.pid_7_x").mkdir()
    (kernel / "tmp.pid_7_x" / "mm.ptx").write_text("half")
    (kernel / "link.cubin").symlink_to(kernel / "mm.cubin")
    graph = tmp_path / "inductor" / "fxgraph" / "ab"
    graph.mkdir(parents=True)
    (graph / "one").write_text("graph")
    return {"triton": tmp_path / "triton", "inductor": tmp_path / "inductor"}


@pytest.fixture
def packed(caches, tmp_path) -> Path:
    assert pack(tmp_path / "b.zip", caches, KEY) == Packed(4, 1004 + 2 + 5 + _size(caches["triton"]))
    return tmp_path / "b.zip"


@pytest.fixture
def targets(tmp_path) -> dict[str, Path]:
    return {"triton": tmp_path / "new" / "t", "inductor": tmp_path / "new" / "i"}


def _size(triton: Path) -> int:
    return (triton / "KEY" / "__grp__mm.json").stat().st_size


def files(targets) -> list[str]:
    folders = [folder for folder in targets.values() if folder.exists()]
    return sorted(p.relative_to(f).as_posix() for f in folders for p in f.rglob("*") if not p.is_dir())


def rewritten(path: Path, change, *, sign: bool = False) -> Path:
    """The bundle, after `change(files)`; with a fitting manifest if `sign`."""
    with zipfile.ZipFile(path) as old:
        found = {name: old.read(name) for name in old.namelist()}
    change(found)
    if sign:
        listed = {n: {"sha256": hashlib.sha256(d).hexdigest(), "bytes": len(d)} for n, d in found.items()
                  if n not in bundle.OURS}  # fmt: skip
        said = json.loads(found["manifest.json"]) | {"files": listed}
        found["manifest.json"] = json.dumps(said).encode()
        found["manifest.hmac"] = bundle._sign(found["manifest.json"], KEY).encode()
    changed = path.with_name("changed.zip")
    with zipfile.ZipFile(changed, "w") as new:
        for name, data in found.items():
            new.writestr(name, data)
    return changed


def test_what_is_packed_comes_out_in_its_new_place(packed, targets):
    assert unpack(packed, targets, key=KEY).files == 4
    assert files(targets) == ["KEY/__grp__mm.json", "KEY/mm.cubin", "KEY/mm.json", "fxgraph/ab/one"]
    group = json.loads((targets["triton"] / "KEY" / "__grp__mm.json").read_text())["child_paths"]
    assert group == {name: str(targets["triton"] / "KEY" / name) for name in ("mm.cubin", "mm.json")}
    for path in [targets["triton"].parent, *targets["triton"].parent.rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path


def test_the_same_caches_give_the_same_bundle(packed, caches, tmp_path):
    pack(tmp_path / "again.zip", caches, KEY)
    assert (tmp_path / "again.zip").read_bytes() == packed.read_bytes()


def test_what_is_there_stays(packed, targets):
    mine = targets["triton"] / "KEY" / "mm.json"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    assert unpack(packed, targets, trust=True).kept == 1
    assert mine.read_text() == "mine"
    assert unpack(packed, targets, trust=True) == Packed(0, 0, 4)


def test_trust_or_a_key(packed, targets, caches, tmp_path):
    with pytest.raises(UsageError, match="--trust"):
        unpack(packed, targets)
    with pytest.raises(TprofError, match="not signed with this key"):
        unpack(packed, targets, key=b"another secret of them")
    pack(tmp_path / "unsigned.zip", caches)
    with pytest.raises(TprofError, match="not signed with this key"):
        unpack(tmp_path / "unsigned.zip", targets, key=KEY)
    assert files(targets) == []
    assert unpack(tmp_path / "unsigned.zip", targets, trust=True).files == 4


def test_key_files(tmp_path):
    (tmp_path / "short").write_bytes(b"abc")
    with pytest.raises(UsageError, match="fewer than 16 bytes"):
        bundle.key_of(tmp_path / "short")
    with pytest.raises(UsageError, match="cannot be read"):
        bundle.key_of(tmp_path / "absent")


@pytest.mark.parametrize("keep", [0, 10, 500, -1])
def test_a_truncated_bundle(packed, targets, keep):
    packed.write_bytes(packed.read_bytes()[:keep])
    with pytest.raises(TprofError, match="is damaged"):
        unpack(packed, targets, trust=True)
    assert files(targets) == []


def test_flipped_bytes_write_nothing_or_what_was_packed(packed, targets):
    """Whichever byte of the bundle is wrong: an error, or a byte that means nothing."""
    good = packed.read_bytes()
    for at in range(0, len(good), STEP):
        packed.write_bytes(good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :])
        try:
            unpack(packed, targets, key=KEY)
        except TprofError:
            assert files(targets) == []
        else:
            assert (targets["triton"] / "KEY" / "mm.cubin").read_bytes() == b"\x7fELF" + bytes(1000)
            for file in [p for f in targets.values() for p in f.rglob("*") if p.is_file()]:
                file.unlink()


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found.update({"triton/KEY/mm.cubin": b"evil"}),
        lambda found: found.update({"triton/KEY/more.cubin": b"evil"}),
        lambda found: found.pop("triton/KEY/mm.json"),
    ],
)
def test_contents_that_are_not_those_of_the_manifest(packed, targets, change):
    with pytest.raises(TprofError, match="is damaged"):
        unpack(rewritten(packed, change), targets, key=KEY)
    assert files(targets) == []


@pytest.mark.parametrize(
    "name",
    ["triton/../../outside", "/etc/outside", "../outside", "outside", "triton", "triton/a/../b", "elsewhere/KEY/x",
     "triton\\..\\outside"],
)  # fmt: skip
def test_paths_outside(packed, targets, tmp_path, name):
    changed = rewritten(packed, lambda found: found.update({name: b"evil"}), sign=True)
    with pytest.raises(TprofError, match="outside the caches"):
        unpack(changed, targets, key=KEY)
    assert files(targets) == []
    assert not list(tmp_path.rglob("outside"))


def test_links_in_the_cache_are_not_written_through(packed, targets, tmp_path):
    (tmp_path / "victim").mkdir()
    targets["triton"].mkdir(parents=True)
    (targets["triton"] / "KEY").symlink_to(tmp_path / "victim")
    with pytest.raises(TprofError, match="is a link"):
        unpack(packed, targets, key=KEY)
    assert list((tmp_path / "victim").iterdir()) == []


def test_no_bundle(packed, targets, tmp_path):
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as other:
        other.writestr("readme", "hello")
    with pytest.raises(TprofError, match="no bundle of tprof"):
        unpack(tmp_path / "other.zip", targets, trust=True)
    newer = rewritten(packed, lambda f: f.update({"manifest.json": b'{"format": "tprof-cache-bundle", "files": {}, '
                                                                   b'"format_version": 9}'}))  # fmt: skip
    with pytest.raises(TprofError, match="bundle format 9"):
        unpack(newer, targets, trust=True)
    with pytest.raises(TprofError, match="No such file"):
        unpack(tmp_path / "absent.zip", targets, trust=True)


def test_nothing_to_pack(tmp_path):
    with pytest.raises(TprofError, match="nothing is cached there"):
        pack(tmp_path / "b.zip", {"triton": tmp_path / "none"})
    assert not (tmp_path / "b.zip").exists()


def test_a_disk_that_fills_up_leaves_no_kernel_that_seems_complete(packed, targets, monkeypatch):
    written = []

    def replace(self: Path, target: Path) -> Path:
        written.append(target)
        if len(written) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))
        return rename(self, target)

    rename = Path.replace
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replace)
        with pytest.raises(TprofError, match="No space left on device; the kernels that are complete will be used"):
            unpack(packed, targets, key=KEY)
    assert not any("__grp__" in name or "tmp." in name for name in files(targets))
    assert unpack(packed, targets, key=KEY).kept == 2
    assert len(files(targets)) == 4


def test_folders_follow_the_environment(monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", "/a")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/b")
    assert bundle.folders() == {"triton": Path("/a"), "inductor": Path("/b")}
    monkeypatch.delenv("TRITON_CACHE_DIR")
    monkeypatch.setenv("TRITON_HOME", "/c")
    assert bundle.folders()["triton"] == Path("/c/.triton/cache")
