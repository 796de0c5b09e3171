"""Row changes and their images: where they are in a message, grouped as the macros print them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from runner.compile.paths import image_paths, row_images, texts_of
from runner.spec.vocabulary import KEY_ROW
from runner.spec.words import FieldPath, Format, Image, Line

Item = TypeVar("Item", bound=Hashable)

# Language of an image -> the functions that read it: one for documents, one for patches.
TEXT_FUNCTIONS = {
    "mongo_shell": ("shell_document", "shell_patch"),
    "extended_json": ("extended_document", "extended_document"),
}


@dataclass(frozen=True)
class TextImage:
    """An image that is a text in a language of its own, at `path`. `function` reads the text into `column` for messages
    with `verdicts`. The text may be missing where `removed` lists columns. With `value_of`, the text is only the value
    of that column.
    """

    path: FieldPath
    function: str
    column: str
    verdicts: tuple[str, ...]
    removed: FieldPath | None
    value_of: str | None


@dataclass(frozen=True)
class NamedImage:
    """An image at `path` of a message that becomes the map `column`. `form` is `lists` (of values, in step with the
    list at `names`), `objects` (a list; `name` and `value` are their members), `members` (an object of objects with
    `value`), `prefixed` (the members whose names begin with `prefix`) or `others` (the other members, or if there is no
    prefix, all). In Avro it is `lists` or `others`.
    """

    path: FieldPath
    column: str
    form: str
    image: Image
    prefix: str | None


@dataclass(frozen=True)
class RowImage:
    """The places of an image: the first of `paths` that holds a row counts. `columns` are the maps of these images, if
    the images are not maps in the message. For a text, `text_column` holds the result of its function.
    """

    paths: tuple[FieldPath, ...]
    columns: tuple[str, ...]
    text_column: str | None


@dataclass(frozen=True)
class Side:
    """The images on one side of row changes, before or after. `images` and `texts` map verdicts to all images, and to
    the columns of those that are texts. `own` are the verdicts for which this is the side of the own image. `laid_over`
    are those whose image here is laid over the image of the other side. `incomplete` maps a completeness to the
    verdicts whose images may lack columns. `key_only` are the verdicts of which only the columns of the key count.
    `without_nulls` are those whose image lacks the columns that are null.
    """

    name: str
    images: Mapping[str, RowImage]
    texts: Mapping[str, str]
    own: tuple[str, ...]
    laid_over: tuple[str, ...]
    incomplete: Mapping[str, tuple[str, ...]]
    key_only: tuple[str, ...]
    without_nulls: tuple[str, ...]

    @property
    def by_image(self) -> list[tuple[RowImage, list[str]]]:
        """Each image with the verdicts that have it."""
        return grouped((image, verdict) for verdict, image in self.images.items())

    @property
    def by_text(self) -> list[tuple[str, list[str]]]:
        """The column of each text with the verdicts that have it."""
        return grouped((column, verdict) for verdict, column in self.texts.items())


@dataclass(frozen=True)
class Images:
    """The images of a format. `own` maps each verdict of a row change to the image that makes a message this change,
    `before_updates` those of changes with two images to the image before. `in_json` maps a verdict to the paths of each
    of its images that is JSON of the message; `named` are those of them that become maps. Functions read `texts`,
    `sent` and `listed`: `sent` are images in records, of which `positional` are lists of values without names; `listed`
    are lists of rows in Avro, whose values `may_be_ambiguous` if they may be wall clocks with a zone. An image that
    `may_lack_columns` says which; `name_columns` is True if a message names columns that it did not send. `patches` are
    the verdicts whose image after the change is a patch, `removed` maps a verdict to its patch, if that is a text.
    `others` are the images that inserted and deleted rows do not have, each with the verdicts that may have it.
    """

    in_lists: bool
    own: Mapping[str, RowImage]
    before_updates: Mapping[str, RowImage]
    in_json: Mapping[str, tuple[tuple[FieldPath, ...], ...]]
    named: tuple[NamedImage, ...]
    texts: tuple[TextImage, ...]
    sent: tuple[NamedImage, ...]
    positional: tuple[NamedImage, ...]
    listed: tuple[FieldPath, ...]
    may_lack_columns: bool
    name_columns: bool
    may_be_ambiguous: bool
    patches: tuple[str, ...]
    removed: Mapping[str, Image]
    others: tuple[tuple[RowImage, list[str]], ...]
    before: Side
    after: Side

    @property
    def tell_unfit(self) -> bool:
        """True if the functions that read the images also tell which values do not fit their types."""
        return bool(self.marked or self.texts)

    @property
    def marked(self) -> bool:
        """True if images mark columns that were not sent, are as sent, or are not texts: images in Avro do."""
        return bool(self.sent or self.listed)

    @property
    def own_paths(self) -> list[tuple[tuple[FieldPath, ...], list[str]]]:
        """The paths of the own images, each with the verdicts that have them there."""
        return grouped((image.paths, verdict) for verdict, image in self.own.items())

    @property
    def first_paths(self) -> list[tuple[FieldPath, list[str]]]:
        """The first path of the own images, with the verdicts that have it."""
        return grouped((image.paths[0], verdict) for verdict, image in self.own.items())

    @property
    def json_paths(self) -> list[tuple[tuple[tuple[FieldPath, ...], ...], list[str]]]:
        """The paths of all images of a change that are JSON, each with the verdicts that have them there."""
        return grouped((paths, verdict) for verdict, paths in self.in_json.items())


def make_images(spec: Format) -> Images:
    """Returns the images of all row changes of a format."""
    lines = {line.verdict: line for line in spec.op.lines() if line.kind == "row"}
    is_avro = spec.message.encoding == "avro"
    named = () if is_avro else tuple(dict.fromkeys(_named_images(spec)))
    find = partial(row_image, is_avro=is_avro, in_lists=bool(spec.each), named=named)
    before, after = (_side(name, lines, find) for name in ("before", "after"))
    own = {verdict: find(image) for verdict, line in lines.items() if (image := line.own)}
    before_updates = {verdict: find(line.before) for verdict, line in lines.items() if line.before and line.after}
    sent = tuple(dict.fromkeys(_sent_images(spec))) if is_avro and not spec.each else ()
    patches = after.incomplete.get("patch", ())
    may_lack_columns = is_avro and any(entry["not_sent"] for entry in spec.records.values())
    return Images(
        in_lists=bool(spec.each),
        own=own,
        before_updates=before_updates,
        in_json={} if is_avro else _in_json(own, before_updates),
        named=named,
        texts=tuple(_text_images(lines, spec)),
        sent=sent,
        positional=tuple(image for image in sent if image.form == "lists"),
        listed=tuple(image_paths(spec)) if is_avro and spec.each else (),
        may_lack_columns=may_lack_columns,
        name_columns=may_lack_columns or "" in spec.not_sent,
        may_be_ambiguous=is_avro and any({"zone", "year"} <= entry["parts"].keys() for entry in spec.records.values()),
        patches=patches,
        removed={verdict: image for verdict in after.texts if verdict in patches and (image := lines[verdict].after)},
        others=tuple(_other_images(tuple(lines.values()), find)),
        before=before,
        after=after,
    )


def row_image(image: Image, is_avro: bool, in_lists: bool = False, named: tuple[NamedImage, ...] = ()) -> RowImage:
    """Returns the places of an image, with the columns that compiled SQL reads the image from. Lists of rows in Avro
    have their texts in a member.
    """
    column = text_column(image) if image.text else None
    if is_avro and in_lists:
        return RowImage(tuple(path.child("texts") for path in image.at), (), column)
    columns = tuple(_map_column(path) for path in image.at) if is_avro else ()
    if named and not column:
        of_path = {one.path: one.column for one in named if (one.form == "prefixed") == bool(image.prefix)}
        columns = tuple(of_path[path] for path in image.at)
    return RowImage(image.at, columns, column)


def _named_images(spec: Format) -> Iterator[NamedImage]:
    """Returns the images in JSON, if some of them are not maps. Where an image takes the members with a prefix, other
    images at the same place have the rest.
    """
    images = row_images(spec)
    if not any(image.names or image.value or image.prefix for image in images):
        return
    prefixes = {path: image.prefix for image in images if image.prefix for path in image.at}
    for image in images:
        for path in image.at:
            column = _map_column(path)
            if image.names:
                yield NamedImage(path, column, "lists", _bare(image), None)
            elif image.name:
                yield NamedImage(path, column, "objects", _bare(image), None)
            elif image.value:
                yield NamedImage(path, column, "members", _bare(image), None)
            elif image.prefix:
                yield NamedImage(path, f"{column} {image.prefix}", "prefixed", _bare(image), image.prefix)
            else:
                yield NamedImage(path, column, "others", _bare(image), prefixes.get(path))


def _bare(image: Image) -> Image:
    """Returns how an image is written, without its place and its purpose."""
    return Image((), names=image.names, name=image.name, value=image.value)


def _has_both(line: Line) -> bool:
    """Returns True if a change has an image on each side."""
    return bool(line.before and line.after)


def _side(name: str, lines: Mapping[str, Line], find: Callable[[Image], RowImage]) -> Side:
    given = {verdict: line.before if name == "before" else line.after for verdict, line in lines.items()}
    images = {verdict: image for verdict, image in given.items() if image}
    places = {verdict: find(image) for verdict, image in images.items()}
    claims = {verdict: _claim(lines[verdict], image) for verdict, image in images.items()}
    incomplete = {
        word: verdicts
        for word in ("key", "patch", "partial")
        if (verdicts := tuple(verdict for verdict, claim in claims.items() if claim == word))
    }
    return Side(
        name,
        places,
        {verdict: place.text_column for verdict, place in places.items() if place.text_column},
        tuple(verdict for verdict, line in lines.items() if line.own_side == name),
        tuple(verdict for verdict, image in images.items() if image.over and _has_both(lines[verdict])),
        incomplete,
        tuple(verdict for verdict in incomplete.get("key", ()) if not images[verdict].text),
        tuple(verdict for verdict, image in images.items() if image.completeness == "without_nulls"),
    )


def _claim(line: Line, image: Image) -> str:
    """Returns the completeness that an image of a change can have at most: an image that is laid over another one lacks
    columns where that other image is missing.
    """
    return "partial" if image.over and not _has_both(line) and image.completeness == "full" else image.completeness


def _other_images(lines: Sequence[Line], find: Callable[[Image], RowImage]) -> list[tuple[RowImage, list[str]]]:
    # The key of a record stands beside every message. A line whose own image is the key has no other image.
    lines = [line for line in lines if not (line.own and KEY_ROW in line.own.at)]
    images = [image for line in lines for image in (line.before, line.after) if image and not image.text]
    places = {path: find(replace(image, at=(path,))) for image in images for path in image.at}
    own = {line.verdict: line.own for line in lines if line.op != "update" and line.own and not line.own.text}
    found = [(place, verdict) for verdict, one in own.items() for path, place in places.items() if path != one.at[0]]
    return grouped(found)


def _in_json(
    own: Mapping[str, RowImage], before_updates: Mapping[str, RowImage]
) -> dict[str, tuple[tuple[FieldPath, ...], ...]]:
    """Returns the paths of the own image of each change and of the image before it, if the own one is JSON."""
    images = {
        verdict: (image, before_updates.get(verdict))
        for verdict, image in own.items()
        if not image.text_column and KEY_ROW not in image.paths
    }
    return {
        verdict: tuple(image.paths for image in both if image and not image.text_column)
        for verdict, both in images.items()
    }


def _text_images(lines: Mapping[str, Line], spec: Format) -> Iterator[TextImage]:
    """Returns the texts to read as images or keys, with the functions that read them."""
    values = {key.image: key.columns[0] for key in spec.key if key.is_value}
    verdicts: dict[TextImage, list[str]] = {}
    for line in lines.values():
        for image in texts_of(line, spec):
            value_of = values.get(image) or image.name
            text = TextImage(image.at[0], _text_function(image), text_column(image), (), image.removed, value_of)
            verdicts.setdefault(text, []).append(line.verdict)
    for text, found in verdicts.items():
        yield replace(text, verdicts=tuple(dict.fromkeys(found)))


def _text_function(image: Image) -> str:
    document, patch = TEXT_FUNCTIONS[image.text or ""]
    return patch if image.completeness == "patch" else document


def text_column(image: Image) -> str:
    """Returns the column for the result of an image's function: each way to read the text at a path has its own."""
    ways = [*([image.name] if image.name else []), *(["patch"] if image.removed else [])]
    return "_".join([_text_function(image), *image.at[0], *ways])


def _sent_images(spec: Format) -> Iterator[NamedImage]:
    """Returns the images of records in Avro."""
    for image in row_images(spec):
        form, written = "lists" if image.names else "others", Image((), names=image.names)
        yield from (NamedImage(path, _map_column(path), form, written, None) for path in image.at)


def _map_column(path: FieldPath) -> str:
    return "_".join(["image", *path])


def grouped(pairs: Iterable[tuple[Item, str]]) -> list[tuple[Item, list[str]]]:
    """Returns equal items together, each with its texts.

    >>> grouped([("a", "1"), ("b", "2"), ("a", "3")])
    [('a', ['1', '3']), ('b', ['2'])]
    """
    groups: dict[Item, list[str]] = {}
    for item, text in pairs:
        groups.setdefault(item, []).append(text)
    return list(groups.items())
