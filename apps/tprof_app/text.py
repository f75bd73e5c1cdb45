"""Foreign text in Markdown, and command lines."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

from tprof.present.names import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

_SPECIAL: Final = re.compile(r"([!-/:-@\[-`{-~])")
_LINK: Final = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?=@)")
_CODE: Final = re.compile(r"\\`(.*?)\\`")  # as `plain` leaves it
_ESCAPE: Final = re.compile(r"\\(?=.)")
_JOINER: Final = "\u2060"  # no width, no break: the word looks the same and is no address any more


def plain(text: object) -> str:
    """Text from a trace or a path as Markdown that shows just it: no tags, links, images, formulas or directives."""
    return _SPECIAL.sub(r"\\\1", _LINK.sub(_JOINER, clean(text)))


def with_code(text: str) -> str:
    """The same, but what stands between two backticks is code: for text of tprof's own."""
    return _CODE.sub(lambda found: f"`{_ESCAPE.sub('', found[1])}`", plain(text))


def command(verb: str, paths: Sequence[str], *flags: str) -> str:
    """The command line that prints the same figures."""
    return shlex.join(["tprof", verb, *paths, *flags])
