from __future__ import annotations

from tprof.analyze import Result
from tprof.present.columns import Column, table
from tprof.present.views import VIEWS, view


def test_columns_are_written_as_key_rank_marks_and_heading() -> None:
    written = table("Kernels", "name 2?*: of what | total_ns | of_wall_share 1 | note ?: why, and how | state: ")
    assert written.columns == (
        Column("name", "of what", 2, sparse=True, varied=True),
        Column("total_ns", "total"),
        Column("of_wall_share", "of wall", 1),
        Column("note", "why, and how", sparse=True),
        Column("state", ""),
    )


def test_no_view_names_a_column_twice_or_marks_one_wrongly() -> None:
    for where, known in VIEWS.items():
        keys = [column.key for column in known.columns]
        assert len(set(keys)) == len(keys), where
        assert all(key.replace("_", "").isalnum() for key in keys), where


def test_an_unknown_table_shows_all_that_its_rows_have() -> None:
    shown = view(Result("new", {"some_rows": [{"a_ns": 1}, {"b": 2}]}, {}), "some_rows")
    assert (shown.heading, [column.heading for column in shown.columns]) == ("some rows", ["a", "b"])
