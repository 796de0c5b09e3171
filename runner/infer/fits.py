"""The fit of known formats to messages, as far as their structure says: a score, and its reasons."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from operator import attrgetter
from typing import Any

from runner.compile.paths import conditions, header_paths, image_paths
from runner.functions.avro.files import TopicRecord
from runner.infer.understanding import ABSENT, BESIDE, Document, Reading, parts, text_of, value_at
from runner.spec.vocabulary import OTHERS, WHOLE, bare_type
from runner.spec.words import FieldPath, Format, Line, Value, fields_of

# Reader -> the shape of the texts that it reads. Readers without a known shape are left out.
SHAPES = {
    "number": re.compile(r"[-+]?[\d.]+([eE][-+]?\d+)?"),
    "local": re.compile(r"[-+\d:. ]+"),
    "zoned": re.compile(r"[-+\d:.T ]+( ?[A-Za-z/_]+|[-+]\d\d(:?\d\d)?|Z)"),
    "epoch_s": re.compile(r"-?\d+(\.\d*)?"),
    "epoch_ms": re.compile(r"-?\d+"),
    "epoch_ms_nanos": re.compile(r"-?\d+\.\d+"),
    "iso_t": re.compile(r"[-\d]*T?[-+\d:.]*[A-Za-z/_+: \d]*"),
    "base64": re.compile(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"),
    "hex": re.compile(r"(\\x)?([0-9A-Fa-f]{2})*"),
    "java_bytes": re.compile(r"\[[-\d, ]*\]"),
    "ordinal": re.compile(r"\d+"),
    "mask": re.compile(r"\d+"),
}
# The weights of the parts of a score; the share of messages that are understood is a factor of the whole.
UNDERSTOOD, FOUND, READ, VALUES, COMPLETE = 0.35, 0.25, 0.2, 0.1, 0.1
# The least share of messages understood, and of words found, with which a format fits.
LEAST_UNDERSTOOD, LEAST_FOUND = 0.25, 0.5
# Scores that differ by this or less count as equal.
TIE = 2.0
# The value of a part of which the messages show nothing: less than a part that is there and right.
UNSEEN = 0.75


@dataclass(frozen=True)
class Share:
    """A share of a whole: `count` of `total`."""

    count: int
    total: int

    @property
    def ratio(self) -> float:
        return self.count / self.total if self.total else UNSEEN

    def __str__(self) -> str:
        return f"{self.count} of {self.total}"


@dataclass(frozen=True)
class Fit:
    """The fit of a format to messages. `understood` are messages with a known op, and rows where the op needs some.
    `ops` counts the messages by op. `unknown` counts texts that name no known operation, `without_op` and
    `without_rows` messages. `found` are words of the spec that lead to a field; `missing` are the others. `read` are
    fields beside the rows that the spec reads; `unread` are the others. `values` are values that look like what their
    readers read. `whole` are updates whose image before the change has the columns that the spec says. `named` counts
    messages whose op came from a text that the spec lists; `meant` are those that the spec is for, if it says for
    which. `is_flat` is True if the rows are the messages themselves, which may lack most of the words.
    `tells_only_rows` is True if the spec takes each message for a row and no message says what happened to it.
    """

    name: str
    messages: int
    named: int = 0
    understood: Share = Share(0, 0)
    ops: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    without_op: int = 0
    without_rows: int = 0
    found: Share = Share(0, 1)
    missing: tuple[str, ...] = ()
    read: Share = Share(0, 1)
    unread: tuple[str, ...] = ()
    values: Share = Share(0, 0)
    whole: Share = Share(0, 0)
    meant: Share = Share(0, 0)
    is_flat: bool = False
    tells_only_rows: bool = False

    @property
    def score(self) -> float:
        """The score of the fit, from 0 to 100."""
        parts = (
            FOUND * self.found.ratio + READ * self.read.ratio + VALUES * self.values.ratio + COMPLETE * self.whole.ratio
        )
        return 100 * self.understood.ratio * (UNDERSTOOD + parts) if self.understood.total else 0.0

    @property
    def rank(self) -> tuple[float, str]:
        """The place among other fits: the best comes first."""
        return -self.score, self.name

    @property
    def fits(self) -> bool:
        has_words = self.is_flat or self.found.ratio >= LEAST_FOUND
        enough = self.understood.ratio >= LEAST_UNDERSTOOD and has_words
        takes_for_columns = self.is_flat and bool(self.unread)
        is_meant = not self.meant.total or self.meant.count > 0
        return bool(self.named) and enough and not takes_for_columns and is_meant

    def reasons(self) -> Iterator[str]:
        """Returns the reasons for and against the format, in words."""
        ops = ", ".join(f"{count} {op}" for op, count in self.ops.most_common())
        yield f"{self.understood} messages are understood" + (f": {ops}" if ops else "")
        if self.unknown:
            yield f"unknown operations: {', '.join(text for text, _ in self.unknown.most_common(5))}"
        if self.without_op:
            yield f"{self.without_op} without an operation"
        if self.without_rows:
            yield f"{self.without_rows} row changes without a row"
        yield f"{self.found} words of the format are found" + _but(self.missing)
        yield f"{self.read} fields beside the rows are read" + _but(self.unread)
        if self.values.total:
            yield f"{self.values} values look as the format reads them"
        if self.whole.total and self.whole.count < self.whole.total:
            yield f"only {self.whole} images before an update have the columns that the format says"


def _but(names: Sequence[str]) -> str:
    """Returns the names after "not", in words; an empty text if there are none.

    >>> _but(("a", "b")), _but(())
    (', not a, b', '')
    """
    more = ", ..." if len(names) > 5 else ""
    return f", not {', '.join(names[:5])}{more}" if names else ""


def best(fits: Iterable[Fit]) -> list[Fit]:
    """Returns the formats that fit, of those that are not worse than the best by more than a tie; the best first.
    Formats that are meant for most of the messages go before all others.
    """
    fitting = [one for one in fits if one.fits]
    meant = [one for one in fitting if one.meant.total and one.meant.ratio > 0.5]
    good = sorted(meant or fitting, key=attrgetter("rank"))
    return [one for one in good if good[0].score - one.score <= TIE]


def fit_of(
    spec: Format,
    documents: Sequence[Document],
    records: Sequence[TopicRecord | None] = (),
    beside: frozenset[str] = frozenset(),
) -> Fit:
    """Returns how well a format fits documents, one for each message, which came in `records`, if these are known.
    `beside` are the fields that some format drops from rows that are messages themselves: there they are not columns.
    """
    sent = zip_longest(documents, records)
    readings = [Reading(spec, part, record) for document, record in sent for part in parts(spec, document)]
    told = [(reading, *reading.understood()) for reading in readings]
    named = sum(by_text for _, _, by_text in told)
    if not named:
        only_rows = bool(told) and all(_is_only_a_row(line) for _, line, _ in told)
        return Fit(spec.name, len(readings), without_op=len(readings), tells_only_rows=only_rows)
    with_line = [(reading, line) for reading, line, _ in told if line]
    not_known = [reading.operation for reading, line, _ in told if line is None]
    has_rows = [line.kind != "row" or bool(reading.rows(line.own)) for reading, line in with_line]
    good = [pair for pair, has in zip(with_line, has_rows) if has and pair[1].kind != "dead_letter"]
    missing, words = _missing_words(spec, [reading for reading, _ in good])
    unread, fields = _unread_fields(spec, [reading.root for reading in readings], beside)
    return Fit(
        spec.name,
        len(readings),
        named,
        Share(len(good), len(readings)),
        Counter(line.op or line.kind for _, line in good),
        Counter(text for text in not_known if text is not None),
        not_known.count(None),
        has_rows.count(False),
        Share(words - len(missing), words),
        missing,
        Share(fields - unread.total(), fields),
        tuple(".".join(path) for path, _ in unread.most_common()),
        _values_read(spec, good),
        _whole_images(good),
        Share(sum(reading.is_meant for reading in readings), len(readings) if spec.meant else 0),
        (WHOLE,) in image_paths(spec),
    )


def _is_only_a_row(line: Line | None) -> bool:
    """Returns True if a message is taken for a row though nothing says what happened to the row."""
    return line is not None and line.kind == "row" and bool(line.conditions)


# --- words of the spec that lead somewhere


def _missing_words(spec: Format, readings: Sequence[Reading]) -> tuple[tuple[str, ...], int]:
    """Returns the words of a spec that lead to no field in any document, and how many words could lead to a field."""
    words = {word: paths for word, paths in _words(spec) if any(path[:1] and path[0] not in BESIDE for path in paths)}
    missing = [
        word
        for word, paths in words.items()
        if all(reading.at(path) is ABSENT for path in paths for reading in readings)
    ]
    return tuple(missing), len(words)


def _words(spec: Format) -> Iterator[tuple[str, list[FieldPath]]]:
    """Returns each word of a spec with the paths that it may be read from. `meta` is left out: most of it is rare."""
    row_lines = [line for line in spec.op.lines() if line.kind == "row"]
    yield "op", _paths_of(spec.op.by)
    for side in ("before", "after"):
        images = [image for line in row_lines for image in (getattr(line, side),) if image]
        if images:
            yield side, [path for image in images for path in image.at]
    for name, value in spec.columns.items():
        yield name, _paths_of(value)
    for number, value in enumerate(spec.seq):
        yield f"seq[{number}]", _paths_of(value)
    keys = [path.parent if key.text else path for key in spec.key for path in key.names]
    keys += [key.members for key in spec.key if key.members]
    if keys:
        yield "key", keys
    if spec.types and spec.types.at:
        yield "types", list(spec.types.at)


def _paths_of(value: Value) -> list[FieldPath]:
    return [one.path for one in fields_of(value)]


# --- fields of the messages that the spec reads


def _unread_fields(
    spec: Format, documents: Sequence[Document], beside: Container[str]
) -> tuple[Counter[tuple[str, ...]], int]:
    """Returns the fields of documents beside their rows that a spec does not read, and the number of all such fields. A
    field counts in each document.
    """
    keys = [path for key in spec.key for path in (*key.names, *key.values, key.indexes, key.members) if path]
    types = spec.types.at if spec.types else ()
    if (WHOLE,) in image_paths(spec):
        return _columns_beside(spec, documents, beside)
    known = {
        tuple(path)
        for path in (*header_paths(spec), *image_paths(spec), *keys, *types, *(one.path for one in conditions(spec)))
    }
    above = {path[:length] for path in known for length in range(len(path))}
    read: Counter[tuple[str, ...]] = Counter()
    unread: Counter[tuple[str, ...]] = Counter()
    for document in documents:
        for path, is_read in _fields(document, (), known, above):
            (read if is_read else unread)[path] += 1
    return unread, read.total() + unread.total()


def _columns_beside(
    spec: Format, documents: Sequence[Document], beside: Container[str]
) -> tuple[Counter[tuple[str, ...]], int]:
    """Returns the fields of flat rows that another format drops and this format takes for columns, and the number of
    all fields that some format drops; the number is 0 if this format takes none of them.
    """
    dropped = {name for name, _ in spec.drop}
    names = [name for one in documents if isinstance(one, dict) for name in one if name in beside]
    unread: Counter[tuple[str, ...]] = Counter((name,) for name in names if name not in dropped)
    return unread, len(names) if unread else 0


def _fields(
    inside: Any, path: tuple[str, ...], known: Container[Any], above: Container[Any]
) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Returns the fields of a document, each with True if a spec reads it. Objects are searched where the spec reads a
    part of them.
    """
    inside = next((one for one in inside if isinstance(one, dict)), None) if isinstance(inside, list) else inside
    for name, value in inside.items() if isinstance(inside, dict) else ():
        here = (*path, name)
        if here in above and here not in known and isinstance(value, dict | list):
            yield from _fields(value, here, known, above)
        else:
            yield here, here in known or here in above or (*path, OTHERS) in known


# --- values, and images


def _values_read(spec: Format, good: Sequence[tuple[Reading, Line]]) -> Share:
    """Returns how many values of columns with a known type look like what their readers read."""
    types = spec.types
    if not types or not types.at or spec.message.encoding != "json":
        return Share(0, 0)
    count = total = 0
    classes = {name: class_name for table in types.all_tables() for name, class_name in table.classes.items()}
    of_types = {name: words for table in types.all_tables() for name, words in table.readers.items()}
    for reading, line in good:
        named = _types_of(reading)
        for row in reading.rows(line.own) if named else ():
            for column, value in row.items():
                if column in named and (text := text_of(value)) is not None:
                    bare = bare_type(named[column])
                    readers = of_types.get(bare) or spec.readers.get(classes.get(bare, ""), ())
                    is_known = bare in classes
                    total += 1
                    count += is_known and _is_read(text, readers)
    return Share(count, total)


def _types_of(reading: Reading) -> dict[str, str]:
    """Returns the types of columns, by column, as a message names them."""
    types = reading.spec.types
    if types is None:
        return {}
    found = next((one for path in types.at if (one := reading.at(path))), None)
    if isinstance(found, dict):
        named = {name: value_at(one, types.value) if isinstance(one, dict) else one for name, one in found.items()}
    elif isinstance(found, list) and types.name:
        named = {
            one[types.name]: value_at(one, types.value) for one in found if isinstance(one, dict) and types.name in one
        }
    else:
        named = {}
    return {name: one for name, one in named.items() if isinstance(one, str)}


def _is_read(text: str, readers: Sequence[str]) -> bool:
    shapes = [SHAPES.get(reader) for reader in readers]
    return not all(shapes) or not shapes or any(shape.fullmatch(text) for shape in shapes if shape)


def _whole_images(good: Sequence[tuple[Reading, Line]]) -> Share:
    """Returns how many images before an update have the columns that the spec says: all columns of the image after it,
    or those of the key.
    """
    count = total = 0
    for reading, line in good:
        before, after = line.before, line.after
        if line.op != "update" or not before or not after or before.over or before.text or before.names or before.name:
            continue
        for old, new in zip(reading.rows(before), reading.rows(after)):
            total += 1
            count += _has_columns(before.completeness, old, new)
    return Share(count, total)


def _has_columns(completeness: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Returns True if an image before a change is as complete as the spec says. An image with nulls in place of most
    values tells nothing.

    >>> _has_columns("full", {"id": 1, "v": None, "w": None}, {"id": 1, "v": 2, "w": 3})
    False
    >>> _has_columns("key", {"id": 1, "v": None, "w": None}, {"id": 1, "v": 2, "w": 3})
    True
    """
    told, given = (sum(value is not None for value in row.values()) for row in (old, new))
    if completeness == "key":
        return told < max(2, given)
    return completeness != "full" or (new.keys() <= old.keys() and 2 * told >= given)
