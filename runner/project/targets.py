"""`targets` of project.yml -> Target: where tables are kept, and the settings of Spark that this takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from runner.errors import RunnerError, nearest_or_all
from runner.files import is_uri
from runner.project.nodes import STORAGES, Catalog, Target
from runner.yaml_text import Yaml

TARGET_KEYS = ("storage", "path", "catalog", "packages", "jars", "remote", "spark")
EXTENSIONS = {
    "delta": "io.delta.sql.DeltaSparkSessionExtension",
    "iceberg": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}
SESSION_CATALOG = "spark_catalog"
SESSION_CATALOGS = {"delta": "org.apache.spark.sql.delta.catalog.DeltaCatalog"}
ICEBERG_CATALOG = "org.apache.iceberg.spark.SparkCatalog"
# Of these a session in a server has none of its own.
SERVER_KEYS = ("packages", "jars")

Fill = Callable[[Yaml], str]


def read_target(name: str, yaml: Yaml, root: Path, fill: Fill) -> Target:
    """The target; raises RunnerError for what it cannot be."""
    yaml.only(TARGET_KEYS)
    storage = yaml["storage"].text() if yaml.get("storage") else "parquet"
    if storage not in STORAGES:
        raise yaml["storage"].error("target-storage", f'unknown storage "{storage}"', nearest_or_all(storage, STORAGES))
    path = _path(yaml, root, fill)
    remote = fill(yaml["remote"]) if yaml.get("remote") else None
    if remote:
        _check_remote(yaml, path)
    catalog, catalog_settings = _catalog(yaml, storage, path, fill)
    own = {key: fill(value) for key, value in yaml["spark"].mapping().items()} if yaml.get("spark") else {}
    extensions = ",".join(text for text in (EXTENSIONS.get(storage), own.get("spark.sql.extensions")) if text)
    settings = {
        **_jars(yaml, root, fill),
        **catalog_settings,
        **own,
        **({"spark.sql.extensions": extensions} if extensions else {}),
    }
    return Target(name, path, storage, settings, catalog, remote)


def _path(yaml: Yaml, root: Path, fill: Fill) -> str:
    path = fill(yaml["path"]) if yaml.get("path") else "warehouse"
    return path.rstrip("/") if is_uri(path) else str(root / path)


def _check_remote(yaml: Yaml, path: str) -> None:
    if is_uri(path):
        raise RunnerError(
            "target-remote",
            f'a remote target needs a path that this machine sees as the server does, not "{path}"',
            yaml["path"].where(),
            "mount it in both, or run with spark.master in place of remote",
        )
    for key in SERVER_KEYS:
        if yaml.get(key):
            raise yaml[key].error(
                "target-remote", f'"{key}" of a remote target belong to the server', "start the server with them"
            )
    for key, value in yaml["spark"].mapping().items() if yaml.get("spark") else ():
        if not key.startswith("spark.sql."):
            raise value.error(
                "target-remote",
                f'"{key}" is a setting of the server, not of a session in it',
                "start the server with it",
            )


def _jars(yaml: Yaml, root: Path, fill: Fill) -> dict[str, str]:
    """The settings that bring what Spark itself does not have."""
    packages = [fill(one) for one in yaml["packages"].as_list()] if yaml.get("packages") else []
    jars: list[str] = []
    for one in yaml["jars"].as_list() if yaml.get("jars") else ():
        pattern = fill(one)
        found = (
            [pattern]
            if is_uri(pattern)
            else sorted(str(path) for path in Path("/").glob(str(root / pattern).lstrip("/")))
        )
        if not found:
            raise one.error("target-jars", f'no file matches "{pattern}"')
        jars += found
    return {
        key: ",".join(values) for key, values in (("spark.jars.packages", packages), ("spark.jars", jars)) if values
    }


def _catalog(yaml: Yaml, storage: str, path: str, fill: Fill) -> tuple[Catalog | None, Mapping[str, str]]:
    """The catalog and its settings: each key but `name` and `schema` is one of the catalog's own."""
    entry = yaml.get("catalog")
    given = {key: fill(value) for key, value in entry.mapping().items()} if entry else {}
    name, schema = (
        given.pop("name", "lake" if storage == "iceberg" else SESSION_CATALOG),
        given.pop("schema", "changelog"),
    )
    if storage != "iceberg":
        if entry and (name != SESSION_CATALOG or given):
            raise entry.error(
                "target-catalog",
                f'tables in {storage} are known to the catalog "{SESSION_CATALOG}" alone, which has its settings under "spark"',
                "catalog: {schema: changelog}",
            )
        session = (
            {f"spark.sql.catalog.{SESSION_CATALOG}": SESSION_CATALOGS[storage]} if storage in SESSION_CATALOGS else {}
        )
        return (Catalog(name, schema) if entry else None), session
    if not entry:
        raise yaml.error(
            "target-catalog", "tables in iceberg lie in a catalog, and the target has none", "catalog: {type: hadoop}"
        )
    if given.get("type") == "hadoop":
        given.setdefault("warehouse", path)
    prefix = f"spark.sql.catalog.{name}"
    own = {f"{prefix}.{key}": value for key, value in given.items()}
    return Catalog(name, schema), {prefix: ICEBERG_CATALOG, **own} if given else {}
