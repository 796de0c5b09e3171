"""Where the tables of a database are that mirrors are compared with: an address of JDBC, or the files of a dump."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from runner.errors import RunnerError, Where
from runner.project.mirror import Mirror
from runner.project.project import built_in_folder
from runner.project.variables import Filler, env_var, texts_of
from runner.secrets import Secrets
from runner.yaml_text import Yaml, read_yaml

PLACE = Where(Path("--against"))
# The endings of files -> the format in which Spark reads them.
FORMATS = {".jsonl": "json", ".ndjson": "json", ".json": "json", ".csv": "csv", ".parquet": "parquet"}
PACKED = (".gz", ".bz2", ".zst")
# A user with a password before a host, or a password among the parameters of an address.
PASSWORDS = (re.compile(r"[^/:][:/]([^:/@\s]+)@"), re.compile(r"(?i)(?:password|passwd|pwd)=([^&;]+)"))


@dataclass(frozen=True)
class Database:
    """A database that Spark reads through JDBC. `read_as`, if it is not empty, takes the place of the word behind
    `jdbc:` for Spark and the driver, which then need the `parameter` in the address. `settings` are told to the driver;
    `package` is the package with the driver, empty if it is not known.
    """

    url: str = field(repr=False)
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    package: str = ""
    read_as: str = ""
    parameter: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """The address for Spark and the driver.

        >>> Database("jdbc:a://h/d", read_as="b", parameter="c").address
        'jdbc:b://h/d?c'
        """
        if not self.read_as:
            return self.url
        rest = self.url.removeprefix(f"jdbc:{self.kind}:")
        return f"jdbc:{self.read_as}:{rest}{'&' if '?' in rest else '?'}{self.parameter}"

    @property
    def kind(self) -> str:
        """The word behind `jdbc:`."""
        return self.url.split(":")[1]

    @property
    def shown(self) -> str:
        """The address without parameters, users and passwords.

        >>> Database("jdbc:a://me:tr0ut@h:1/shop?password=x").shown, Database("jdbc:b:thin:me/tr0ut@h:1:x").shown
        ('jdbc:a://h:1/shop', 'jdbc:b:h:1:x')
        """
        address = re.split("[?;]", self.url)[0]
        head, at, rest = address.rpartition("@")
        return f"jdbc:{self.kind}:{'//' if '//' in head else ''}{rest}" if at else address


@dataclass(frozen=True)
class Dump:
    """Files with the rows of tables, each as its database had it. `files` are those of mirrors, by their names."""

    path: Path
    files: Mapping[str, Path]

    @property
    def shown(self) -> str:
        return str(self.path)


def read_place(
    text: str, user: str | None, password_variable: str | None, mirrors: Iterable[Mirror], filler: Filler
) -> Database | Dump:
    """Returns the place that `--against` names, with `{{ env_var('NAME') }}` in it filled in. Passwords become secrets.
    Raises `verify-against` for a place that is not there, or has no file of any of the mirrors.
    """
    place = filler.text(Yaml(text, {(): PLACE}))
    if place.startswith("jdbc:"):
        return _database(place, user, password_variable, filler.secrets)
    if user or password_variable:
        raise RunnerError("verify-against", '"--user" and "--password-env" are for addresses that begin with "jdbc:"')
    path = Path(place)
    if not path.exists():
        hint = "jdbc:KIND://HOST/DATABASE, or a file or folder that is there"
        raise RunnerError("verify-against", f'"{place}" is neither an address of JDBC nor a file or folder', hint=hint)
    return _dump(path, list(mirrors))


def _database(url: str, user: str | None, variable: str | None, secrets: Secrets) -> Database:
    for found in (part for pattern in PASSWORDS for part in pattern.findall(url)):
        secrets.add("--against", found)
    if not re.match(r"jdbc:[\w+.-]+:.", url):
        hint = "jdbc:KIND://HOST/DATABASE"
        raise RunnerError("verify-against", f'"{re.split("[?;@]", url)[0]}" is no address of JDBC', hint=hint)
    password = env_var(secrets, variable) if variable else None
    known = read_yaml(built_in_folder("formats") / "drivers" / "jdbc.yml").mapping()
    driver = known.get(url.split(":")[1])
    if driver is None:
        return Database(url, user, password)
    texts = {key: value.text() for key, value in driver.items() if key != "settings"}
    return Database(url, user, password, **texts, settings=texts_of(driver.get("settings")))


def _dump(path: Path, mirrors: list[Mirror]) -> Dump:
    """Returns the files of mirrors. A single file is that of the only mirror, whatever its name."""
    if not path.is_dir() or _is_table(path):
        files = {mirror.name: path for mirror in mirrors if len(mirrors) == 1 or _is_named(path, mirror)}
    else:
        entries = sorted(one for one in path.iterdir() if format_of(one) or _is_table(one))
        files = {mirror.name: found for mirror in mirrors if (found := _file_of(mirror, entries))}
    if not files:
        name = mirrors[0].tables[-1].name[-1]
        hint = f"a file has the name of its table, such as {name}.jsonl, .csv with a line of names, or .parquet"
        raise RunnerError("verify-against", f'"{path}" has no file of the tables of these mirrors', hint=hint)
    return Dump(path, files)


def _file_of(mirror: Mirror, entries: list[Path]) -> Path | None:
    found = [one for one in entries if _is_named(one, mirror)]
    if len(found) > 1:
        message = f'two files have the name of the table of "{mirror.name}": "{found[0].name}" and "{found[1].name}"'
        raise RunnerError("verify-against", message, hint="keep one of them there, or name one as --against")
    return found[0] if found else None


def _is_table(path: Path) -> bool:
    """Returns True if a folder holds the files of one table, as Spark writes them."""
    return path.is_dir() and (bool(FORMATS.get(path.suffix.lower())) or any(path.glob("part-*")))


def _is_named(path: Path, mirror: Mirror) -> bool:
    return _stem(path.name).lower() in _names(mirror)


def _names(mirror: Mirror) -> set[str]:
    """Returns the names that a file of a mirror's table may have, in lower case, without an ending."""
    parts = mirror.tables[-1].name
    return {".".join(parts).lower(), ".".join(parts[-2:]).lower(), parts[-1].lower(), mirror.name.lower()}


def _stem(name: str) -> str:
    """
    >>> _stem("shop.orders.jsonl.gz"), _stem("shop.orders")
    ('shop.orders', 'shop.orders')
    """
    for ending in (*PACKED, *FORMATS):
        if name.lower().endswith(ending):
            name = name[: -len(ending)]
    return name


def format_of(path: Path) -> str | None:
    """Returns the format in which Spark reads a file, told by its ending; for a folder, by those of its files.

    >>> format_of(Path("a.JSONL.gz")), format_of(Path("a.sql"))
    ('json', None)
    """
    name = path.name.lower()
    for ending in PACKED:
        name = name.removesuffix(ending)
    found = FORMATS.get(Path(name).suffix)
    parts = sorted(path.glob("part-*")) if found is None and path.is_dir() else []
    return format_of(parts[0]) if parts else found
