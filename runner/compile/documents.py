"""Messages in JSON: SQL that reads each as one document, with the digits of its numbers as they were sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from runner.compile.compiled import Columns, Step, kept
from runner.compile.json import ADDED, JsonReading, Placing
from runner.compile.keys import Keys
from runner.compile.paths import MAP, MAPS, TEXT, TEXTS, Tree
from runner.compile.rows import Cases, Rows
from runner.functions.avro.layout import AvroFunction
from runner.render import name as quoted
from runner.render import sql_text
from runner.spec.vocabulary import ABOVE_ROOT, RECORD_HEADERS, RECORD_KEY, RECORD_TOPIC, WHOLE


class Documents:
    """Prints how messages in JSON are read: exactly one object, with the digits of its numbers as they were sent. With
    `keeps_all`, a message with several parts goes along with the first of them, as `message_text`.
    """

    # The form of messages: bytes or text.
    form = "text"
    functions: tuple[AvroFunction, ...] = ()

    def __init__(self, rows: Rows, view: str, prefix: str, keeps_all: bool) -> None:
        self.sql, self.header, self.rows, self.images = rows.sql, rows.header, rows, rows.images
        self.spec, self.message = rows.spec, rows.spec.message
        self.view, self.prefix, self.keeps_all = view, prefix, keeps_all
        self.json, self.placing = JsonReading(self.spec), Placing(self.spec)

    @property
    def has_parts(self) -> bool:
        """True if a message may hold several messages, which are numbered."""
        return self.message.has_parts

    @property
    def python_functions(self) -> list[str]:
        """The functions in Python that take messages apart."""
        found = {"json_elements": self.message.batch, "framed_events": self.message.frames}
        return [function for function, is_used in found.items() if is_used]

    @property
    def long_fields(self) -> list[tuple[str, ...]]:
        """The fields that hold lists and maps of a message's rows and columns."""
        return [path for path, _ in self.json.others]

    @property
    def kept(self) -> list[str]:
        """The columns that later steps need to describe damaged messages."""
        return ["damage"] if self.message.frames else []

    def detail(self) -> list[str]:
        """Returns the columns with the detail that is kept of a message that cannot be used."""
        return self.kept

    def checked(self, _: Keys) -> Columns:
        return {}

    def bad(self, _: Keys) -> Cases:
        return []

    def marks(self) -> Columns:
        return {}

    def listed(self) -> Columns:
        return {}

    @property
    def roots(self) -> list[str]:
        """The names of the objects where paths start."""
        return [root[0] for root, _ in self.placing.roots if root]

    def steps(self) -> Iterator[Step]:
        """Returns the steps that read the one document of each message as `m`; if there is none, `parse_error` says
        why. Most messages are read at once; the few whose fields have unusual shapes are read again, field by field.
        """
        parts = list(self._parts())
        yield from parts
        reads = parts[-1].name if parts else self.view
        comment = (
            "The fields that the format names. A seal follows the document: in its place, it says that nothing else "
            f"came with it.{'  [message.numbers]' if self.json.exact else ''}"
        )
        text = self.sql("called", "exact_numbers", ["raw"]) if self.json.exact else "raw"
        document = self.sql("sealed_document", text, self.json.sealed_fields, self.json.usual_depth)
        yield Step("decoded", comment, reads, {**kept("*"), "document": document})
        yield self._parsed()
        if self.placing.is_needed:
            yield self._placed()

    def _parts(self) -> Iterator[Step]:
        """Returns the step that splits a message into its messages, or takes it from behind the number of a schema."""
        if self.message.batch:
            path = [part for part in self.message.batch if part != WHOLE]
            elements = self.sql("elements_of_batch", self.sql("texts_of", path), self.view)
            columns = {**kept("origin", "arrival", "nth"), "raw": "element", **self._whole()}
            yield Step("messages", "The messages in each message, one a row.  [message.batch]", elements, columns)
        elif frames := self.message.frames:
            comment = "The events in each message, one a row: each is a frame of the key and one of the value."
            starts = [sql_text(frames.key_starts), sql_text(frames.value_starts), str(frames.length_bytes)]
            events = self.sql("events_of_frames", starts, self.view)
            columns = {**kept("origin", "arrival", "nth"), "raw": self.sql("member_of", "event", "text")}
            columns |= {**kept(self.sql("member_of", "event", "damage")), **self._whole()}
            yield Step("messages", f"{comment}  [message.frames]", events, columns)
        elif size := self.message.number_bytes:
            comment = (
                "The messages without the numbers of schemas before them and before their keys.  [message.framing]"
            )
            origin = self.sql("origin_without_number", size)
            columns = {"origin": origin, **kept("arrival"), "raw": self.sql("without_number", "raw", size)}
            yield Step("messages", comment, self.view, columns)

    def _whole(self) -> Columns:
        """Prints the text of a message with several parts, for the first of them, if it is kept."""
        return {"message_text": self.sql("text_of_whole")} if self.keeps_all else {}

    def _parsed(self) -> Step:
        comment = (
            "The one document of each message, or why there is none. Where fields have an unusual shape, each is read "
            "for itself."
        )
        of_parts = ("nth", *self._whole()) if self.has_parts else ()
        columns = kept("origin", "arrival", *of_parts, "raw")
        reason = self.sql("member_of", "message", "reason")
        columns = {**columns, "m": self.sql("member_of", "message", "document")}
        if self.message.frames:
            columns |= kept("damage")
            reason = self.sql("reason_of_frames", reason)
        columns["parse_error"] = reason
        if self.images.in_json or self.images.in_lists:
            columns |= kept(self.sql("member_of", "message", "misfits"))
        if self.images.in_lists:
            columns |= {**self.rows.hidden_members(), **self.rows.placeholders()}
        return Step("parsed", comment, self.sql("read_messages", f"{self.prefix}_message"), columns)

    # --- where paths start

    def _placed(self) -> Step:
        """Returns the step that finds the fields where paths start, with the data that came beside them."""
        placing = self.placing
        used = {
            "message.root": placing.roots,
            "$message": placing.above,
            "$key": placing.key or placing.key_is_row,
            "$topic": placing.has_topic,
            "$headers": placing.has_headers,
        }
        words = ", ".join(word for word, is_used in used.items() if is_used)
        left_out = ["m", "found", *(["record_key"] if placing.key else [])]
        columns = {**kept(self.sql("all_except", left_out)), "m": self.sql("root_with", self._beside())}
        found = (
            self.header.first(self._at_root(root, names, "m") for root, names in placing.roots)
            if placing.roots
            else "m"
        )
        key = {"record_key": self.sql("key_as", self._key_type())} if placing.key else {}
        reads = self.sql("found_roots", {**kept("*"), "found": found, **key})
        return Step("placed", f"The fields where paths start, with what came beside them.  [{words}]", reads, columns)

    def _beside(self) -> Columns:
        """Prints the columns of the data beside the fields of a message: fields above the root, key, topic and
        headers.
        """
        placing, out = self.placing, {}
        if placing.above:
            out[ABOVE_ROOT] = self.sql("struct_of", "m", placing.above)
        if placing.key:
            names = list(placing.key)
            # Keys have nothing below the first name of a root.
            roots = [self._at_root(root[:1], names, "record_key") for root, _ in placing.roots]
            out[RECORD_KEY] = self.header.first(roots) if roots else "record_key"
        if placing.key_is_row:
            out[RECORD_KEY] = self.sql("key_as_row", self.sql("texts_of", self.roots))
        if placing.has_topic:
            out[RECORD_TOPIC] = self.sql("member_of", "origin", "topic")
        if placing.has_headers:
            out[RECORD_HEADERS] = self.sql("headers_by_name")
        return {quoted(name): expression for name, expression in out.items()}

    def _at_root(self, root: Sequence[str], names: Sequence[str], column: str) -> str:
        """Prints the object at a root, or for an empty root the whole, with the fields that are read there."""
        return self.sql("at_path", column, root) if root else self.sql("struct_of", column, names)

    def _key_type(self) -> Tree:
        """Returns the tree of the fields that are read of the key of a record, below each of the roots."""
        key = self.placing.key
        if not self.placing.roots:
            return key
        out: Tree = {}
        for root, _ in self.placing.roots:
            out |= {root[0]: key} if root else key
        return out

    # --- messages of unusual shape

    def sql_functions(self) -> list[str]:
        """Prints the function that reads a message field by field, unless all fields have the usual shape."""
        json = self.json
        found: Columns = {
            **{quoted(_texts(path)): self.sql("texts_at", path, names) for path, names in json.texts.items()},
            **{quoted("_".join(path)): self._other_at(path, kind) for path, kind in json.others},
            "misfits": self._misfits(),
        }
        document = self._struct(json.fields, (), 4)
        usual = [
            self.sql("is_missing", "raw"),
            *([] if json.is_flat else [self.sql("is_usual", self._holds_no_nested())]),
        ]
        return [self.sql("document_function", f"{self.prefix}_message", json.sealed_fields, usual, found, document)]

    def _other_at(self, path: Sequence[str], kind: str) -> str:
        """Prints the value at a path: a bare object is a list of one row, a bare text a list of one name."""
        forms = {MAPS: "rows_at", TEXTS: "names_at"}
        return self.sql(forms[kind], path) if kind in forms else self.sql("read_at", path, kind)

    def _misfits(self) -> str:
        """Prints the images in whose places something else stands than an image, or than a list of images and nulls."""
        places = [(image.name, path, image.kinds) for image in self.json.images for path in image.paths]
        return self.sql("misfits", places)

    def _holds_no_nested(self) -> list[str]:
        """Prints tests that no value that is read is an object or a list where a text is expected: the numbers in such
        a value may have got quotes. The parser refuses values that lie deeper than the format reads.
        """
        if not self.json.exact:
            return []
        out = [self.sql("list_holds_nested", path) for path in self.json.value_lists]
        for path, value, is_list in self.json.shallow_objects:
            at = self.sql("at_path", "document", path)
            objects = at if is_list else self.sql("called", "map_values", [at])
            out.append(self.sql("objects_hold_nested", objects, quoted(value)))
        for text_path, kind in self.json.shallow:
            form = {TEXT: "is_nested", MAP: "map_holds_nested"}.get(kind, "maps_hold_nested")
            out.append(self.sql(form, self.sql("at_path", "document", text_path)))
        return [self.sql("is_not", self.sql("any_of", ["false", *(self.sql("or_false", test) for test in out)]))]

    def _struct(self, tree: Tree, above: tuple[str, ...], indent: int) -> str:
        """Prints the document, or an object of it, built from the fields that were found."""
        parts = []
        for part, branch in tree.items():
            path = (*above, part)
            if isinstance(branch, dict):
                value = self._struct(branch, path, indent + 2)
                if self._is_root(path):
                    value = self.sql("if_found", quoted(_texts(path)), value)
            else:
                value = self._field(path, branch)
            parts.append((sql_text(part), value))
        if not above:
            parts += [(sql_text(part), "null") for part in ADDED]
        return self.sql("struct_in_parts", parts, indent)

    def _is_root(self, path: tuple[str, ...]) -> bool:
        """Returns True if paths start at the object at this path, if that object is there."""
        return path in self.json.texts and any(tuple(root) == path for root, _ in self.placing.roots)

    def _field(self, path: tuple[str, ...], kind: str) -> str:
        """Prints a field without the marks that reading put on it."""
        value = self.sql("member_of", "found", quoted("_".join(path)))
        if kind == TEXT:
            texts = self.sql("member_of", "found", quoted(_texts(path[:-1])))
            return self.sql("unmarked", self.sql("member_of", texts, quoted(path[-1])))
        if kind == MAPS:
            return self.sql("rows_unmarked", value)
        if kind == MAP:
            return self.sql("members_unmarked", value)
        if kind == TEXTS:
            is_values = path in map(tuple, self.json.value_lists)
            return self.sql("values_unmarked" if is_values else "texts_unmarked", value)
        return self.sql("objects_unmarked", value, kind)

    # --- bytes in the text of a message

    def images_again(self) -> Iterable[str]:
        """Prints the images in the text of a message, as they are written."""
        paths = [path for image in self.json.images for path in image.paths]
        form = "texts_again" if self.images.in_lists else "text_again"
        return [self.sql(form, path) for path in paths]


def _texts(path: Iterable[str]) -> str:
    """Returns the name of the member that holds the texts found in the object at a path."""
    return "_".join(["texts", *path])
