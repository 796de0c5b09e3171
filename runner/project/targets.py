"""The reader of `targets` in project.yml: the place of tables, and the settings of Spark that they need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from runner.errors import RunnerError, nearest_or_all
from runner.files import is_uri
from runner.patterns import HAS_SPECIAL
from runner.project.inputs import Catalog, Target
from runner.project.variables import Filler
from runner.storage.known import STORAGES
from runner.storage.storage import Storage
from runner.yaml_text import Yaml

TARGET_KEYS = ("storage", "path", "catalog", "packages", "jars", "remote", "spark")
# Spark's name for its own catalog, and the name of a storage's catalog if the target does not name it.
SESSION_CATALOG, OWN_CATALOG = "spark_catalog", "lake"
# Keys that belong to a server, not to a session in it.
SERVER_KEYS = ("packages", "jars")


def read_target(name: str, yaml: Yaml, root: Path, filler: Filler) -> Target:
    """Returns the target; raises RunnerError for mistakes in it."""
    yaml.only(TARGET_KEYS)
    storage = _storage(yaml.get("storage"))
    path = _path(yaml, root, filler)
    remote = filler.text(yaml["remote"]) if yaml.get("remote") else None
    if remote:
        _check_remote(yaml, path)
    catalog, catalog_settings = _catalog(yaml, storage, path, filler)
    spark = yaml["spark"].mapping().items() if yaml.get("spark") else ()
    own = {key: filler.setting(key, value) for key, value in spark}
    extensions = ",".join(text for text in (storage.extension, own.get("spark.sql.extensions")) if text)
    settings = {
        **_jars(yaml, root, filler),
        **catalog_settings,
        **own,
        **({"spark.sql.extensions": extensions} if extensions else {}),
    }
    return Target(name, path, storage.name, settings, catalog, remote)


def _storage(yaml: Yaml | None) -> type[Storage]:
    name = yaml.text() if yaml else Target.storage
    if yaml and name not in STORAGES:
        raise yaml.error("target-storage", f'unknown storage "{name}"', nearest_or_all(name, STORAGES))
    return STORAGES[name]


def _path(yaml: Yaml, root: Path, filler: Filler) -> str:
    path = filler.text(yaml["path"]) if yaml.get("path") else "warehouse"
    return path.rstrip("/") if is_uri(path) else str(root / path)


def _check_remote(yaml: Yaml, path: str) -> None:
    if is_uri(path):
        raise RunnerError(
            "target-remote",
            f'a remote target needs a path that is the same on this machine and on the server, not "{path}"',
            yaml["path"].where(),
            "mount a folder on both, or use spark.master instead of remote",
        )
    for key in SERVER_KEYS:
        if yaml.get(key):
            raise yaml[key].error(
                "target-remote", f'"{key}" cannot be set for a remote target', "start the server with them"
            )
    for key, value in yaml["spark"].mapping().items() if yaml.get("spark") else ():
        if not key.startswith("spark.sql."):
            raise value.error(
                "target-remote",
                f'"{key}" is a setting of the server, not of a session in it',
                "start the server with it",
            )


def _jars(yaml: Yaml, root: Path, filler: Filler) -> dict[str, str]:
    """Returns the settings for packages and jars that Spark itself does not have."""
    packages = [filler.text(one) for one in yaml["packages"].as_list()] if yaml.get("packages") else []
    named = yaml["jars"].as_list() if yaml.get("jars") else ()
    jars = [jar for one in named for jar in _found_jars(one, root, filler)]
    return {
        key: ",".join(values) for key, values in (("spark.jars.packages", packages), ("spark.jars", jars)) if values
    }


def _found_jars(yaml: Yaml, root: Path, filler: Filler) -> list[str]:
    """Returns the addresses of the jars that match a pattern."""
    pattern = filler.text(yaml)
    if is_uri(pattern):
        return [pattern]
    folder, relative = (Path("/"), pattern.lstrip("/")) if pattern.startswith("/") else (root, pattern)
    found = sorted(folder.glob(relative))
    if not found:
        raise yaml.error("target-jars", f'no file matches "{pattern}"')
    if refused := [path for path in found if "," in str(path) or HAS_SPECIAL.search(str(path))]:
        raise yaml.error(
            "target-jars",
            f'"{refused[0]}" has a path from which Spark loads no jar',
            r"keep jars in a folder without , [ ] { } * ? \ in its path",
        )
    return [f"file://{quote(str(path))}" for path in found]


def _catalog(yaml: Yaml, storage: type[Storage], path: str, filler: Filler) -> tuple[Catalog | None, Mapping[str, str]]:
    """Returns the catalog, and the settings of Spark for it."""
    entry = yaml.get("catalog")
    given = {key: filler.setting(key, value) for key, value in entry.mapping().items()} if entry else {}
    schema = given.pop("schema", "changelog")
    if not storage.own_catalog:
        return _session_catalog(entry, storage, schema, given)
    if not entry:
        message = f"tables in {storage.name} need a catalog, and the target has none"
        raise yaml.error("target-catalog", message, "catalog: {type: hadoop}")
    # All keys except `name` and `schema` are settings of the catalog.
    name = given.pop("name", OWN_CATALOG)
    if given.get("type") == "hadoop":
        given.setdefault("warehouse", path)
    prefix = f"spark.sql.catalog.{name}"
    own = {f"{prefix}.{key}": value for key, value in given.items()}
    return Catalog(name, schema), {prefix: storage.own_catalog, **own} if given else {}


def _session_catalog(
    entry: Yaml | None, storage: type[Storage], schema: str, given: dict[str, str]
) -> tuple[Catalog | None, Mapping[str, str]]:
    """Returns Spark's own catalog, in which tables in folders can have names, and the settings of Spark for it."""
    name = given.pop("name", SESSION_CATALOG)
    if entry and (name != SESSION_CATALOG or given):
        message = (
            f'tables in {storage.name} can only have names in the catalog "{SESSION_CATALOG}", '
            'whose settings go under "spark"'
        )
        raise entry.error("target-catalog", message, "catalog: {schema: changelog}")
    settings = {f"spark.sql.catalog.{SESSION_CATALOG}": storage.session_catalog} if storage.session_catalog else {}
    return (Catalog(name, schema) if entry else None), settings


# Settings that name several things, with commas between.
LISTS = ("spark.jars.packages", "spark.jars", "spark.sql.extensions")


def side_by_side(one: Target, other: Target) -> tuple[Target, Target]:
    """Returns two targets as one session can work with both, each with the settings of both: where they differ, those
    of the second. A catalog of the first that has the name of another one of the second gets another name. Raises
    `copy-targets` if no session can work with both, or if both have their tables in one place.
    """
    if one.remote != other.remote:
        raise _apart("one of them is of a Spark Connect server, and the other is not of the same one")
    settings, is_one_place = dict(one.spark), one.path == other.path
    if one.catalog and other.catalog and one.catalog.name == other.catalog.name != SESSION_CATALOG:
        mine, theirs = (_of_catalog(target.spark, one.catalog.name) for target in (one, other))
        is_one_place |= mine == theirs and one.catalog.schema == other.catalog.schema
        if mine != theirs:
            if mine.get(".type") == "jdbc":
                raise _apart(f'both have a catalog "{one.catalog.name}", and one in a database keeps its name')
            name = f"{one.catalog.name}_copied"
            own = {f"spark.sql.catalog.{one.catalog.name}{key}" for key in mine}
            settings = {key: value for key, value in settings.items() if key not in own}
            settings |= {f"spark.sql.catalog.{name}{key}": value for key, value in mine.items()}
            one = replace(one, catalog=replace(one.catalog, name=name))
    if is_one_place:
        what = f'the targets "{one.name}" and "{other.name}" have their tables in one place'
        raise RunnerError(
            "copy-targets", what, hint="give the other target a path and, in Iceberg, a catalog of its own"
        )
    both = settings | dict(other.spark)
    for key in LISTS:
        values = [value for target in (one, other) for value in target.spark.get(key, "").split(",") if value]
        both |= {key: ",".join(dict.fromkeys(values))} if values else {}
    return replace(one, spark=both), replace(other, spark=both)


def _of_catalog(settings: Mapping[str, str], name: str) -> dict[str, str]:
    """Returns the settings of a catalog, by what follows its name."""
    prefix = f"spark.sql.catalog.{name}"
    found = {key.removeprefix(prefix): value for key, value in settings.items() if key.startswith(prefix)}
    return {key: value for key, value in found.items() if key[:1] in ("", ".")}


def _apart(why: str) -> RunnerError:
    hint = "copy into a target with a folder or a catalog of another name, and from there on"
    return RunnerError("copy-targets", f"no session of Spark works with both targets: {why}", hint=hint)
