"""What a page of the docs says can be run: its fenced blocks, in order.

- `console`: lines that begin with `$ ` are run; what stands below one must appear in its output, line by line and in
  that order, with `…` for anything. A comment `# exit code 3` is the exit code that is expected.
- `python`: is run; what a page's blocks define, later blocks of it know.
- a block with `title="NAME"` is a file, written to the folder that the page runs in.
- `<!-- not run: REASON -->` on the line before a block leaves it out.
- `<!-- setup` … `-->` is Python that is run and not shown: what the examples take for granted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

RUN = ("console", "python")
SHOWN = ("text", "toml", "yaml", "json")  # what a block may hold besides
_BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)(?P<attributes>[^\n`]*)\n(?P<text>.*?)^(?P=indent)```$"
    r"|^<!-- setup\n(?P<setup>.*?)^-->$"
    r"|^ *<!-- not run: (?P<reason>[^\n]+) -->$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """A fenced block: where it begins, what it holds, and why it is not run, if it is not."""

    line: int
    language: str
    text: str
    file: str = ""
    reason: str = ""


def blocks(page: str) -> list[Block]:
    """All blocks of a page."""
    found, reason = [], ""
    for match in _BLOCK.finditer(page):
        line = page.count("\n", 0, match.start()) + 2
        if match["reason"]:
            reason = match["reason"]
            continue
        if match["setup"]:
            found.append(Block(line, "python", match["setup"]))
            continue
        text = re.sub(f"^{match['indent']}", "", match["text"], flags=re.MULTILINE)
        title = re.search(r'title="([^"]+)"', match["attributes"])
        found.append(Block(line, match["language"], text, title[1] if title else "", reason))
        reason = ""
    return found


def commands(text: str) -> list[tuple[str, int, list[str]]]:
    """The commands of a `console` block: each with its exit code and the lines that it must print."""
    found: list[tuple[str, int, list[str]]] = []
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        if line.startswith("$ "):
            code = re.search(r"#.*exit code (\d)", line)
            found.append((line[2:], int(code[1]) if code else 0, []))
        elif line.strip():
            found[-1][2].append(line)
    return found
