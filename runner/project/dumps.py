"""The readers of `dump`, `jdbc` and `at` in a source: files of rows, queries, and places in a log of changes."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from runner.project.inputs import EPOCH, Dump, Jdbc, Place
from runner.project.variables import Filler
from runner.spec.values import one_of
from runner.yaml_text import Yaml

# --- files of rows

# Form of files with rows -> whether the first line names the columns, and the text of a null value, unless told.
FORMS = {"csv": (True, ""), "text": (False, "\\N"), "parquet": (False, ""), "lines": (False, "")}
DUMP_KEYS = ("form", "header", "null")


def read_dump(yaml: Yaml) -> Dump:
    """Returns the form of files with rows; raises `source-dump`."""
    entry = yaml.only(DUMP_KEYS) if isinstance(yaml.value, dict) else None
    if entry and not entry.get("form"):
        raise entry.error("source-dump", 'a dump needs "form"', f"one of {', '.join(FORMS)}")
    form = one_of(entry["form"] if entry else yaml, tuple(FORMS), "source-dump", "dump")
    has_header, null = FORMS[form]
    for key in ("header", "null"):
        if entry and entry.get(key) and form not in ("csv", "text"):
            raise entry[key].error("source-dump", f'"{key}" has no meaning for {form}', "it is for csv and text")
    if entry and entry.get("header"):
        has_header = one_of(entry["header"], ("true", "false"), "source-dump", '"header"') == "true"
    return Dump(form, has_header, entry["null"].text() if entry and entry.get("null") else null)


# --- queries

JDBC_KEYS = ("url", "query", "table", "user", "password", "driver", "options")
# A login in an address would be shown wherever the address is.
LOGIN = re.compile(r"(?i)password|passwd|pwd|//[^/?]*@")


def read_jdbc(yaml: Yaml, filler: Filler, folder: str) -> Jdbc:
    """Returns the query of a database, whose result is written to a folder; raises `source-jdbc`."""
    yaml.only(JDBC_KEYS)
    if not yaml.get("url") or bool(yaml.get("query")) == bool(yaml.get("table")):
        hint = '{url: "jdbc:...", query: "select * from shop.orders"}'
        raise yaml.error("source-jdbc", '"jdbc" needs "url", and either "query" or "table"', hint)
    url = filler.text(yaml["url"])
    if LOGIN.search(url):
        message = '"url" holds a login, and would be shown in messages'
        raise yaml["url"].error("source-jdbc", message, "user: ..., password: \"{{ env_var('PASSWORD') }}\"")
    if not url.startswith("jdbc:"):
        raise yaml["url"].error("source-jdbc", '"url" begins with jdbc:', "jdbc:DATABASE://host:port/shop")
    given = yaml["options"].mapping().items() if yaml.get("options") else ()
    options = {key: filler.setting(key, value) for key, value in given}
    query = {"query": filler.text(yaml["query"])} if yaml.get("query") else {"dbtable": filler.text(yaml["table"])}
    login = {key: filler.setting(key, yaml[key]) for key in ("user", "password", "driver") if yaml.get(key)}
    return Jdbc({**options, "url": url, **query, **login}, url, folder)


# --- the place in a log

AT_KEYS = ("place", "log", "time")
FORMS_OF_PLACES = (
    "a place in a log file (binlog.000003:1234), a number, a set of transactions (UUID:1-77 or 0-1-77), a snapshot of "
    "transactions (748:752:749,750), or a time with its zone"
)
IN_FILE = re.compile(r"\S*?\.0*(\d+):(\d+)")
NUMBERS = re.compile(r"\d+(?:,\d+)*")
IN_LOG = re.compile(r"[0-9A-Fa-f]{8}:[0-9A-Fa-f]{8}:[0-9A-Fa-f]{4}")
LSN = re.compile(r"[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}")
SNAPSHOT = re.compile(r"(\d+):(\d+):((?:\d+(?:,\d+)*)?)")
GTID = re.compile(
    r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?::[a-z_][a-z_0-9]*)?)((?::\d+(?:-\d+)?)+)", re.IGNORECASE
)
# It looks like the id of a transaction in a domain.
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
GTID_IN_DOMAIN = re.compile(r"(\d+)-\d+-(\d+)")


def read_place(yaml: Yaml, filler: Filler) -> Place:
    """Returns the place at which a dump was taken; raises `source-at`."""
    if not isinstance(yaml.value, dict):
        text = filler.text(yaml)
        time = read_instant(text)
        return Place("time", time=time) if time is not None else _place(yaml, text)
    yaml.only(AT_KEYS)
    time = read_instant(filler.text(yaml["time"])) if yaml.get("time") else None
    if yaml.get("time") and time is None:
        message = f'"{yaml["time"].text()}" is no time with its zone'
        raise yaml["time"].error("source-at", message, "time: 2026-11-28T10:00:00Z")
    if not yaml.get("place"):
        if time is None or yaml.get("log"):
            raise yaml.error("source-at", '"at" needs "place"', 'at: {place: "binlog.000003:1234", log: "1"}')
        return Place("time", time=time)
    found = _place(yaml["place"], filler.text(yaml["place"]))
    if yaml.get("log") and found.kind != "numbers":
        raise yaml["log"].error("source-at", '"log" is only for places that are numbers', "leave it out")
    return Place(
        found.kind,
        found.numbers,
        (filler.text(yaml["log"]),) if yaml.get("log") else (),
        found.ids,
        found.until,
        found.open,
        time,
    )


def _place(yaml: Yaml, text: str) -> Place:
    text = re.sub(r"\s", "", text)
    if found := IN_FILE.fullmatch(text):
        return Place("numbers", tuple(map(int, found.groups())))
    if NUMBERS.fullmatch(text):
        return Place("numbers", tuple(map(int, text.split(","))))
    if IN_LOG.fullmatch(text):
        return Place("numbers", (int(text.replace(":", ""), 16),))
    if found := SNAPSHOT.fullmatch(text):
        return Place("transactions", until=int(found[2]), open=tuple(int(one) for one in found[3].split(",") if one))
    if LSN.fullmatch(text):
        message = f'"{text}" does not tell which changes a dump has: a transaction may begin before it and end after it'
        hint = 'name the snapshot of the dump instead, as "select pg_current_snapshot()" shows it: at: "748:752:749"'
        raise yaml.error("source-at", message, hint)
    if DAY.fullmatch(text):
        raise yaml.error("source-at", f'"{text}" is a day without a time and a zone', f"at: {text}T10:00:00Z")
    ids: list[tuple[str, int, int]] = []
    for one in text.split(","):
        if found := GTID.fullmatch(one):
            for numbers in found[2][1:].split(":"):
                first, _, last = numbers.partition("-")
                ids.append((found[1].lower(), int(first), int(last or first)))
        elif found := GTID_IN_DOMAIN.fullmatch(one):
            ids.append((found[1], 0, int(found[2])))
        else:
            raise yaml.error("source-at", f'"{text}" is no place in a log', FORMS_OF_PLACES)
    return Place("ids", ids=tuple(ids))


def read_instant(text: str) -> int | None:
    """Returns an instant in microseconds; None for another text."""
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return (moment - EPOCH) // timedelta(microseconds=1) if moment.tzinfo else None
