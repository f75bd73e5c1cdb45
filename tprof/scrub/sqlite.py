"""An Nsight Systems export: the tables and columns that tprof reads, texts without names, nothing in free pages."""

from __future__ import annotations

import gzip
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tprof.errors import SourceError
from tprof.read import nsight_schema as ns
from tprof.read.inflate import inflated_file
from tprof.read.nsight_meta import EXPORT_KEYS, SYSTEM_KEYS
from tprof.scrub.words import Words, program

if TYPE_CHECKING:
    from collections.abc import Callable

_SETTINGS: Final = {ns.SYSTEM: ("Hostname", *SYSTEM_KEYS), **dict.fromkeys(ns.EXPORT_META, tuple(EXPORT_KEYS))}
_STRING_IDS: Final = ("nameId", "textId", "demangledName", "shortName", "mangledName", "jsonTextId")
_ENUMS: Final = "ENUM_"  # tables of constants
_IN_USE: Final = (
    ns.RUNTIME,
    ns.NVTX,
    ns.OSRT,
    ns.PROFILER_OVERHEAD,
    ns.CUPTI_OVERHEAD,
    ns.KERNEL,
    ns.MEMCPY,
    ns.MEMSET,
    ns.GRAPH_TRACE,
)
_PROCESS: Final = 1 << 24  # a globalTid is a globalPid with the thread in its low bits


def scrub_sqlite(path: Path, out: Path, words: Words) -> None:
    """Write the copy.

    Raises:
        SourceError: the file is no database, or damaged.
    """
    with tempfile.TemporaryDirectory(prefix="tprof-") as folder, inflated_file(path, str(path), []) as plain:
        work, clean = Path(folder, "work"), Path(folder, "clean")
        shutil.copyfile(plain, work)
        try:
            with closing(sqlite3.connect(work, isolation_level=None)) as db:
                db.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
                _Copy(db, words).run()
                db.execute("VACUUM INTO ?", (str(clean),))  # freed pages keep their bytes
        except (sqlite3.Error, UnicodeEncodeError) as error:  # a damaged name of a table is no UTF-8
            raise SourceError(path, f"cannot be rewritten ({error}); export it again from its report") from error
        if plain == path:
            shutil.copyfile(clean, out)
            return
        with clean.open("rb") as file, out.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, 0) as to:
            shutil.copyfileobj(file, to)


class _Copy:
    """Rewrites one open database in place."""

    def __init__(self, db: sqlite3.Connection, words: Words) -> None:
        self._db, self._words = db, words
        tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        names = [name for (name,) in tables.fetchall()]
        self._columns = {t: [row[1] for row in db.execute(f"PRAGMA table_info({_quoted(t)})")] for t in names}

    def run(self) -> None:
        """Every step; rows and strings go before the texts that are left are changed."""
        self._learn()
        self._db.execute("BEGIN")
        for table in self._columns:
            if table not in ns.KNOWN and not table.startswith(_ENUMS):
                self._db.execute(f"DELETE FROM {_quoted(table)}")
        self._settings()
        self._processes()
        self._strings()
        for table in self._columns:
            if not table.startswith(_ENUMS):
                self._texts(table)
        self._db.execute("COMMIT")

    def _learn(self) -> None:
        """Who the users are: by their home folders, in whatever text there is."""
        for table, columns in self._columns.items():
            for name in map(_quoted, columns):
                homes = f"{name} LIKE '%home/%' OR {name} LIKE '%Users/%' OR {name} LIKE '%Users\\%'"
                found = self._db.execute(
                    f"SELECT {name} FROM {_quoted(table)} WHERE typeof({name}) = 'text' AND ({homes})"
                )
                for (text,) in found:
                    self._words.learn(_raw(text))

    def _settings(self) -> None:
        """Of the machine's and the export's settings those that tprof reads."""
        for table, keys in _SETTINGS.items():
            if table in self._columns:
                marks = ", ".join("?" * len(keys))
                self._db.execute(f"DELETE FROM {_quoted(table)} WHERE name NOT IN ({marks})", keys)
        if ns.SYSTEM in self._columns:
            hosts = self._db.execute(f"SELECT value FROM {ns.SYSTEM} WHERE name = 'Hostname'").fetchall()
            for (name,) in hosts:
                new = self._words.host(str(name or ""))
                self._db.execute(f"UPDATE {ns.SYSTEM} SET value = ? WHERE name = 'Hostname'", (new,))

    def _processes(self) -> None:
        """Processes and threads that took part; an export lists every one of the machine."""
        parts = [
            f"SELECT {column} / {_PROCESS} FROM {table}"
            for table in _IN_USE
            for column in ("globalTid", "globalPid")
            if column in self._columns.get(table, ())
        ]
        for table, column in ((ns.PROCESSES, "globalPid"), (ns.THREAD_NAMES, "globalTid")):
            if parts and column in self._columns.get(table, ()):
                used = " UNION ".join(parts)
                self._db.execute(
                    f"DELETE FROM {table} WHERE {column} / {_PROCESS} NOT IN (SELECT * FROM ({used}) WHERE 1)"
                )

    def _strings(self) -> None:
        """Strings that a row still names."""
        if ns.STRINGS not in self._columns:
            return
        parts = [
            f"SELECT {column} FROM {_quoted(table)} WHERE {column} IS NOT NULL"
            for table, columns in self._columns.items()
            for column in _STRING_IDS
            if column in columns and table in ns.KNOWN
        ]
        self._db.execute(f"DELETE FROM {ns.STRINGS}" + (f" WHERE id NOT IN ({' UNION '.join(parts)})" if parts else ""))

    def _texts(self, table: str) -> None:
        """Every text and blob of a table: changed where tprof reads it, else removed."""
        known = ns.KNOWN.get(table, ())
        for column in self._columns[table]:
            if column in known and not (table in _SETTINGS and column == "name"):
                change = program if (table, column) == (ns.PROCESSES, "name") else self._words.text
                self._change(table, column, change)
            elif column not in known:
                self._empty(table, column)

    def _change(self, table: str, column: str, change: Callable[[str], str]) -> None:
        found = self._db.execute(f"SELECT DISTINCT {_quoted(column)} FROM {_quoted(table)} {_with_text(column)}")
        texts = [text for (text,) in found if isinstance(text, str)]
        changed = [(_raw(new), _raw(text)) for text in texts if (new := self._words.text(change(text))) != text]
        name, text = _quoted(column), "CAST(? AS TEXT)"
        self._db.executemany(f"UPDATE {_quoted(table)} SET {name} = {text} WHERE {name} = {text}", changed)

    def _empty(self, table: str, column: str) -> None:
        update = f"UPDATE {_quoted(table)} SET {_quoted(column)}"
        try:
            self._db.execute(f"{update} = NULL {_with_text(column)}")
        except sqlite3.IntegrityError:  # the column must not be null
            self._db.execute(f"{update} = '' {_with_text(column)}")


def _with_text(column: str) -> str:
    return f"WHERE typeof({_quoted(column)}) IN ('text', 'blob')"


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
