"""The query of a source: SQL that makes changelog rows of its messages, step by step, from a format and the source's
settings. All choices are made in this package; macros print the results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from runner.compile.avro import Records
from runner.compile.column_types import ColumnTypes
from runner.compile.compiled import Columns, CompiledNode, Print, Step, kept, make_promises
from runner.compile.documents import Documents
from runner.compile.header import NAME_COLUMNS, Header
from runner.compile.images import make_images
from runner.compile.keys import Keys
from runner.compile.masks import OPENED, Masks
from runner.compile.paths import image_paths
from runner.compile.readers import make_zone
from runner.compile.rows import Rows
from runner.compile.values import Readers, Values
from runner.contract import MESSAGE_COLUMNS
from runner.project.inputs import ALL, DEAD_LETTERS, NONE, Messages, TableSettings
from runner.project.sql_functions import printed_functions
from runner.render import name as quoted
from runner.render import sql_text
from runner.spec.words import Field, Format
from runner.sql_text import folded


def compile_format(
    macro: Print,
    spec: Format,
    source: str,
    zone: str | None,
    tables: Sequence[TableSettings] = (),
    prefix: str | None = None,
    generation: int = 0,
    raw_kept: str = DEAD_LETTERS,
) -> CompiledNode:
    """Returns the query that makes changelog rows of the view `<source>_messages`, and the functions that only this
    query calls. The names of these functions begin with the `prefix`, which is the source if no prefix is given. The
    zone of the source overrides that of the format; `raw_kept` are the messages whose text is kept. Raises
    `types-unknown`, `schema-field` and `spec-conflict`.
    """
    query = Query(macro, spec, source, zone, tables, prefix or source, raw_kept)
    functions = printed_functions(folded("\n".join(query.sql_functions())), "functions_of_source")
    return CompiledNode(
        query.sql_of(generation),
        query.reading.functions,
        sql_functions=functions,
        promises=make_promises(spec, zone, tables),
        of_first_load=query.usual() if generation or raw_kept != DEAD_LETTERS else "",
        encoding=spec.message.encoding,
    )


# Kind of messages -> the kinds whose macros print some parts of what reads them.
READ_AS = {
    "json_files": {"scanned": "files", "is_message": "files"},
    "console_files": {"scanned": "files", "is_message": "files"},
    "repair_files": dict.fromkeys(("scanned", "raw", "is_message", "origin"), "files"),
    "rows_files": dict.fromkeys(("scanned", "is_message", "origin", "arrival"), "binary_files"),
    "binary_table": dict.fromkeys(("scanned", "is_message", "origin", "arrival"), "table"),
    "kafka": dict.fromkeys(("scanned", "raw"), "table"),
    "binary_kafka": {
        "scanned": "table",
        **dict.fromkeys(("raw", "own_schema", "damage"), "binary_table"),
        **dict.fromkeys(("is_message", "origin", "arrival"), "kafka"),
    },
}


def reads(macro: Print, messages: Messages) -> dict[str, str]:
    """Prints the expressions that read messages: the scanned relation, the test for messages, and each column."""
    columns = MESSAGE_COLUMNS["avro" if messages.kind.startswith("binary_") else "json"]
    kinds = {
        part: READ_AS.get(messages.kind, {}).get(part, messages.kind) for part in ("scanned", "is_message", *columns)
    }
    return {part: macro(f"{kind}_{part}", messages).strip() for part, kind in kinds.items()}


class Query:
    """The query of a source, in steps: read the messages, classify them, give reasons why some cannot be used, make
    their rows, the images of these, and the columns of the contract.
    """

    def __init__(
        self,
        macro: Print,
        spec: Format,
        source: str,
        zone: str | None,
        tables: Iterable[TableSettings],
        prefix: str,
        raw_kept: str = DEAD_LETTERS,
    ) -> None:
        self.macro, self.spec, self.source, self.prefix, self.raw_kept = macro, spec, source, prefix, raw_kept
        self.view = quoted(f"{source}_messages")
        self.keeps_all, self.written_zone = raw_kept == ALL, zone
        self.zone = make_zone(zone or spec.zone)
        self.images = images = make_images(spec)
        self.header = Header(self.sql, spec, self.zone)
        self.tables = tuple(tables)
        readers = Readers(self.header, self.tables)
        self.rows = rows = Rows(self.header, images, bool(spec.types and spec.types.at), bool(readers.all))
        self.masks = Masks(self.sql, spec, self.tables)
        view = OPENED if self.masks else self.view
        self.reading = Records(rows, source, view) if rows.is_avro else Documents(rows, view, prefix, self.keeps_all)
        self.keys = Keys(rows, [table for table in self.tables if table.key], self.reading.roots)
        self.types = ColumnTypes(rows, self.keys)
        self.values = Values(rows, readers, self.reading, prefix)

    def sql(self, macro: str, *arguments: Any) -> str:
        """Prints a macro with these arguments."""
        return self.macro(macro, *arguments).strip()

    def sql_of(self, generation: int) -> str:
        """Prints the SQL of the query; `generation` is that of the rows that the query makes."""
        columns = self._contract(generation)
        steps = list(self.steps(columns))
        if self.masks:
            columns = self.masks.contract(columns)
        named = [name if name == one else self.sql("named", one, name) for name, one in columns.items()]
        return folded(self.sql("changelog", self.source, self._settings(), steps, named) + "\n")

    def usual(self) -> str:
        """Prints the SQL for a first load of which only dead letters are kept: what the rows mean is the same."""
        return Query(self.macro, self.spec, self.source, self.written_zone, self.tables, self.prefix).sql_of(0)

    def sql_functions(self) -> Iterator[str]:
        """Prints the statements that make the functions that only this query calls."""
        yield from self.reading.sql_functions()
        yield from self.values.sql_functions()
        if self.zone and self.header.has_local_times:
            arguments = {"clock": ("string", "a local time, YYYY-MM-DD HH:MM:SS[.f]")}
            about = (
                f"The instant of a local time in the zone {self.zone.name}; null for another text, and for a time that "
                "the clocks there skipped."
            )
            body = self.sql("instant_of_clock", self.zone)
            yield self.sql("function_of_source", self.zone.function, arguments, "timestamp", about, body)

    def _settings(self) -> dict[str, str]:
        """Returns the settings on which the meaning of the query depends, for the comment at its head."""
        kinds = {name: kind.split("<")[0] for name, kind in MESSAGE_COLUMNS[self.spec.message.encoding].items()}
        functions = ", ".join(dict.fromkeys(self._python_functions()))
        return {
            "format": f"{self.spec.name}: {self.spec.about}",
            "reads": f"{self.source}_messages: {', '.join(f'{name} {kind}' for name, kind in kinds.items())}",
            **({"functions": f"Spark's own, and {functions} of runner/functions"} if functions else {}),
            "zone": self.zone.name if self.zone else "not declared: local times stay wall clock",
        }

    def _python_functions(self) -> Iterator[str]:
        """Returns the names of the functions in Python: those that read messages, images and values."""
        yield from self.reading.python_functions
        yield from (image.function for image in self.images.texts)
        yield from (function for function, _ in self.values.readers.python)

    # --- steps

    def steps(self, contract: Columns) -> Iterator[Step]:
        """Returns the steps, in the order the data takes. Each reads the step before it, unless it names another."""
        opened = [self.masks.opened(self.view)] if self.masks else []
        hidden = self.masks.steps(contract, list(self._meta_entries())) if self.masks else ()
        previous = ""
        for step in (*opened, *self._steps(), *hidden):
            yield replace(step, reads=step.reads or previous)
            previous = step.name

    def _steps(self) -> Iterator[Step]:
        images = self.images
        yield from self.reading.steps()
        yield self._classified()
        if images.texts:
            about = "Documents that came as texts in another language than JSON.  [text]"
            yield Step("parsed_texts", about, "", {**kept("*"), **self.rows.in_texts()})
        if images.sent:
            about = f"The images, column -> value.{'  [names]' if images.positional else ''}"
            yield Step("named_images", about, "", {**kept("*"), **self.rows.named()})
        elif images.named:
            about = "The images, column -> value.  [names, name, value, prefix]"
            yield Step("named_images", about, "", {**kept("*"), **self.rows.named()})
        if not images.in_lists:
            about = "The images of each row change.  [before, after]"
            yield Step("message_images", about, "", {**kept("*"), **self.rows.of_message()})
        yield self._checked()
        yield self._exploded()
        yield from self.values.steps()
        yield self._images()
        about = "The key columns, looked up in the images; null if one of them is missing.  [key]"
        yield Step("keyed", about, "", {**kept("*"), "key": self.keys.key(), "key_before": self.sql("key_before")})

    def _classified(self) -> Step:
        about = "What each message is, in words: kind, then op"
        columns = {**kept("*"), "verdict": self.header.verdict()}
        if not self.images.in_lists:
            return Step("classified", f"{about}.  [op]", "", columns)
        columns["types"] = self.types.types()
        if not self.values.readers.typed:
            columns |= self.values.of_message()
        about = f"{about}; its rows, those before an update, and their types.  [op, each, before, after, types]"
        return Step("classified", about, "", {**columns, **self.rows.lists()})

    def _checked(self) -> Step:
        columns = {**kept("*"), **self.reading.checked(self.keys)}
        if self.images.texts:
            columns["unfit_columns"] = self.types.unfit_in_texts()
        columns["reason"] = self._reason()
        if self.tables:
            columns["table_names"] = self.header.table_names()
        columns |= {**self.keys.image_columns(), "key_names": self.keys.names()}
        if not self.images.in_lists:
            columns["types"] = self.types.types()
        if self.values.readers.typed or not self.images.in_lists:
            columns |= self.values.of_message()
        columns |= self.values.in_doubt_of_lists()
        about = (
            "Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part."
        )
        return Step("checked", about, "", columns)

    def _reason(self) -> str:
        """Prints the reason why a message cannot be used."""
        sql = self.sql
        reasons = [
            (sql("is_there", "parse_error"), "parse_error"),
            (sql("is_missing", "verdict"), sql("no_op", self.header.plain(self.spec.op.by))),
        ]
        if self.header.refusing:
            reasons.append((sql("is_dead_letter"), sql("second_word", "verdict")))
        reasons.append((sql("is_no_row"), "null"))
        return sql("cases", [*reasons, *self.rows.bad(self.reading.bad(self.keys))])

    def _exploded(self) -> Step:
        columns = {**self._kept_of_message(), "kind": self.sql("kind")}
        in_lists, values = self.images.in_lists, self.values
        has_parts = in_lists or self.reading.has_parts
        columns["row_index"] = self.sql("first_row", "nth") if has_parts else "0"
        columns["op"] = self.header.op()
        if values.readers.all and self.images.marked:
            columns["readers"] = self.sql("readers_of_texts", "readers")
        for name, members in self._members.items():
            columns[quoted(f"meta_{name}")] = self.sql("member_of_row", members)
        columns |= {**self.rows.as_sent(), **self.rows.names(), **values.in_doubt(), **self.rows.other()}
        columns |= self.types.defaults()
        about = (
            "One row for each row change; every other message stays one row. In the images as sent only columns are "
            f"left.{'  [drop]' if self.spec.drop else ''}{'  [not_sent]' if '' in self.spec.not_sent else ''}"
        )
        return Step("exploded", about, self._each_row() if in_lists else "checked", columns)

    def _kept_of_message(self) -> Columns:
        """Prints the columns of a message that later steps need, beside its rows."""
        images, in_lists, has_readers = self.images, self.images.in_lists, bool(self.values.readers.all)
        needed = {
            "key_image": self.keys.image,
            "more_than_key": self.keys.image,
            "types": True,
            "readers": has_readers and not images.marked,
            "removed": images.removed,
            **dict.fromkeys(self.reading.kept, True),
            "unfit_columns": images.tell_unfit,
            "ambiguous_columns": images.marked and images.may_be_ambiguous,
            "settled_columns": images.listed and has_readers,
            "missing_columns": images.listed and images.may_lack_columns,
            "zeros_allowed": self.values.shares_zeros,
            "json_in_doubt": in_lists and self.values.may_be_in_doubt,
        }
        columns = kept(
            "origin", "arrival", "m", "verdict", "reason", "key_names", *(one for one in needed if needed[one])
        )
        return {**columns, **self._raw()}

    def _raw(self) -> Columns:
        """Prints the text of a message, where it is kept: for the first of its rows."""
        if self.images.in_lists:
            return {"raw": self.sql("raw_of_lists")} if self.keeps_all else kept("raw")
        if not self.keeps_all:
            return {"raw": self.sql("if_refused", "raw")}
        if self.reading.has_parts:
            return {"raw": self.sql("raw_of_parts"), "is_whole": self.sql("is_there", "message_text")}
        return kept("raw")

    def _each_row(self) -> str:
        """Prints the rows of each message, beside the columns that later steps need of the rest of the message."""
        reading = self.reading
        others = {"other_row": self.sql("nth_of", "other_rows")} if self.images.others else {}
        of_rows = {**reading.marks(), **others, **self.values.in_doubt_of_row()}
        added = {**self.values.zeros_allowed(), **reading.listed()}
        if self.keeps_all:
            # A copy of the text for each row is too much.
            added, of_rows = {**added, "message_text": "raw"}, {**of_rows, "first_text": self.sql("text_of_first")}
        return self.rows.each(reading.long_fields, added, of_rows, self.keeps_all)

    def _images(self) -> Step:
        is_laid_over = self.images.before.laid_over or self.images.after.laid_over
        over = "; one of only some columns is laid over the other.  [before.over, after.over]" if is_laid_over else "."
        about = f"Both images in canonical text{over}{'  [not_sent]' if any(self.spec.not_sent) else ''}"
        columns = {**kept("*"), **self.rows.canonical(), **self._told}
        return Step("images", about, "", columns)

    # --- the columns of the contract

    def _contract(self, generation: int) -> Columns:
        """Prints the columns of the contract, in its order."""
        sql, header, rows = self.sql, self.header, self.rows
        sides = (self.images.before, self.images.after)
        return {
            "kind": "kind",
            "source": sql_text(self.source),
            "format": sql_text(self.spec.name),
            "op": "op",
            **{name: header.column(name) for name in NAME_COLUMNS},
            "key": "key",
            "old_key": sql("old_key"),
            "key_text": sql("called", "key_text", ["key"]),
            **kept("before", "after"),
            **{f"{side.name}_image": rows.completeness(side) for side in sides},
            "changed": rows.changed(),
            "types": self.types.of_message(),
            **{name: header.column(name) for name in ("event_time", "produced_at", "tx_id")},
            "seq": sql("seq", generation, sql("late_phase") if self.spec.loads == "late" else "1", header.position()),
            "pair_id": header.pair_id(),
            "meta": sql("known_entries", self._meta_entries()),
            "origin": "origin",
            "statement": sql("statement_of_ddl", header.column("statement")),
            "reason": "reason",
            "detail": header.first([*self.reading.detail(), header.detail()]),
            "raw": self._written_raw(),
        }

    def _written_raw(self) -> str:
        if self.raw_kept == NONE:
            return self.sql("raw_none")
        if self.keeps_all and self.reading.has_parts:
            return self.sql("raw_any")
        return self.sql(f"raw_{self.reading.form}")

    def _encoding(self) -> str:
        """Prints how the text of a message is written, if it is not as it came."""
        if self.raw_kept == NONE:
            return self.sql("encoding_none")
        if self.keeps_all and (self.reading.has_parts or self.reading.form == "bytes"):
            return self.sql(f"encoding_any_{self.reading.form}")
        return self.sql(f"encoding_of_{self.reading.form}")

    @cached_property
    def _members(self) -> dict[str, list[str]]:
        """The entries of `meta` that come from members of rows alone, each with these members."""
        lists = image_paths(self.spec) if self.images.in_lists else ()
        out = {}
        for name, value in self.spec.meta.items():
            paths = [choice.path for choice in value if isinstance(choice, Field) and choice.path.parent in lists]
            if paths and len(paths) == len(value):
                out[name] = list(dict.fromkeys(path[-1] for path in paths))
        return out

    def _meta_entries(self) -> Columns:
        """Prints the entries of `meta`. An entry `old_NAME` is the value of NAME before a change, only where both
        differ.
        """
        sql, header, members = self.sql, self.header, self._members
        entries: dict[str, str] = {}
        for name, value in self.spec.meta.items():
            new = self.spec.meta.get(name.removeprefix("old_"), ()) if name.startswith("old_") else ()
            if name in members:
                entries[name] = quoted(f"meta_{name}")
            elif new:
                entries[name] = sql("called", "nullif", [header.given(value), header.given(new)])
            else:
                entries[name] = header.plain(value) if len(value) == 1 else header.given(value)
        if self.keys.image:
            entries["where"] = sql("of_rows", "more_than_key")
        if self.images.others:
            entries["other_image"] = "other_image"
        if self.keys.are_named:
            entries["key_columns"] = sql("names_without_key", ["row", "ddl"] if self.keys.are_sent else ["row"])
        if self.spec.types and self.spec.types.default:
            entries["defaults"] = sql("defaults_in_json", self.values.defaults_read())
        entries |= {
            name: sql("called", "names_joined", [column])
            for name, column in (("as_sent", "columns_as_sent"), ("ambiguous_times", "ambiguous_times"))
            if column in self._told
        }
        entries["raw_encoding"] = self._encoding()
        if self.keeps_all and self.reading.has_parts:
            entries["raw_of"] = sql("whole_letter")
        if self.reading.form == "bytes":
            entries["own_schema"] = sql("of_raw", "own_schema")
        return entries

    @cached_property
    def _told(self) -> Columns:
        """The columns of the values that could not be read, and of those that may mean two things, that images have."""
        return {**self.values.as_sent(), **self.values.ambiguous_times()}
