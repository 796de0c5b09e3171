"""What each Canal message must become: an oracle for the compiled SQL, in plain Python, standard library only.

`rows(message, zone)` gives the changelog rows of one message with the contract's columns that do not depend on a run.
"""

import base64
import json
import re
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

JSON_BLANKS = " \t\r\n"
LAST_MILLISECOND = 253402300799999  # of the year 9999
LARGEST_EXPONENT = 10_000
UNKNOWN_TIMES = {"es": {0}, "ts": {0}}
HIDDEN_ROW_IDS = ("__#alibaba_rds_row_id#__", "#alibaba_rds_row_id#")

ROWS = {"INSERT": "insert", "UPDATE": "update", "DELETE": "delete", "INIT": "snapshot", "ROW": "snapshot"}
DDL = {"CREATE": "create", "ALTER": "alter", "ERASE": "drop", "TRUNCATE": "truncate", "RENAME": "rename"}
CONTROL = {"XACOMMIT": "commit", "XAROLLBACK": "rollback", "MHEARTBEAT": "heartbeat", "GTID": "other"}
KINDS = {"row": ROWS, "ddl": DDL | {"CINDEX": "index", "DINDEX": "index"}, "control": CONTROL}
OPS = {type_text: (kind, op) for kind, ops in KINDS.items() for type_text, op in ops.items()}

NOT_GIVEN = (
    *("key", "old_key", "key_text", "before", "after", "before_image", "after_image", "changed", "types"),
    *("tx_id", "pair_id", "statement", "reason", "raw", "tenant", "schema_name"),
)

COMMENTS = re.compile(r"/\*.*?\*/|--[^\n]*|#[^\n]*", re.DOTALL)
INDEX_STATEMENT = re.compile(r"(create|drop)\s+((or|replace|online|offline|unique|fulltext|spatial)\s+)*index\b", re.I)
NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE]([+-]?[0-9]+))?")
WALL_CLOCK = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]+)?")
TIME_OF_DAY = re.compile(r"(-?[0-9]+:[0-9]{2}:[0-9]{2})(\.[0-9]+)?")  # hours may pass 24
LABEL_LIST = re.compile(r"\s*(enum|set)\s*\((\s*'([^']|'')*'\s*(,\s*'([^']|'')*'\s*)*)\)\s*", re.I)


class Number(str):
    """A bare JSON number, as the digits that were sent."""


class DeadLetter(Exception):
    """Raised where a message cannot be understood; its text is the reason."""


def rows(message: bytes, zone: str | None = None) -> list[dict]:
    """The changelog rows of one message; one dead letter if it cannot be understood as a whole."""
    header = {}
    try:
        header = read_object(message)
        kind, op = kind_and_op(header)
        if kind == "row":
            return [change(header, op, zone, row, *element) for row, element in enumerate(elements(header, op))]
        return [ddl(header, op) if kind == "ddl" else landed(header, kind, op)]
    except DeadLetter as dead:
        row = landed(header, "dead_letter", None, reason=str(dead), raw=raw_text(message))
        return [row | {"meta": {"raw_encoding": "base64"}} if str(dead) == "not-utf8" else row]


def read_object(message: bytes) -> dict:
    """The one JSON object that the message is; the last of equally named members wins."""
    decoder = json.JSONDecoder(
        parse_int=Number, parse_float=Number, object_pairs_hook=dict, parse_constant=int
    )  # raises a ValueError: NaN and Infinity are no JSON
    try:
        text = message.decode("utf-8").strip(JSON_BLANKS)
        value, end = decoder.raw_decode(text)
    except UnicodeDecodeError:
        raise DeadLetter("not-utf8") from None
    except (ValueError, RecursionError):
        raise DeadLetter("not-json" if text else "empty") from None
    rest = text[end:]
    if rest and not isinstance(value, (dict, list)) and rest[0] not in JSON_BLANKS:  # 12x, nullify
        raise DeadLetter("not-json")
    if rest:
        raise DeadLetter("trailing-text")
    if not isinstance(value, dict):
        raise DeadLetter("not-an-object")
    return value


def raw_text(message: bytes) -> str:
    """The message as received; base64 if it is not UTF-8."""
    try:
        return message.decode("utf-8")
    except UnicodeDecodeError:
        return base64.b64encode(message).decode("ascii")


def text_of(value) -> str | None:
    """The text of a JSON value: a string's text, a number's digits, anything nested as compact JSON; null is None."""
    return str(value) if isinstance(value, str) else None if value is None else compact(value)


def compact(value) -> str:
    """A JSON value as compact JSON text: member order, numbers' digits and non-ASCII characters kept."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{compact(name)}:{compact(member)}" for name, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(compact(member) for member in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def text_at(header: dict, field: str) -> str | None:
    """A header field as text."""
    return text_of(header.get(field))


def time_at(header: dict, field: str) -> str | None:
    """Epoch milliseconds as an ISO 8601 instant; None if unknown, not plain digits or beyond the year 9999."""
    digits = text_at(header, field) or ""
    milliseconds = int(digits) if re.fullmatch("[0-9]{1,4000}", digits) else None
    if milliseconds is None or milliseconds in UNKNOWN_TIMES[field] or milliseconds > LAST_MILLISECOND:
        return None
    second = datetime(1970, 1, 1) + timedelta(seconds=milliseconds // 1000)
    return second.isoformat() + without_trailing_zeros(f".{milliseconds % 1000:03}") + "Z"


def kind_and_op(header: dict) -> tuple[str, str]:
    """Kind and op of a message; `isDdl` makes it a DDL whatever its type, or a statement that only tells its rows."""
    type_text = text_at(header, "type")
    if type_text == "QUERY" and text_at(header, "isDdl") == "false":
        return "control", "other"
    kind, op = OPS.get(type_text, (None, None))
    if kind != "ddl" and (type_text == "QUERY" or text_at(header, "isDdl") == "true"):
        return "ddl", statement_op(text_at(header, "sql") or "")
    if kind is None:
        raise DeadLetter("no-op" if type_text is None else "unknown-op")
    return kind, op


def statement_op(statement: str) -> str:
    """The op that a DDL statement's first words name, comments aside."""
    words = COMMENTS.sub(" ", statement).strip()
    if INDEX_STATEMENT.match(words):
        return "index"
    first = re.match(r"(create|alter|drop|truncate|rename)\b", words, re.I)
    return first[1].lower() if first else "other"


def elements(header: dict, op: str) -> list[tuple]:
    """(row, old) of each row, in step; old is None where there is none. More of `old` than rows belongs to no row."""
    no_rows = DeadLetter("statement-without-rows" if text_at(header, "sql") else "no-row-image")
    rows = as_rows(header.get("data"), allowed=(dict,))
    if op == "delete" and not any(rows):
        rows = as_rows(header.get("old"), allowed=(dict,))
    if not any(rows):
        raise no_rows
    try:
        old = as_rows(header.get("old"), allowed=(dict, type(None)))
    except DeadLetter:
        if op == "update":
            raise
        old = []
    if len(old) > len(rows):
        raise DeadLetter("uneven-rows")
    if op != "update":
        old = []
    return list(zip(rows, old + [None] * (len(rows) - len(old))))


def as_rows(value, allowed: tuple) -> list:
    """The elements of a field that holds rows; a dead letter if one of them is none of these types."""
    elements = as_array(value)
    if not all(isinstance(element, allowed) for element in elements):
        raise DeadLetter("row-not-an-object")
    return elements


def as_array(value) -> list:
    """The elements of a field that holds rows; anything but a list or null counts as one element."""
    return value if isinstance(value, list) else [] if value is None else [value]


def ddl(header: dict, op: str) -> dict:
    """The changelog row of a DDL."""
    key_columns = ",".join(key_names(header))
    return landed(
        header,
        "ddl",
        op,
        types=types_of(header),
        statement=text_at(header, "sql") or None,
        meta={"key_columns": key_columns},
    )


def types_of(header: dict) -> dict | None:
    sent = header.get("mysqlType")
    return {name: text_of(value) for name, value in visible(sent).items()} if isinstance(sent, dict) else None


def change(header: dict, op: str, zone, row: int, data: dict, old: dict | None) -> dict:
    """The changelog row of one element."""
    types = types_of(header)
    (before, before_kept), (after, after_kept) = (
        canonical_image(image, types or {}, zone) for image in images(op, data, old)
    )
    names = key_names(header)
    key = key_of(names, (before or {}) | (after or {}))
    old_key = key_of(names, (after or {}) | (before or {})) if op == "update" and before and key else None
    return landed(
        header,
        "row",
        op,
        row=row,
        types=types,
        before=before,
        after=after,
        before_image=completeness(before, {*(after or {}), *(types or {})}, names),
        after_image=completeness(after, {*(before or {}), *(types or {})}, names),
        changed=changed_columns(old, before, after) if op == "update" else None,
        key=key,
        key_text=None if key is None else compact(dict(sorted(key.items()))),
        old_key=None if old_key == key else old_key,
        meta={
            "as_sent": ",".join(sorted({*before_kept, *after_kept})),
            "ambiguous_times": ",".join(sorted(ambiguous_columns(images(op, data, old), types or {}, zone))),
            "rowid": hidden_row_id(data, old),
            "other_image": None if op == "update" else other_image(as_array(header.get("old")), row, data),
            "key_columns": ",".join(names) if key is None else None,
        },
    )


def images(op: str, data: dict, old: dict | None) -> tuple:
    """Before and after image as sent, hidden row ids left out; None where the op has none."""
    if op == "delete":
        return visible(data), None
    if op == "update" and old is not None:
        return visible(data | old), visible(data)
    return None, visible(data)


def other_image(old: list, row: int, data: dict) -> str | None:
    """What stands in `old` beside a row that has no image before, in JSON; None if it is the row itself."""
    if row >= len(old) or not all(isinstance(one, (dict, type(None))) for one in old):
        return None
    other, own = ({name: text_of(value) for name, value in (one or {}).items()} for one in (old[row], data))
    return compact(visible(other)) if visible(other) and list(other.items()) != list(own.items()) else None


def visible(columns: dict) -> dict:
    """The members that are columns of the table."""
    return {name: value for name, value in columns.items() if name not in HIDDEN_ROW_IDS}


def changed_columns(old: dict | None, before: dict | None, after: dict) -> list | None:
    """Columns of `old` whose text differs or that only the before image has; None if there is no before image."""
    gone_or_changed = (name for name in visible(old or {}) if name not in after or before[name] != after[name])
    return None if before is None else sorted(gone_or_changed)


def completeness(image: dict | None, columns: set[str], key: list[str]) -> str:
    """How much of a row with these columns an image holds."""
    if image is None:
        return "none"
    return "full" if columns <= set(image) else "key" if image and set(image) <= set(key) else "partial"


def key_names(header: dict) -> list[str]:
    """The vendor's key columns, each once; [] if it names none. A bare text is one name, and a hidden row id no key."""
    names = header.get("pkNames")
    names = [names] if isinstance(names, str) and not isinstance(names, Number) and names else names
    sent = [text_of(name) for name in names if name is not None] if isinstance(names, list) else []
    return [name for name in dict.fromkeys(sent) if name not in HIDDEN_ROW_IDS]


def key_of(names: list[str], image: dict) -> dict | None:
    """The key by name from an image; None if there is no key or the image lacks a part of it."""
    if not names or any(name not in image for name in names):
        return None
    return {name: image[name] for name in names}


def hidden_row_id(data: dict, old: dict | None) -> str | None:
    """The hidden row id, after the change if it is known there."""
    return next(
        (text_of(row[name]) for row in (data, old or {}) for name in HIDDEN_ROW_IDS if row.get(name) is not None), None
    )


def landed(header: dict, kind: str, op: str | None, row: int = 0, meta: dict | None = None, **given) -> dict:
    """A row of the changelog: what every kind takes from the header, and what was given; the rest is None."""
    nothing = dict.fromkeys(NOT_GIVEN)
    seq = {"generation": 0, "phase": 1, "position": [], "row": row}
    extras = {"gtid": text_at(header, "gtid"), "message_id": text_at(header, "id")} | (meta or {})
    return (
        nothing
        | {
            "kind": kind,
            "op": op,
            "db_name": text_at(header, "database") or None,
            "table_name": text_at(header, "table") or None,
            "event_time": time_at(header, "es"),
            "produced_at": time_at(header, "ts"),
            "seq": seq,
            "meta": {name: text for name, text in extras.items() if text not in (None, "", "null")},
        }
        | given
    )


def canonical_image(image: dict | None, types: dict, zone) -> tuple[dict | None, list]:
    """Column -> canonical text, and the columns whose value did not fit its class; None for no image."""
    if image is None:
        return None, []
    read = {name: canonical(value, types.get(name), zone) for name, value in image.items()}
    return {name: text for name, (text, _) in read.items()}, [name for name, (_, fits) in read.items() if not fits]


def canonical(value, column_type: str | None, zone) -> tuple:
    """The canonical text of a value; as sent and False if its reader cannot bring it there. Only a text has bytes."""
    text = text_of(value)
    reader = READERS.get(base_name(column_type or ""))
    if text is None or reader is None:
        return text, True
    is_bytes = reader is read_latin1
    read = None if is_bytes and type(value) is not str else reader(text, column_type, zone)
    return (text, False) if read is None else (read, True)


def base_name(column_type: str) -> str:
    """A type's bare name: lower case, without what is in brackets, `unsigned` and `zerofill`."""
    words = re.sub(r"\(.*\)", " ", column_type.lower(), flags=re.DOTALL).split()
    return " ".join(word for word in words if word not in ("unsigned", "zerofill"))


def without_trailing_zeros(fraction: str) -> str:
    """A fraction with its dot, or '', without trailing zeros; the dot goes with them if nothing is left."""
    return fraction.rstrip("0").rstrip(".")


def read_decimal(text: str, _type: str, _zone) -> str | None:
    """Digits with the exponent written out."""
    match = NUMBER.fullmatch(text)
    if not match or abs(int((match[4] or "0")[:4000])) > LARGEST_EXPONENT:
        return None
    return format(Decimal(text), "f") if match[3] else text


def read_number(text: str, _type: str, _zone) -> str | None:
    """A whole number with the exponent written out; true is 1."""
    if text in ("true", "false"):
        return str(int(text == "true"))
    is_number = re.fullmatch("[+-]?[0-9]+", text) or "e" in text.lower()
    return read_decimal(text, "", None) if is_number else None


def read_latin1(text: str, _type: str, _zone) -> str | None:
    """Base64 of the bytes that the characters stand for."""
    try:
        return base64.b64encode(text.encode("latin-1")).decode("ascii")
    except UnicodeEncodeError:
        return None


def labels(column_type: str) -> list[str]:
    """The labels of an enum or set type; [] if it tells none."""
    match = LABEL_LIST.fullmatch(column_type)
    return [label.replace("''", "'") for label in re.findall(r"'((?:[^']|'')*)'", match[2])] if match else []


def read_enum(text: str, column_type: str, _zone) -> str | None:
    """The label of an ordinal; 0 is MySQL's empty label; a label stays."""
    known = labels(column_type)
    ordinal = int(text) if known and re.fullmatch("[0-9]{1,20}", text) else -1
    if 0 <= ordinal <= len(known):
        return ["", *known][ordinal]
    return text if text in ("", *known) else None


def read_set(text: str, column_type: str, _zone) -> str | None:
    """The labels of a bit mask, joined by commas; labels stay."""
    known = labels(column_type)
    mask = int(text) if known and re.fullmatch("[0-9]{1,20}", text) else -1
    if 0 <= mask < 2 ** len(known):
        return ",".join(label for bit, label in enumerate(known) if mask >> bit & 1)
    return text if not text or all(part in known for part in text.split(",")) else None


def read_wall_clock(text: str, _type: str, _zone) -> str | None:
    """Wall clock time without the last zeros of a fraction of a second; None for what no clock shows."""
    match = WALL_CLOCK.fullmatch(text) or TIME_OF_DAY.fullmatch(text)
    return match[1] + without_trailing_zeros(match[2] or "") if match and is_possible(match[1]) else None


def read_date(text: str, _type: str, _zone) -> str | None:
    """A day of the calendar, or one whose month or day is zero."""
    return text if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) and is_possible(f"{text} 00:00:00") else None


def is_possible(clock: str) -> bool:
    """Whether a clock shows this: hours alone may pass 24, and a month or a day be zero."""
    date, _, time = clock.rpartition(" ")
    _, minutes, seconds = time.split(":")
    if not date:
        return minutes <= "59" and seconds <= "59"
    day = f"0004{date[4:]}" if date[:4] == "0000" else date  # a leap year, which Python lacks
    month_or_day_is_zero = "00" in (day[5:7], day[8:])
    if month_or_day_is_zero and day[5:7] <= "12" and day[8:] <= "28":
        day = "2000-01-01"
    try:
        return bool(datetime.fromisoformat(f"{day} {time}"))
    except ValueError:
        return False


def read_timestamp(text: str, column_type: str, zone) -> str | None:
    """The instant of a local time; wall clock if no zone is known; None for a gap or an impossible date."""
    if zone is None:
        return read_wall_clock(text, column_type, zone)
    zone, match = read_zone(zone), WALL_CLOCK.fullmatch(text)
    try:
        local = datetime.fromisoformat(match[1]).replace(tzinfo=zone)
        instant = local.astimezone(timezone.utc)
        in_gap = instant.astimezone(zone).replace(tzinfo=None) != local.replace(tzinfo=None)
    except (TypeError, ValueError, OverflowError):  # another shape, no such date, beyond year 1 or 9999
        return None
    return None if in_gap else instant.isoformat()[:19] + without_trailing_zeros(match[2] or "") + "Z"


def ambiguous_columns(found: tuple, types: dict, zone) -> set[str]:
    """The timestamps whose wall clock came twice in the zone."""
    return {
        name
        for image in found
        for name, value in (image or {}).items()
        if base_name(types.get(name) or "") == "timestamp" and came_twice(text_of(value), zone)
    }


def came_twice(text: str | None, zone) -> bool:
    """Whether a wall clock showed this in two hours of a night."""
    if text is None or zone is None or read_timestamp(text, "", zone) is None:
        return False
    local = datetime.fromisoformat(text[:19]).replace(tzinfo=read_zone(zone))
    return local.utcoffset() != local.replace(fold=1).utcoffset()


def read_zone(zone: str):
    """A zone from its offset (`+08:00`) or its IANA name."""
    return datetime.fromisoformat(f"2000-01-01T00:00{zone}").tzinfo if zone[0] in "+-" else ZoneInfo(zone)


LATIN1_TYPES = (
    *("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "geometry", "point", "linestring"),
    *("polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection", "geomcollection"),
)
READERS = {  # types that are not here have no reader: their text is as sent
    **dict.fromkeys(("bool", "boolean"), read_number),
    **dict.fromkeys(("decimal", "numeric", "fixed", "dec"), read_decimal),
    **dict.fromkeys(LATIN1_TYPES, read_latin1),
    "enum": read_enum,
    "set": read_set,
    "timestamp": read_timestamp,
    "date": read_date,
    "time": read_wall_clock,
    "datetime": read_wall_clock,
}
