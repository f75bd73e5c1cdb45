"""Names from a trace are foreign text: made safe for a terminal, and short enough for a table."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

# Cc: control characters, terminal escapes; Cf: bidirectional overrides, other invisible marks; Cs: lone surrogates.
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_PREFIX: Final = re.compile(r"^(?:void|static|__global__)\s+")
_NOISE: Final = re.compile(r"\((?:unsigned )?(?:int|long|bool)\)|(?:\(anonymous namespace\)|<unnamed>)::|(?<=\d)ul\b")
_NAMESPACES: Final = re.compile(r"\b(?:at::native::|at::|c10::|std::|cutlass::)(?:templates::)?(?:cuda::)?")
_FUNCTOR: Final = re.compile(r"\b\w*(?:Functor|_kernel_cuda|_kernel_impl|Op)\b(?:<[^<>]*>)?")


def clean(text: object) -> str:
    """One line without control, formatting or bidirectional characters; each becomes U+FFFD, white space a blank."""
    line = " ".join(str(text).split()) if str(text).strip() else str(text).strip()
    if line.isascii() and line.isprintable():
        return line
    return "".join("\ufffd" if unicodedata.category(c) in _HIDDEN else c for c in line)


def short(text: object, width: int) -> str:
    """A name of at most `width` characters, cut in the middle.

    >>> short("abcdefghij", 7)
    'abc…hij'
    """
    line = clean(text)
    if len(line) <= width:
        return line
    head = width // 2
    return line[:head] + "…" + line[len(line) - (width - head - 1) :] if width > 1 else "…"[:width]


def kernel(text: object, width: int) -> str:
    """A kernel's name of at most `width` characters: the essentials of a C++ signature.

    >>> kernel("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int> >(int)", 60)
    'vectorized_elementwise_kernel<FillFunctor<int>>'
    """
    line = clean(text)
    if "::" not in line and len(line) <= width:
        return line
    return short(_essentials(line), width)


def _essentials(line: str) -> str:
    """Function name and the functor among its template arguments; anything that does not look like C++ stays."""
    bare = _NAMESPACES.sub("", _NOISE.sub("", _PREFIX.sub("", line)))
    name, angle, arguments = bare.partition("<")
    if not angle or not name.strip():
        return bare.partition("(")[0] or bare
    functor = _FUNCTOR.search(arguments)
    return f"{name}<{functor[0] if functor else '…'}>"
