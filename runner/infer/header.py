"""The fields beside the rows: names, key, types, times, order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import Any

from runner.infer.fields import Fields, Parts, is_below, listed
from runner.infer.images import ALWAYS, Images
from runner.spec.vocabulary import RECORD_TOPIC, bare_type
from runner.spec.words import TypeTable

NAME = re.compile(r'["`\[]?[^\W\d][\w$# -]*["`\]]?(\.["`\[]?[^\W\d][\w$# -]*["`\]]?){0,3}')
HINTS = {
    "table_name": re.compile(
        r"^(tbl|tab|table|tablename|tbname|coll|collection|entity|relation|rel|object|objectname)$"
    ),
    "db_name": re.compile(r"^(db|dbname|database|databasename|catalog|db_name)$"),
    "schema_name": re.compile(r"^(schema|schemaname|owner|namespace|keyspace)$"),
    "key": re.compile(
        r"^(pk|pks|pkname|pknames|key|keys|id|primarykey|primarykeys|keycolumns|keynames|unique|rowkey)$"
    ),
    "tx_id": re.compile(r"^(tx|txid|xid|txn|txnid|trx|trxid|trans|transid|transaction|transactionid)$"),
}
# The least part of changes that must name a key: some tables may have no key.
MOST_CHANGES = 0.5
# Names of fields that hold other names than those of databases.
OTHER_NAMES = re.compile(
    r"type|version|server|connector|host|user|source|system|cluster|thread|phase|status|kind|key|pk", re.IGNORECASE
)
SEPARATORS = (",", ";", "|", "\u0001", " ")
# Texts that mean that there is no order number.
NO_ORDER = ("-1", "")
STATEMENT = re.compile(
    r"\s*(create|alter|drop|truncate|rename)\s+(table|index|view|database|schema|unique|or)\b", re.IGNORECASE
)


@dataclass(frozen=True)
class Found:
    """A field that was found, and the reasons for it. Of a key, `split` is the text between names in one text, and
    `is_object` is True if the key is an object, column -> value.
    """

    path: Parts
    why: str
    split: str | None = None
    is_object: bool = False


class Header:
    """The fields beside the images of documents. `paths` are the paths of these fields, `changes` the numbers of the
    documents with a row.
    """

    def __init__(self, fields: Fields, images: Images) -> None:
        self.fields, self.images = fields, images
        rows = [place.path for place in (*images.places, *images.others)]
        paths = (path for path in fields.scalars() if not is_below(path, rows))
        self.paths = [path for path in paths if path != images.operation.path]
        self.changes = sorted({number for place in images.places for number in place.rows})

    def on_changes(self, path: Parts) -> dict[int, str]:
        """Returns the texts at a path in documents with a row; nothing if too many of these documents lack a text."""
        texts = self.fields.texts(path)
        found = {number: texts[number] for number in self.changes if number in texts}
        return found if found and len(found) >= ALWAYS * len(self.changes) else {}


def hinted(path: Parts, column: str) -> bool:
    """Returns True if the name of a field says which column it is."""
    return bool(HINTS[column].match(re.sub(r"[^a-z]", "", path[-1].lower())))


# --- names


def find_table(header: Header) -> Found | None:
    """Returns the field that names the table."""
    score, found = max(_tables(header), key=itemgetter(0), default=(0.0, None))
    return found if score >= 1 else None


def _tables(header: Header) -> Iterator[tuple[float, Found]]:
    columns = {number: frozenset(header.images.row(number)) for number in header.changes}
    kinds = len(set(columns.values()))
    for path in header.paths:
        texts = header.on_changes(path)
        if not texts or not all(map(_is_name, texts.values())):
            continue
        distinct = set(texts.values())
        if len(distinct) > max(1, len(texts) / 2):
            continue
        score, why = 0.0, [f"few names: {listed(texts.values())}"]
        if len(distinct) > 1 and kinds > 1 and _determines(texts, columns):
            score, why = score + 2, [*why, "each goes with columns of its own"]
        elif len(distinct) == 1 and kinds > 1:
            score -= 1
        if hinted(path, "table_name"):
            score, why = score + 2, [*why, "the name of the field"]
        if all("." in text for text in distinct):
            score, why = score + 1, [*why, "with dots"]
        if path == (RECORD_TOPIC,):
            score, why = score + 0.5, [*why, "the topic of the records"]
        if _is_in_statements(header, path):
            score, why = score + 1, [*why, "statements have the same name"]
        yield score - 0.01 * len(path), Found(path, "; ".join(why))


def _is_name(text: str) -> bool:
    return bool(NAME.fullmatch(text)) and text.lower() not in ("true", "false")


def _determines(texts: Mapping[int, str], columns: Mapping[int, frozenset[str]]) -> bool:
    """Returns True if each text goes with a set of columns that no other text has."""
    seen: dict[str, set[str]] = {}
    for number, text in texts.items():
        seen.setdefault(text, set()).update(columns[number])
    sets = list(seen.values())
    return all(one != other for at, one in enumerate(sets) for other in sets[at + 1 :])


def _is_in_statements(header: Header, path: Parts) -> bool:
    """Returns True if the last part of a name stands in the statement of each message that has a statement."""
    statements = {
        number: text
        for other in header.paths
        for number, text in header.fields.texts(other).items()
        if STATEMENT.match(text)
    }
    own = header.fields.texts(path)
    both = [number for number in statements if number in own]
    return bool(both) and all(
        re.search(rf"\b{re.escape(own[number].rpartition('.')[2])}\b", statements[number], re.IGNORECASE)
        for number in both
    )


def find_database(header: Header, table: Parts, column: str) -> Found | None:
    """Returns the field that names the database or the schema of the table. The field has such a name or, for the
    database, is the only field beside the table's that holds names, and each table has one of them.
    """
    candidates = []
    for path in header.paths:
        texts = header.on_changes(path)
        if path != table and texts and all(map(_is_name, texts.values())):
            if hinted(path, column):
                return Found(path, f"{listed(texts.values())}; the name of the field")
            other = any(hinted(path, one) for one in HINTS) or OTHER_NAMES.search(path[-1])
            distinct = set(texts.values())
            is_plain = not any("." in text for text in distinct) and len(distinct) <= max(1, len(texts) / 2)
            if path[:-1] == table[:-1] and not other and is_plain:
                candidates.append(Found(path, f"a guess: {listed(texts.values())}, beside the name of the table"))
    return candidates[0] if column == "db_name" and len(candidates) == 1 else None


# --- key


def find_key(header: Header, table: Found | None) -> Found | None:
    """Returns the field that names the key columns, or the object that holds them."""
    if named := list(_key_names(header, table)):
        return max(named, key=itemgetter(0))[1]
    for place in header.images.others:
        if place.columns < set().union(*(one.columns for one in header.images.places)) and _is_key(header, place.rows):
            return Found(place.path, "its members are some of the columns, with the same values", is_object=True)
    return None


def _is_key(header: Header, rows: Mapping[int, list[dict[str, Any]]]) -> bool:
    """Returns True if the values of an object are those of one of the images, in each document."""
    both = [number for number in header.changes if number in rows]
    return bool(both) and all(
        any(
            rows[number][0].items() <= row.items()
            for place in header.images.places
            for row in place.rows.get(number, ())
        )
        for number in both
    )


def _key_names(header: Header, table: Found | None) -> Iterator[tuple[float, Found]]:
    tables = header.fields.texts(table.path) if table else {}
    columns = {number: header.images.row(number).keys() for number in header.changes}
    for path, values in header.fields.values.items():
        found = {number: values[number] for number in header.changes if values.get(number)}
        for names, split, weight in _names_in(found):
            if not names or len(names) < MOST_CHANGES * len(header.changes):
                continue
            fits = all(set(names[number]) <= columns[number] for number in names)
            by_table: dict[str, set[tuple[str, ...]]] = {}
            for number, one in names.items():
                by_table.setdefault(tables.get(number, ""), set()).add(one)
            if fits and all(len(one) == 1 for one in by_table.values()):
                sent = listed(", ".join(one) for one in names.values())
                score = weight + 2 * hinted(path, "key") - 0.01 * len(path)
                yield score, Found(path, f"names of columns, for each table the same: {sent}", split)


def _names_in(found: Mapping[int, Any]) -> Iterator[tuple[dict[int, tuple[str, ...]], str | None, float]]:
    """Returns the names in lists or texts, with the text between them, and a weight for their being a key."""
    lists = {n: tuple(one) for n, one in found.items() if isinstance(one, list) and _are_texts(one)}
    texts = {number: one for number, one in found.items() if isinstance(one, str)}
    if lists and len(lists) == len(found):
        yield lists, None, 2.0
    if texts and len(texts) == len(found):
        yield {number: (one,) for number, one in texts.items()}, None, 0.0
        for separator in SEPARATORS:
            if any(separator in one for one in texts.values()):
                yield (
                    {n: tuple(part.strip() for part in one.split(separator)) for n, one in texts.items()},
                    separator,
                    1.0,
                )


def _are_texts(values: Iterable[Any]) -> bool:
    return all(isinstance(one, str) for one in values)


# --- types


@dataclass(frozen=True)
class TypesFound:
    """The place of the types of columns, and the table of types that knows most of them. `name` and `value` are the
    members of objects in a list. `named` are the types of columns, by document.
    """

    path: Parts
    table: str
    why: str
    named: Mapping[int, Mapping[str, str]]
    name: str | None = None
    value: str | None = None


def find_types(header: Header, tables: Mapping[str, TypeTable]) -> TypesFound | None:
    """Returns the field with the types of columns, if there is one."""
    known = {name: set(table.classes) for name, table in tables.items()}
    every = set().union(*known.values())
    columns = set().union(*(place.columns for place in header.images.places))
    for path, values in header.fields.values.items():
        if is_below(path, [place.path for place in header.images.places]):
            continue
        for name, value, named in _typed(values):
            types = [one for types in named.values() for one in types.values()]
            share = sum(bare_type(one) in every for one in types) / len(types) if types else 0.0
            if share >= 0.5 and any(types.keys() & columns for types in named.values()):
                counts = {table: sum(bare_type(one) in known[table] for one in types) for table in known}
                most = max(counts.values())
                best = sorted(table for table, count in counts.items() if count == most)
                also = f"; {', '.join(best[1:])} as many: take that of your database" if best[1:] else ""
                why = f"types of columns; {best[0]} knows {most} of {len(types)}{also}"
                return TypesFound(path, best[0], why, named, name, value)
    return None


def _typed(values: Mapping[int, Any]) -> Iterator[tuple[str | None, str | None, dict[int, dict[str, str]]]]:
    """Returns the maps column -> type in the values of a path, as they may be written."""
    maps = {number: one for number, one in values.items() if isinstance(one, dict) and one and _are_texts(one.values())}
    if maps:
        yield None, None, maps
    lists = {number: one for number, one in values.items() if isinstance(one, list) and one}
    members = [member for one in lists.values() for member in one if isinstance(member, dict)]
    shared = set.intersection(*(set(member) for member in members)) if members else set()
    texts = sorted(name for name in shared if all(isinstance(member[name], str) for member in members))
    for name in texts:
        for value in texts:
            if name != value:
                yield (
                    name,
                    value,
                    {n: {m[name]: m[value] for m in one if isinstance(m, dict)} for n, one in lists.items()},
                )


# --- order, transactions, statements


def find_statement(header: Header) -> Found | None:
    """Returns the field with the statements of DDL."""
    for path in header.paths:
        statements = [text for text in header.fields.texts(path).values() if STATEMENT.match(text)]
        if statements:
            return Found(path, f"statements: {listed(statements, 2)}")
    return None


def find_order(header: Header, but: Sequence[Parts]) -> Found | None:
    """Returns a field whose whole number grows from message to message."""
    for path in header.paths:
        texts = {number: text for number, text in header.fields.texts(path).items() if text not in NO_ORDER}
        if path in but or len(texts) < max(3, ALWAYS * len(header.fields.documents)):
            continue
        if all(re.fullmatch(r"\d{1,19}", text) for text in texts.values()):
            numbers = [int(texts[number]) for number in sorted(texts)]
            if all(one < other for one, other in pairwise(numbers)):
                return Found(path, f"a guess: a number that grew with each of {len(numbers)} messages")
    return None


def find_transaction(header: Header, but: Sequence[Parts]) -> Found | None:
    """Returns the field whose name says that it names the transaction."""
    for path in header.paths:
        texts = header.fields.texts(path)
        if path not in but and texts and hinted(path, "tx_id"):
            return Found(path, f"the name of the field; {len(set(texts.values()))} in {len(texts)} messages")
    return None
