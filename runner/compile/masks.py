"""Masks: SQL that hides what nobody may see, in rows that are otherwise as the contract has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from runner.compile.compiled import Columns, Print, Step, kept
from runner.compile.library import Library
from runner.contract import MESSAGE_COLUMNS
from runner.errors import Problems, nearest_or_all
from runner.project.inputs import FUNCTION, TableSettings, masked_tables
from runner.project.masks import WORDS
from runner.project.sql_functions import SqlFunction
from runner.render import name as quoted
from runner.spec.words import Format

# The entries of `meta` that hold images of rows, in JSON, and others that may hold any text.
IMAGES_IN_META = ("other_image", "where", "defaults")
TEXTS_IN_META = ("content", "ddl_meta", "extra", "tags")
SIDES = ("before", "after")
# The name of the step with the messages as they came.
OPENED = "opened"


class Masks:
    """Prints the steps that open messages which were kept sealed, and hide what the tables of a source say. If messages
    may hold several messages, their text is never shown.
    """

    def __init__(self, sql: Print, spec: Format, tables: Iterable[TableSettings]) -> None:
        self.sql, self.spec, self.tables = sql, spec, masked_tables(tables)
        self.is_sealed = sql("is_sealed_always" if spec.message.has_parts else "is_sealed")

    def __bool__(self) -> bool:
        return bool(self.tables)

    def opened(self, view: str) -> Step:
        """Returns the step that reads the messages of a view."""
        encoding = self.spec.message.encoding
        columns = {
            **kept(*MESSAGE_COLUMNS[encoding]),
            "raw": self.sql("opened_as_text" if encoding == "json" else "opened_as_bytes"),
            "origin": self.sql("opened_place"),
        }
        about = "The messages as they came: one that lands once more may have been kept sealed.  [mask]"
        return Step(OPENED, about, self.sql("messages_with_keys", view), columns)

    def steps(self, contract: Columns, meta: Sequence[str]) -> Iterator[Step]:
        """Returns the steps that hide values in the columns of the contract; `meta` are the entries that may be in
        `meta`.
        """
        called = [(table, columns) for table in self.tables if (columns := functions_of(table))]
        # No argument of a SQL function has a lambda: the functions get values that the step before has found.
        small = {f"small_{side}": self.sql("in_small_letters", side) for side in SIDES} if called else {}
        yield Step("rows", "The rows of the changelog, with all values.", "", {**contract, **small})
        given = {
            f"given_{side}": self.sql("given_by_functions", called, side) if called else self.sql("no_given")
            for side in SIDES
        }
        about = "What becomes of the columns of each row; null if the table shows all.  [mask]"
        yield Step("masks", about, "", {**kept("*"), "masks": self.sql("masks_of_tables", self.tables), **given})
        about = "The same for columns of a key: different keys stay different. The images in meta."
        yield Step("key_masks", about, self.sql("messages_with_keys", "masks"), {**kept("*"), **self._prepared(meta)})
        masked = {key: self.sql("masked_key", key) for key in ("key", "old_key")}
        texts = [entry for entry in TEXTS_IN_META if entry in meta]
        if (images := self._images(meta)) or texts:
            masked["meta"] = self.sql("masked_meta", images, texts)
        about = "The keys and what is in meta, without what is hidden."
        yield Step("masked_keys", about, "", {**kept(self.sql("all_except", list(masked))), **masked})

    def contract(self, columns: Iterable[str]) -> Columns:
        """Prints the columns of the contract without what is hidden."""
        sql = self.sql
        hidden = {
            "key_text": sql("if_masked", sql("called", "key_text", ["key"]), "key_text"),
            **{side: sql("masked_image", side, f"given_{side}") for side in ("before", "after")},
            **{column: sql(f"hidden_{column}") for column in ("changed", "types", "origin", "statement", "detail")},
            "meta": sql("hidden_meta", self.is_sealed),
            "raw": sql("hidden_raw", self.is_sealed),
        }
        return {column: hidden.get(column, column) for column in columns}

    def _prepared(self, meta: Sequence[str]) -> Columns:
        """Prints what stands for images in `meta`, and the masks of keys."""
        images = {quoted(f"meta_{entry}"): self.sql("columns_in_meta", entry) for entry in self._images(meta)}
        return {"key_masks": self.sql("masks_in_keys"), **images}

    def _images(self, meta: Sequence[str]) -> list[str]:
        return [entry for entry in IMAGES_IN_META if entry in meta]


def functions_of(table: TableSettings) -> list[tuple[str, str]]:
    """Returns the columns that functions of the project mask, each with the name of its function."""
    return [(column, mask.split()[1]) for column, mask in table.masks.items() if mask.startswith(FUNCTION)]


def check_functions(tables: Iterable[TableSettings], library: Library) -> None:
    """Raises `mask-function` for masks that are neither known words nor SQL functions of one argument."""
    problems = Problems()
    for table in tables:
        at = {column.lower(): one for column, one in table.origin["mask"].items()}
        for column, name in functions_of(table):
            with problems.gathered():
                function = library.find(name)
                if function is None:
                    known = (*WORDS, *(one.name for one in library.all() if _is_of_text(one)))
                    message = f'"{name}" is neither a mask nor a SQL function'
                    raise at[column].error("mask-function", message, nearest_or_all(name, known))
                if len(function.arguments) != 1:
                    message = f'"{name}" takes {len(function.arguments)} arguments, and a mask gets the value alone'
                    raise at[column].error("mask-function", message)
    problems.raise_if_any()


def _is_of_text(function: SqlFunction) -> bool:
    return [one.type for one in function.arguments] == ["string"] and function.returns == "string"
