"""Damage of every kind, drawn from a `random.Random`: of bytes, of JSON values, of lines and of databases."""

from __future__ import annotations

import gzip
import json
import math
import sqlite3
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

HUGE = (2**31, 2**32, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**30, -(2**31), -(2**62), -(2**63), -1, 0)
TEXTS = (
    "", "x", "0", "-5", "1e400", "é中😀", "\x00", "\x1b[31m", "[bold]", "</script><script>", "{0.__class__}", "%s%n",
    "../../x", "'; DROP TABLE t; --", "| a | b |", "\ud800", "\u202e", "n" * 300, "request#9", "a\nb", "$(id)",
)  # fmt: skip
JSON_TOKENS = (b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b"null", b"NaN", b"1e999", b"\xff", b"\x00", b"\\u12",
               b'"ts":', b'"dur":-', b'{"ph":"X",', b"}\n,", b"]}", b'"traceEvents":[')  # fmt: skip


def odd(rng: Random) -> Any:
    """A value that does not belong where it is put."""
    simple = rng.choice((None, True, False, 1.5, -0.0, math.nan, math.inf, 1e22, 1e-9, [], {}, [[]], {"a": 1}, [1, 2]))
    return rng.choice((simple, rng.choice(HUGE), rng.choice(TEXTS), rng.randrange(-3, 2000)))


def tree(rng: Random, value: Any) -> Any:
    """A JSON value with one place of it changed; containers are changed in place."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.03:
        return odd(rng)
    keys = list(value) if isinstance(value, dict) else range(len(value))
    key, other = rng.choice(keys), rng.choice(keys)
    action = rng.random()
    if action < 0.7:
        value[key] = tree(rng, value[key])
    elif action < 0.8:
        del value[key]
    elif action < 0.9:
        value[key] = value[other]
    elif isinstance(value, dict):
        value[rng.choice(TEXTS)] = value[key]
    else:
        value.insert(rng.randrange(len(value) + 1), value[key])
    return value


def several(rng: Random, value: Any, most: int = 5) -> Any:
    """The same a few times."""
    for _ in range(rng.randrange(1, most)):
        value = tree(rng, value)
    return value


def dumps(rng: Random, value: Any) -> bytes:
    """JSON in one of the layouts that producers have; what JSON cannot say stays as Python writes it."""
    indent, separators = rng.choice(((None, (",", ":")), (2, None), (0, None), (None, (" , ", " : ")), (None, None)))
    text = json.dumps(value, indent=indent, separators=separators, ensure_ascii=rng.random() < 0.5)
    return text.encode("utf-8", "surrogatepass")


def damaged(rng: Random, data: bytes, tokens: tuple[bytes, ...] = JSON_TOKENS) -> bytes:
    """Some bytes changed, cut out, put in, doubled; or the end cut off."""
    out = bytearray(data)
    for _ in range(rng.randrange(1, 5)):
        at, length = rng.randrange(len(out) + 1), rng.choice((0, 1, 1, 2, 8, 100))
        other = rng.randrange(len(out) + 1)
        new = rng.choice((rng.randbytes(length), rng.choice(tokens), bytes(out[other : other + length]), b""))
        out[at : at + rng.choice((0, len(new), length))] = new
    return bytes(out[: rng.randrange(len(out) + 1)] if rng.random() < 0.15 else out)


def packed(rng: Random, data: bytes) -> bytes:
    """As gzip, perhaps in two members, perhaps damaged."""
    cut = rng.randrange(len(data) + 1) if rng.random() < 0.3 else len(data)
    out = gzip.compress(data[:cut], 1) + (gzip.compress(data[cut:], 1) if cut < len(data) else b"")
    return damaged(rng, out, (b"\x1f\x8b", b"\x1f\x8b\x08", bytes(9))) if rng.random() < 0.5 else out


def lines(rng: Random, data: bytes) -> bytes:
    """A journal with records changed, doubled, lost, out of order, or cut."""
    found = data.splitlines(keepends=True)
    for _ in range(rng.randrange(1, 6)):
        if not found:
            break
        at, other, action = rng.randrange(len(found)), rng.randrange(len(found)), rng.random()
        if action < 0.6:
            with suppress(ValueError):
                found[at] = dumps_line(tree(rng, json.loads(found[at])))
        elif action < 0.7:
            del found[at]
        elif action < 0.8:
            found[at], found[other] = found[other], found[at]
        elif action < 0.9:
            found.insert(other, found[at])
        else:
            found[at] = damaged(rng, found[at])
    return b"".join(found)


def dumps_line(value: Any) -> bytes:
    """One line of a journal."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


# ---- databases

_CELLS = (None, 1.5, -1, "text", b"\xff\xfe", b"", "NaN", 1e300, "9" * 40, *(n for n in HUGE if abs(n) < 2**63))


def database(rng: Random, data: bytes) -> bytes:
    """A database with its schema, its cells or its bytes changed."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.deserialize(data)
        db.execute("PRAGMA writable_schema = ON")
        for _ in range(rng.randrange(1, 5)):
            tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            with suppress(sqlite3.Error, OverflowError, IndexError):  # also where no table or column is left
                _change(rng, db, rng.choice(tables))
        with suppress(sqlite3.DatabaseError):
            db.commit()
        out = db.serialize()
    return damaged(rng, out, (b"\x05", b"\x0d", bytes(4), b"\xff" * 9)) if rng.random() < 0.4 else out


def _change(rng: Random, db: sqlite3.Connection, table: str) -> None:
    columns = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]
    column, other, rows = (
        rng.choice(columns),
        rng.choice(columns),
        rng.choice(("", "WHERE rowid = 1", "WHERE rowid > 2")),
    )
    cell = rng.choice(_CELLS)
    change = rng.choice((
        *[f'UPDATE "{table}" SET "{column}" = ? {rows}'] * 6,
        f'UPDATE "{table}" SET "{column}" = "{other}" {rows}',
        f'ALTER TABLE "{table}" DROP COLUMN "{column}"',
        f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "x{rng.randrange(9)}"',
        f'ALTER TABLE "{table}" RENAME TO "{table}_V2"',
        f'ALTER TABLE "{table}" ADD COLUMN "y{rng.randrange(9)}"',
        f'DROP TABLE "{table}"', f'DELETE FROM "{table}" {rows}',
        f'INSERT INTO "{table}" SELECT * FROM "{table}"',
        f'CREATE TABLE "{table}_V3" AS SELECT CAST("{column}" AS TEXT) AS "{column}", * FROM "{table}"',
        f'CREATE VIEW "v{rng.randrange(9)}" AS SELECT * FROM "{table}"',
        f"UPDATE sqlite_master SET rootpage = {rng.choice((0, 1, 2, 3, 99999))} WHERE name = '{table}'",
    ))  # fmt: skip
    db.execute(change, (cell,) if "?" in change else ())
