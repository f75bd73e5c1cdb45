"""A bundle of compiled kernels for another machine: a zip with a manifest of hashes, which may be signed with a key.

A bundle holds code that a GPU and Python will run, so nothing is unpacked on its own word: the caller trusts it, or it
is signed (HMAC-SHA256 over the manifest, with the bytes of a key file that both sides have). Everything is checked
before anything is written. A zip, since a truncated one cannot be opened at all, and it has no links or devices.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import shutil
import zipfile
import zlib
from dataclasses import dataclass
from getpass import getuser
from pathlib import Path, PurePosixPath
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any, Final

from tprof.errors import TprofError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FORMAT: Final = "tprof-cache-bundle"
FORMAT_VERSION: Final = 1
MANIFEST, SIGNATURE = "manifest.json", "manifest.hmac"
OURS: Final = frozenset({MANIFEST, SIGNATURE})
GROUP: Final = "__grp__"  # Triton's list of the files of a kernel, with whole paths
MOST_BYTES: Final = 64 << 20  # of a manifest
MOST_PACKED: Final = 200  # bytes per byte of a bundle; compiled kernels and their texts shrink to a tenth at best
PIECE_BYTES: Final = 1 << 20
LOCKS: Final = (".lock", "lock")
DAMAGED: Final = "is damaged ({}); nothing was unpacked: fetch or pack it again"


@dataclass(frozen=True)
class Packed:
    """What a bundle holds, or what became of it.

    Attributes:
        files: packed, or written.
        size_bytes: of these.
        kept: files that were there already and stayed.
    """

    files: int
    size_bytes: int
    kept: int = 0


def folders() -> dict[str, Path]:
    """Where Triton and Inductor keep what they compiled, by the names that a bundle has for them.

    Raises:
        UsageError: the user has no home or no name, and the environment does not say where.
    """
    said = os.environ.get
    try:
        triton = said("TRITON_CACHE_DIR") or Path(said("TRITON_HOME") or Path.home(), ".triton", "cache")
        inductor = said("TORCHINDUCTOR_CACHE_DIR") or Path(gettempdir(), f"torchinductor_{getuser()}")
    except (RuntimeError, KeyError, OSError):
        raise UsageError("this user has no home: set TRITON_CACHE_DIR and TORCHINDUCTOR_CACHE_DIR") from None
    return {"triton": Path(triton), "inductor": Path(inductor)}


def key_of(path: Path) -> bytes:
    """The bytes of a key file.

    Raises:
        UsageError: it cannot be read, or is too short to be a secret.
    """
    try:
        key = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror}); name the key file") from None
    if len(key) < 16:
        raise UsageError(f"{path}: holds fewer than 16 bytes; make a key with `head -c 32 /dev/urandom > {path}`")
    return key


# ---- pack


def pack(path: Path, sources: Mapping[str, Path], key: bytes | None = None) -> Packed:
    """Write the caches into a bundle.

    Args:
        path: file to write; it appears whole, or not at all.
        sources: name in the bundle -> folder; one that does not exist is left out.
        key: what to sign with.

    Raises:
        TprofError: there is nothing to pack, or the file cannot be written.
    """
    found = {f"{name}/{rel}": file for name, folder in sorted(sources.items()) for rel, file in _files(folder)}
    if not found:
        where = ", ".join(str(folder) for folder in sources.values())
        raise TprofError(f"{where}: nothing is cached there; run the program once, or name another folder")
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with zipfile.ZipFile(temporary, "x", zipfile.ZIP_DEFLATED, compresslevel=3) as bundle:
            packed = _write(bundle, found, key)
        temporary.replace(path)
    except OSError as error:
        raise TprofError(f"{path}: cannot be written ({error.strerror}); free space, or name another file") from None
    finally:
        temporary.unlink(missing_ok=True)
    return packed


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Plain files beneath a folder, in order; links, locks and what a killed process left half-written are left out."""
    for file in sorted(folder.rglob("*")):
        rel = file.relative_to(folder)
        passing = any(part.startswith(("tmp.", ".")) for part in rel.parts)
        if file.is_file() and not file.is_symlink() and not passing and not file.name.endswith(LOCKS):
            yield rel.as_posix(), file


def _write(bundle: zipfile.ZipFile, found: Mapping[str, Path], key: bytes | None) -> Packed:
    listed: dict[str, dict[str, Any]] = {}
    for name, file in found.items():
        data = file.read_bytes()
        listed[name] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
        bundle.writestr(_entry(name), data)
    manifest = json.dumps({"format": FORMAT, "format_version": FORMAT_VERSION, "files": listed}, indent=1).encode()
    bundle.writestr(_entry(MANIFEST), manifest)
    if key is not None:
        bundle.writestr(_entry(SIGNATURE), _sign(manifest, key))
    return Packed(len(listed), sum(one["bytes"] for one in listed.values()))


def _entry(name: str) -> zipfile.ZipInfo:
    """Without a time: the same caches give the same bundle."""
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def _sign(manifest: bytes, key: bytes) -> str:
    return hmac.new(key, manifest, hashlib.sha256).hexdigest()


# ---- unpack


def unpack(path: Path, targets: Mapping[str, Path], *, key: bytes | None = None, trust: bool = False) -> Packed:
    """Check a bundle and write its files into the caches; what is there already stays.

    Args:
        path: the bundle.
        targets: name in the bundle -> folder; folders are made private to the user.
        key: what it must be signed with.
        trust: take it without a signature.

    Raises:
        UsageError: it is neither trusted nor is there a key.
        TprofError: it is damaged, signed with another key, would write outside its folders, or there is no room.
    """
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise TprofError(f"{path}: is no file; make a bundle with `tprof cache pack`")
    if key is None and not trust:
        raise UsageError(f"{path}: holds code that will run here; give --key FILE, or --trust if you know who made it")
    try:
        with zipfile.ZipFile(path) as bundle:
            listed = _checked(path, bundle, targets, key)
            return _extract(bundle, listed, targets)
    except (zipfile.BadZipFile, EOFError, RuntimeError, ValueError, zlib.error) as error:  # as zipfile takes damage
        raise TprofError(f"{path}: {DAMAGED.format(error)}") from None
    except OSError as error:
        where, why = error.filename or path, error.strerror or error
        raise TprofError(
            f"{where}: {why}; the kernels that are complete will be used: mend it and unpack again"
        ) from None


def _checked(path: Path, bundle: zipfile.ZipFile, targets: Mapping[str, Path], key: bytes | None) -> dict[str, Any]:
    """Files of a bundle, once signature, names, sizes and hashes are right."""
    if any(info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED} for info in bundle.infolist()):
        raise TprofError(f"{path}: {DAMAGED.format('it is compressed in another way')}")
    size = path.stat().st_size
    if any(info.compress_size > size for info in bundle.infolist()):  # zipfile would take memory for what is not there
        raise TprofError(f"{path}: {DAMAGED.format('a file in it is larger than it is')}")
    listed: dict[str, Any] = _manifest(path, bundle, key)["files"]
    names = [info.filename for info in bundle.infolist() if info.filename not in OURS]
    if sorted(names) != sorted(listed):
        raise TprofError(f"{path}: {DAMAGED.format('its files are not those of its manifest')}")
    if sum(info.file_size for info in bundle.infolist()) > MOST_PACKED * size:
        raise TprofError(f"{path}: {DAMAGED.format('it inflates to more than any compiled kernel does')}")
    for name in names:
        _check_name(path, name, targets)
        said, info = listed[name], bundle.getinfo(name)
        if info.file_size != said["bytes"] or _digest(bundle, info) != said["sha256"]:
            raise TprofError(f"{path}: {DAMAGED.format(f'{name} is not what was packed')}")
    return listed


def _digest(bundle: zipfile.ZipFile, info: zipfile.ZipInfo) -> str:
    """SHA-256 of a file, in pieces: what it says of its size is not yet known to be true."""
    found = hashlib.sha256()
    with bundle.open(info) as file:
        while piece := file.read(PIECE_BYTES):
            found.update(piece)
    return found.hexdigest()


def _is_listed(one: object) -> bool:
    return isinstance(one, dict) and isinstance(one.get("bytes"), int) and isinstance(one.get("sha256"), str)


def _manifest(path: Path, bundle: zipfile.ZipFile, key: bytes | None) -> dict[str, Any]:
    try:
        if bundle.getinfo(MANIFEST).file_size > MOST_BYTES:
            raise TprofError(f"{path}: {DAMAGED.format('its manifest is too large')}")
        data = bundle.read(MANIFEST)
        said = json.loads(data)
        good = (
            said["format"] == FORMAT
            and isinstance(said["files"], dict)
            and all(map(_is_listed, said["files"].values()))
        )
        version = said["format_version"] if good else None
    except (KeyError, TypeError, ValueError, RecursionError):
        raise TprofError(f"{path}: is no bundle of tprof; make one with `tprof cache pack`") from None
    if version != FORMAT_VERSION:
        raise TprofError(f"{path}: has bundle format {version!r}, this tprof reads {FORMAT_VERSION}; pack it anew")
    if key is not None:
        signed = bundle.read(SIGNATURE).decode("ascii", "replace") if SIGNATURE in bundle.namelist() else ""
        if not hmac.compare_digest(signed.encode(), _sign(data, key).encode()):
            raise TprofError(f"{path}: is not signed with this key; nothing was unpacked")
    return dict(said)


def _check_name(path: Path, name: str, targets: Mapping[str, Path]) -> None:
    """A name must lead into one of the folders, through no link."""
    parts = PurePosixPath(name).parts
    if parts[:1] not in [(root,) for root in targets] or len(parts) < 2 or ".." in parts or set(name) & {"\\", "\0"}:
        raise TprofError(f"{path}: {name!r} lies outside the caches; nothing was unpacked: do not use this bundle")
    place = targets[parts[0]]
    for part in parts[1:]:
        place /= part
        if place.is_symlink():
            raise TprofError(f"{place}: is a link, and the bundle would write through it; nothing was unpacked")


def _extract(bundle: zipfile.ZipFile, listed: Mapping[str, Any], targets: Mapping[str, Path]) -> Packed:
    """Write the files; a kernel's list of files last, so that a kill leaves no kernel that only seems complete."""
    written = [_put(bundle, name, targets) for name in sorted(listed, key=lambda n: (GROUP in n, n))]
    return Packed(sum(n is not None for n in written), sum(n or 0 for n in written), written.count(None))


def _put(bundle: zipfile.ZipFile, name: str, targets: Mapping[str, Path]) -> int | None:
    root, *parts = PurePosixPath(name).parts
    file = targets[root].joinpath(*parts)
    if file.exists():
        return None
    _make_private(file.parent)
    temporary = file.with_name(f"tmp.{file.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as out:
            if file.name.startswith(GROUP):
                out.write(_moved(bundle.read(name), file.parent))
            else:
                shutil.copyfileobj(bundle.open(name), out, PIECE_BYTES)
            size = out.tell()
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)
    return size


def _make_private(folder: Path) -> None:
    """Make a folder and those above it for this user alone; `mkdir(parents=True)` would open those above to all."""
    if not folder.is_dir():
        _make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _moved(group: bytes, folder: Path) -> bytes:
    """Triton's list of a kernel's files, whose whole paths now lead into another folder."""
    try:
        paths = json.loads(group)["child_paths"].items()
    except (AttributeError, KeyError, TypeError, ValueError):
        return group  # it was broken when it was packed: Triton will compile that kernel
    return json.dumps(
        {"child_paths": {child: str(folder / PurePosixPath(where).name) for child, where in paths}}
    ).encode()
