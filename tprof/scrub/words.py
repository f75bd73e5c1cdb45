"""What is replaced in texts: folders of absolute paths, users, hosts, addresses."""

from __future__ import annotations

import re
from typing import Final

# Characters that end a path: blanks, quotes, brackets, and what joins paths.
_PART: Final = rb"[^\s/\\\"'<>|:;,()\[\]{}*?]+"
_HOME: Final = re.compile(rb"[/\\](?:home|Users)(?:/|\\{1,2})([^/\\\"':;,\n]{1,64})")
# A path that begins at a well-known folder is one wherever it stands (`-I/usr/include`); others not within a word.
_ROOTS: Final = rb"(?:home|Users|root|usr|opt|tmp|var|mnt|etc|proc|sys|srv|workspace|scratch|data)"
_FOLDER: Final = re.compile(rb"/(?:(?<![\w.</]/)|(?=" + _ROOTS + rb"/))(?:" + _PART + rb"/)+")
_DRIVE: Final = re.compile(rb"(?<!\w)[A-Za-z]:(?:\\{1,2}|/)(?:[^\\/\"<>|:*?\n]+(?:\\{1,2}|/))*")
_ADDRESS: Final = re.compile(rb"\b[a-z][a-z0-9+.-]*://[^\s\"'\\]*|\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
# The part of a folder that a library's own names begin with: it says nothing of the machine, and rules read it.
_LIBRARY: Final = re.compile(rb".*(?:(?:site|dist)-packages|python\d\.\d+)/|.*/(?=(?:torch|triton)/)", re.DOTALL)
_TRACKS: Final = ("Ascend Hardware", "CUDA functions")
_EVERYBODY: Final = frozenset(
    {"root", "user", "home", "localhost", "python", "triton", "torch", "cuda", "nvidia", "shared"}
)


class Words:
    """Replaces what names somebody; the same word becomes the same in everything that is scrubbed together."""

    def __init__(self) -> None:
        self._known: dict[bytes, bytes] = {}
        self._hosts: dict[str, str] = {}
        self._pattern: re.Pattern[bytes] | None = None

    def host(self, name: str) -> str:
        """What a host is called from now on; its name is replaced in every text."""
        if not name:
            return name
        if name not in self._hosts:
            self._hosts[name] = f"host-{len(self._hosts) + 1}"
            for word in {name, name.split(".", maxsplit=1)[0]}:
                self._learn(word, self._hosts[name])
        return self._hosts[name]

    def user(self, name: str) -> None:
        """Replace the name of a user in every text."""
        self._learn(name, "user")

    def learn(self, data: bytes) -> None:
        """Take the names of users from the home folders in a text."""
        for name in set(_HOME.findall(data.replace(b"\\/", b"/"))):
            self.user(name.decode("utf-8", "replace"))

    def _learn(self, word: str, to: str) -> None:
        if len(word) > 1 and word.lower() not in _EVERYBODY and not word.isdigit():
            self._known.setdefault(word.encode(), to.encode())
            longest = sorted(self._known, key=len, reverse=True)
            words = b"|".join(map(re.escape, longest))
            # Not a key of JSON: a user may be called `name`.
            self._pattern = re.compile(rb"(?<![A-Za-z0-9])(?:" + words + rb")(?![A-Za-z0-9]|\"\s*:)")

    def data(self, data: bytes) -> bytes:
        """A text, or JSON as it stands, without what names somebody."""
        data = data.replace(b"\\/", b"/").replace(b"file:///", b"/")  # JSON may escape a slash
        if b":\\" in data or b":/" in data:
            data = _DRIVE.sub(b"", data)
        if b"://" in data or b"@" in data:
            data = _ADDRESS.sub(b"address", data)
        data = _FOLDER.sub(_tail, data)
        return self._pattern.sub(lambda found: self._known[found[0]], data) if self._pattern else data

    def text(self, text: str) -> str:
        """The same of a string."""
        return self.data(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


def program(text: str) -> str:
    """Name of a program from its command line: no folder, no arguments. What a producer names a track stays."""
    if text in _TRACKS:
        return text
    return re.split(r"\s", text.strip(), maxsplit=1)[0].replace("\\", "/").rpartition("/")[2]


def _tail(found: re.Match[bytes]) -> bytes:
    """What of a folder belongs to a library: `/data/me/site-packages/torch/nn/` -> `torch/nn/`."""
    inner = _LIBRARY.match(found[0])
    return found[0][inner.end() :] if inner else b""
