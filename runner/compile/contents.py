"""The contents of a node, as checksums. Two projects whose node has the same checksums make the same of this node."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.compile.library import Library
from runner.errors import Where
from runner.files import read_text
from runner.functions.avro.layout import Registry
from runner.project.inputs import Source
from runner.project.macro_calls import MacroCalls, Named, template_text
from runner.project.mirror import Mirror, MirrorQuery
from runner.project.nodes import (
    Case,
    DataTest,
    Exposure,
    FunctionTest,
    Model,
    Node,
    Project,
    SeedFile,
    SourcesView,
    Subject,
    UnitTest,
)
from runner.project.state import Contents
from runner.render import function_folder
from runner.spec.words import Format
from runner.yaml_text import Yaml

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# Properties for people, and the names before, which have no influence on rows.
OF_PEOPLE = ("description", "label", "tags", "meta", "docs", "about", "config", "renamed_from")
# Fields of models that are not settings.
NO_SETTINGS = (*OF_PEOPLE, "query", "new_rows")


class ContentsOf:
    """Computes the checksums of a project's nodes. Files are read, and nothing is rendered but SQL functions."""

    def __init__(self, project: Project, library: Library) -> None:
        self.project, self.library = project, library
        self.calls = MacroCalls(library.renderer)
        self.closures: dict[tuple[str, ...], str] = {}
        self.formats: dict[int, str] = {}

    def node(self, node: Node) -> Contents:
        """Returns the checksums of all that decides the result of a node."""
        subject = node.subject
        templates = list(_templates(subject))
        named = Named(frozenset(self.calls.renderer.files.keys() & set(_macros(subject))))
        for template in templates:
            named = named.and_also(self.calls.named_in(template))
        out = {"body": checksum(_body(subject)), **_configs(subject)}
        out |= self._macros(named.macros, templates) | self._variables(named)
        if (source := _source(subject)) is not None:
            out[f"format.{source.format.name}"] = self._format(source.format)
            if isinstance(subject, Model):
                out["macros.changelog"] = self._of_formats
        return out

    def _macros(self, macros: Iterable[str], templates: Iterable[str]) -> dict[str, str]:
        """Returns the checksums of the project's macros and SQL functions that templates call, directly or not, and of
        the built-in ones that these call.
        """
        direct = set(macros)
        own = {
            macro: self.calls.text(macro) for macro in self.calls.reached(direct) if not self.calls.is_built_in(macro)
        }
        direct |= {called for text in own.values() for called in self.calls.named_in(text).macros}
        out = {f"macros.{macro}": checksum(text) for macro, text in own.items()}
        out |= {f"macros.{macro}": self._closure((macro,)) for macro in direct - own.keys()}
        functions = self.library.called_by("\n".join([*templates, *own.values()]))
        return out | {f"macros.{function.name}": checksum(function.text) for function in functions}

    def _closure(self, macros: tuple[str, ...]) -> str:
        """Returns one checksum of built-in macros and all that they call."""
        if macros not in self.closures:
            self.closures[macros] = checksum([self.calls.text(macro) for macro in self.calls.reached(macros)])
        return self.closures[macros]

    def _variables(self, named: Named) -> dict[str, str]:
        """Returns the checksums of the variables that templates, and the macros that they call, read."""
        for macro in self.calls.reached(named.macros):
            named = named.and_also(self.calls.named_in(self.calls.text(macro)))
        names = self.project.vars if named.variables is None else named.variables
        return {f"vars.{name}": checksum(self.project.vars.get(name)) for name in names}

    def _format(self, spec: Format) -> str:
        if id(spec) not in self.formats:
            self.formats[id(spec)] = checksum({key: one for key, one in plain(spec).items() if key not in OF_PEOPLE})
        return self.formats[id(spec)]

    @cached_property
    def _of_formats(self) -> str:
        """The checksum of the macros that print the SQL of formats, and of all SQL functions that it may call."""
        built_in = self.library.renderer.built_in
        folders = (built_in / "formats", function_folder(built_in))
        return checksum([read_text(path) for folder in folders for path in sorted(folder.rglob("*.sql"))])


def checksum(value: Any) -> str:
    """Returns the checksum of a value that JSON can write."""
    text = json.dumps(value, ensure_ascii=True, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def plain(value: Any) -> Any:
    """Returns a value as JSON can write it: data without places in files, and without logins."""
    if isinstance(value, (Yaml, Where, Registry)):
        return None
    if is_dataclass(value) and not isinstance(value, type):
        return plain_but(value)
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted((plain(one) for one in value), key=str)
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def plain_but(value: DataclassInstance, *left_out: str) -> dict[str, Any]:
    """Returns the fields of a dataclass as JSON can write them, as `plain` does, without some of them."""
    shown = (field.name for field in fields(value) if field.compare and field.name not in left_out)
    return {name: plain(getattr(value, name)) for name in shown}


def _body(subject: Subject) -> Any:
    """Returns the content of a node as data, without its settings."""
    match subject:
        case Source(written=written) | Model(query=Source(written=written)):
            return {key: value for key, value in written.items() if key not in OF_PEOPLE}
        case Model(query=query):
            return _query(query)
        case DataTest(kind=kind, model=model, arguments=arguments, file=file):
            given = {name: _argument(value) for name, value in arguments.items()}
            return [kind, model, given, template_text(file) if file else ""]
        case UnitTest():
            return plain_but(subject, "file")
        case Case(format=name, path=path):
            stem = path.name.removesuffix(".rows.yml")
            return [name, *(_content(one) for one in sorted(path.parent.glob(f"{stem}.*")))]
        case FunctionTest(tests=tests):
            return tests.value
        case Exposure(properties=properties):
            return {key: value for key, value in properties.items() if key not in OF_PEOPLE}


def _query(query: object) -> Any:
    match query:
        case Path():
            return template_text(query)
        case SeedFile(path=path):
            return _content(path)
        case str():
            return query
        case SourcesView(name=name, sources=sources):
            return [name, [source.name for source in sources]]
        case MirrorQuery(mirror=mirror):
            return [*_mirror(mirror), plain_but(query, "mirror")]
    raise AssertionError(f"no contents of {query!r}")


def _mirror(mirror: Mirror) -> list[Any]:
    tables = [[table.source.name, table.name, table.rows, *map(plain, table.after)] for table in mirror.tables]
    return [tables, plain_but(mirror, "tables")]


def _argument(value: Any) -> Any:
    match value:
        case MirrorQuery():
            return _query(value)
        case Mirror():
            return _mirror(value)
        case _:
            return plain(value)


def _content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _configs(subject: Subject) -> dict[str, str]:
    """Returns the checksums of those settings of a model or a test that differ from their defaults."""
    match subject:
        case Model(query=SeedFile(delimiter=delimiter, types=types)):
            settings = {**_unusual(subject), "delimiter": delimiter, "column_types": types}
        case Model():
            settings = _unusual(subject)
        case DataTest(config=config):
            settings = _unusual(config)
        case _:
            settings = {}
    return {f"configs.{name}": checksum(plain(value)) for name, value in settings.items() if name not in NO_SETTINGS}


def _unusual(settings: Any) -> dict[str, Any]:
    """Returns the settings whose values differ from their defaults. Settings inside a field count one by one."""
    out: dict[str, Any] = {}
    for field in fields(settings):
        value, usual = getattr(settings, field.name), _default(field)
        if is_dataclass(usual):
            out |= _unusual(value)
        elif value != usual:
            out[field.name] = value
    return out


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _templates(subject: Subject) -> Iterator[str]:
    """Returns the texts of the templates that a node is made of."""
    match subject:
        case Model(query=query, pre_hook=before, post_hook=after):
            if isinstance(query, Path):
                yield template_text(query)
            yield from (*before, *after)
        case DataTest(file=Path() as path):
            yield template_text(path)


def _macros(subject: Subject) -> Iterator[str]:
    """Returns the names of the macros that print the SQL of a node, besides those of formats."""
    match subject:
        case Model(query=SourcesView(name=name)):
            yield f"view_{name}"
        case Model(query=MirrorQuery(shows=shows)):
            yield f"mirror_{shows}"
        case DataTest(kind=kind, file=None):
            yield from (f"test_{kind}", f"passes_{kind}")


def _source(subject: Subject) -> Source | None:
    return subject if isinstance(subject, Source) else subject.source if isinstance(subject, Model) else None
