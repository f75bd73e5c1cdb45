"""The folder of a batch: what is finished, and the tables. Every file appears whole or not at all.

OUT/batch.json             says that this is a batch
OUT/finished/SLUG.json     one per finished source, written last: its state, its row of the report
OUT/summary/SLUG.json      `tprof summary --format json`
OUT/TABLE/trace=SLUG/part.parquet
OUT/overall.json, OUT/failed.json
"""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from tprof.errors import UsageError
from tprof.events import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_MARK: Final = "batch.json"
_PART: Final = "trace="


def is_batch(path: str | Path) -> bool:
    """Whether a path is the folder of a batch."""
    return (Path(path) / _MARK).is_file()


class Folder:
    """One batch.

    Args:
        path: the folder; `open` makes it.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.working = self.path / ".working"  # unfinished files and progress; gone when the batch is done

    def open(self) -> None:
        """Make the folder, or go on with the batch in it.

        Raises:
            UsageError: it holds something else.
        """
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"{self.path} is a file; name a folder")
        if self.path.is_dir() and not is_batch(self.path) and any(p.name != ".working" for p in self.path.iterdir()):
            raise UsageError(f"{self.path} holds something that is no batch; name another folder")
        self.write(_MARK, as_json({"schema_version": SCHEMA_VERSION}))

    def write(self, name: str, data: bytes) -> None:
        """Put a file in its place in one step."""
        target, part = self.path / name, self.working / uuid.uuid4().hex
        for file in (target, part):
            file.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(data)
        part.replace(target)

    def write_table(self, table: str, slug: str, data: pa.Table) -> None:
        """Put a table of a source in its place; one without rows has no file."""
        name = f"{table}/{_PART}{slug}/part.parquet"
        if data.num_rows:
            self.write(name, _parquet(data))
        else:
            (self.path / name).unlink(missing_ok=True)

    def finish(self, slug: str, record: dict[str, Any]) -> None:
        """Say that everything of a source is in its place."""
        self.write(f"finished/{slug}.json", as_json(record))

    def finished(self, slug: str) -> dict[str, Any] | None:
        """What `finish` was told of a source; None before."""
        try:
            found: dict[str, Any] = json.loads((self.path / "finished" / f"{slug}.json").read_bytes())
        except (OSError, ValueError):
            return None
        return found

    def slugs(self) -> list[str]:
        """The finished sources."""
        return sorted(p.name.removesuffix(".json") for p in (self.path / "finished").glob("*.json"))

    def keep_only(self, slugs: Collection[str]) -> None:
        """Take out everything of other sources; the marks first: what is half removed is not finished."""
        for slug in self.slugs():
            if slug not in slugs:
                (self.path / "finished" / f"{slug}.json").unlink()
        for summary in (self.path / "summary").glob("*.json"):
            if summary.name.removesuffix(".json") not in slugs:
                summary.unlink()
        for part in self.path.glob(f"*/{_PART}*"):
            if part.name.removeprefix(_PART) not in slugs:
                shutil.rmtree(part)

    def tables(self) -> list[str]:
        """Names of the tables that any source has."""
        return sorted({p.parents[1].name for p in self.path.glob(f"*/{_PART}*/part.parquet")})

    def part(self, table: str, slug: str) -> pa.Table | None:
        """A table of one source; None where it has none."""
        file = self.path / table / f"{_PART}{slug}" / "part.parquet"
        return pq.ParquetFile(file).read() if file.is_file() else None

    def parts(self, table: str) -> Iterator[tuple[str, pa.Table]]:
        """A table of each finished source that has it, one at a time."""
        for slug in self.slugs():
            if (data := self.part(table, slug)) is not None:
                yield slug, data

    def settle(self) -> None:
        """Give every table one schema, so that it reads as one data set: a column of nulls has no type of its own."""
        for table in self.tables():
            files = sorted((self.path / table).glob(f"{_PART}*/part.parquet"))
            schemas = [pq.read_schema(file) for file in files]
            whole = pa.unify_schemas(schemas, promote_options="permissive")
            for file, schema in zip(files, schemas, strict=True):
                if schema != whole:
                    data = pq.ParquetFile(file).read()
                    columns = [data[f.name].cast(f.type) if f.name in schema.names else pa.nulls(len(data), f.type)
                               for f in whole]  # fmt: skip
                    self.write(str(file.relative_to(self.path)), _parquet(pa.table(columns, schema=whole)))

    def close(self) -> None:
        """Remove what killed runs left unfinished, and folders without a file."""
        shutil.rmtree(self.working, ignore_errors=True)
        for folder in [*self.path.glob(f"*/{_PART}*"), *self.path.glob("*/")]:
            if not any(folder.iterdir()):
                folder.rmdir()


def as_json(data: dict[str, Any]) -> bytes:
    """JSON as the files of a batch hold it."""
    return (json.dumps(data, indent=2) + "\n").encode()


def _parquet(data: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(data, sink)
    return sink.getvalue().to_pybytes()
