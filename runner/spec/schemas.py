"""The schemas that are given for messages in Avro: files, folders of files with numbers, and registries."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from runner.errors import RunnerError, Where, from_here
from runner.files import read_text
from runner.functions.avro.layout import USUAL_PATH, Registry, tls_context
from runner.spec.messages import read_schema
from runner.spec.words import Format
from runner.yaml_text import Yaml

REGISTRY_KEYS = ("url", "path", "user", "password", "ca_file", "certificate_file", "key_file")
NUMBERED = re.compile(r"(0|[1-9][0-9]*)\.avsc")
# The bytes of a schema's number, where a format does not say how many they are.
USUAL_NUMBER_BYTES = 4


@dataclass(frozen=True)
class Schemas:
    """The schemas that are given for messages: the `texts` of schemas, those that are `known` by number, and the
    `registry` with the others.
    """

    texts: tuple[str, ...] = ()
    known: Mapping[int, str] = field(default_factory=dict)
    registry: Registry | None = None

    def __bool__(self) -> bool:
        return bool(self.texts or self.has_numbers)

    @property
    def has_numbers(self) -> bool:
        return bool(self.known or self.registry)


class Fills(Protocol):
    """Replaces variables in values of project.yml with their values."""

    def text(self, yaml: Yaml) -> str: ...
    def setting(self, name: str, yaml: Yaml) -> str:
        """Returns a setting with its variables replaced; the setting is a secret if its name says so."""


def schemas_at(places: list[tuple[Path, Where | None]]) -> Schemas:
    """Returns the schemas in files and folders; raises `schema-file` and `schema-unusable`."""
    texts: list[str] = []
    known: dict[int, str] = {}
    for path, where in places:
        if os.path.isdir(path):
            known |= _numbered(path, where)
        else:
            texts.append(read_schema(path, where))
    return Schemas(tuple(texts), known)


def _numbered(folder: Path, where: Where | None) -> dict[int, str]:
    """Returns the schemas in the files of a folder, by the number in the name of each file."""
    names = {path: NUMBERED.fullmatch(path.name) for path in sorted(folder.glob("*.avsc"))}
    other = next((path for path, match in names.items() if not match), None)
    if other or not names:
        what = f'in the folder "{from_here(folder)}", ' + (
            f'"{other.name}" is not the number of a schema' if other else "there are no schemas"
        )
        raise RunnerError("schema-file", what, where, "its files are NUMBER.avsc, for instance 7.avsc")
    return {int(match[1]): read_schema(path, where) for path, match in names.items() if match}


# --- registries


def read_registry(yaml: Yaml, root: Path, filler: Fills) -> Registry:
    """Returns the registry that a source names; raises `registry-setting` and `registry-file`."""
    yaml.only(REGISTRY_KEYS)
    if not yaml.get("url"):
        raise yaml.error("registry-setting", 'a registry needs "url"', "url: https://registry.example:8081")
    registry = Registry(
        tuple(_url(one, filler) for one in yaml["url"].as_list()),
        _path(yaml.get("path"), filler),
        _login(yaml, filler),
        _pem(yaml.get("ca_file"), root, filler),
        _certificate(yaml, root, filler),
    )
    try:
        if registry.authorities or registry.certificate:
            tls_context(registry)
    except (OSError, ValueError) as error:
        place = yaml.get("certificate_file") or yaml["ca_file"]
        hint = "they are PEM files, and a key is not encrypted"
        raise place.error("registry-file", f"the certificates cannot be used: {error}", hint) from None
    return registry


def _url(yaml: Yaml, filler: Fills) -> str:
    url = filler.text(yaml)
    parts = urlsplit(url)
    if "@" in parts.netloc:
        hint = 'use "user" and "password"'
        raise yaml.error("registry-setting", "the address of a registry has no login in it", hint)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        hint = "url: https://registry.example:8081"
        raise yaml.error("registry-setting", f'"{url}" is not the address of a registry', hint)
    return url


def _path(yaml: Yaml | None, filler: Fills) -> str:
    path = filler.text(yaml).lstrip("/") if yaml else USUAL_PATH
    if yaml and "{number}" not in path:
        raise yaml.error("registry-setting", f'"path" must have {{number}} in it, not "{path}"', f"path: {USUAL_PATH}")
    return path


def _login(yaml: Yaml, filler: Fills) -> str:
    user, password = yaml.get("user"), yaml.get("password")
    if not user and not password:
        return ""
    if not user or not password:
        raise yaml.error("registry-setting", '"user" and "password" go together')
    return f"{filler.text(user)}:{filler.setting('password', password)}"


def _certificate(yaml: Yaml, root: Path, filler: Fills) -> str:
    certificate, key = yaml.get("certificate_file"), yaml.get("key_file")
    if key and not certificate:
        raise key.error("registry-setting", '"key_file" goes with "certificate_file"')
    return "\n".join(_pem(one, root, filler) for one in (certificate, key) if one)


def _pem(yaml: Yaml | None, root: Path, filler: Fills) -> str:
    if not yaml:
        return ""
    path = root / filler.text(yaml)
    if not path.is_file():
        raise yaml.error("registry-file", f'there is no file "{from_here(path)}"')
    return read_text(path)


# --- formats with their schemas


def with_schemas(spec: Format, given: Schemas, word: str, where: Where | None) -> Format:
    """Returns the format with the given schemas, if any, in place of its own. Raises `schema-missing` if the format
    needs schemas and has none, or if it takes none.
    """
    message = spec.message
    if message.encoding != "avro":
        if given:
            what = f'messages of the format "{spec.name}" are not Avro and have no schema'
            raise RunnerError("schema-missing", what, where, f"remove {word}")
        return spec
    if given.has_numbers and message.skip_bytes:
        what = f'the format "{spec.name}" has "skip_bytes", which would skip the numbers of schemas'
        raise RunnerError("schema-missing", what, where, "format: {extends: ..., message: {skip_bytes: none}}")
    has_numbers = given.has_numbers or message.number_bytes > 0
    if has_numbers and not given.has_numbers:
        what = f'the messages of the format "{spec.name}" have numbers of schemas, and no schema is known by number'
        raise RunnerError("schema-missing", what, where, 'give "schema: FOLDER" with files NUMBER.avsc, or a registry')
    if not has_numbers and not given and not message.schemas:
        vendor = f"; the vendor has it at {spec.docs}" if spec.docs else ""
        what = f'the format "{spec.name}" needs the schema of its messages'
        raise RunnerError("schema-missing", what, where, f"give it with {word}{vendor}")
    return replace(
        spec,
        message=replace(
            message,
            schemas=given.texts or message.schemas,
            number_bytes=(message.number_bytes or USUAL_NUMBER_BYTES) if has_numbers else 0,
            known=given.known,
            registry=given.registry,
        ),
    )
