"""The images of rows, made from the values that were read: texts, and the columns that are marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from runner.functions.avro.texts import NotSent
from runner.functions.avro.times import Ambiguous
from runner.functions.avro.values import AsSent, Settled, written_out

PLAIN_TYPES = frozenset({str, type(None)})


class Image(NamedTuple):
    """The texts of a row, column -> text, with the names of columns: those that were not sent, those whose values did
    not fit their class, those that are settled, and those whose wall clock came twice in its zone. An image may also be
    a list of texts, with positions in place of names; `missing` then has a flag for each text, and is empty if all were
    sent.
    """

    texts: Any
    missing: Sequence[Any] = ()
    as_sent: Sequence[Any] = ()
    settled: Sequence[Any] = ()
    ambiguous: Sequence[Any] = ()


def row_image(values: dict[str, Any]) -> Image:
    """Returns the image of a map, column -> value that was read."""
    if PLAIN_TYPES.issuperset(map(type, values.values())):
        return Image(values)
    image = _marked(list(values), list(values.values()))
    missing = set(image.missing)
    return image._replace(texts={name: text for name, text in zip(values, image.texts) if name not in missing})


def positional_image(values: list[Any]) -> Image:
    """Returns the image of a list of values that were read."""
    if PLAIN_TYPES.issuperset(map(type, values)):
        return Image(values)
    image = _marked(range(len(values)), values)
    return image._replace(missing=[value is NotSent for value in values] if image.missing else [])


def _marked(columns: Sequence[Any], values: list[Any]) -> Image:
    """Returns the image of these columns; the text of a column that was not sent is None."""
    values = written_out(values)

    def of(kind: type) -> list[Any]:
        return [column for column, value in zip(columns, values) if value is kind or value.__class__ is kind]

    missing, as_sent, settled, ambiguous = of(NotSent), of(AsSent), of(Settled), of(Ambiguous)
    texts = [None if value is NotSent else value for value in values]
    return Image(texts, missing, as_sent, settled + as_sent + ambiguous, ambiguous)


def row_images(rows: list[Image | None]) -> Image:
    """Returns one image whose members are lists with an entry for each row."""
    return Image(*([row and row[member] for row in rows] for member in range(len(Image._fields))))
