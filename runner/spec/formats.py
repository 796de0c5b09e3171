"""The folders of format specs: finding `formats/*.yml`, inheritance between specs, and tables of types."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from runner.errors import Problems, RunnerError, nearest_or_all
from runner.spec.read import check_parts, read_format
from runner.spec.values import one_of
from runner.spec.vocabulary import CLASSES, MERGED, VALUE_READERS
from runner.spec.words import Format, TypeTable
from runner.yaml_text import Steps, Yaml, read_yaml

# Formats that one format extends, each counted as often as it is extended, and tables of types that one extends.
MOST_PARENTS = 200


@dataclass(frozen=True)
class FormatFolders:
    """Folders with specs, the user's before the built-in ones. A spec may extend a spec of the same name in a later
    folder.
    """

    folders: tuple[Path, ...]

    def names(self) -> list[str]:
        return sorted({path.stem for folder in self.folders for path in folder.glob("*.yml")})

    def load(self, name: str, asked_by: Yaml | None = None) -> Format:
        """Returns the format of that name, with inherited parts; raises `format-unknown`, or all mistakes in the
        spec.
        """
        return self.read(name, self._resolve(name, (), asked_by))

    def check(self, name: str) -> Format | None:
        """Returns the format of that name; None for a spec without `op`, which is there to be extended by others."""
        spec = self._resolve(name, (), None)
        if spec.mapping().get("op"):
            return self.read(name, spec)
        check_parts(spec, self._type_table)
        return None

    def about(self, name: str) -> str:
        """Returns the line `about` of a spec."""
        about = self._resolve(name, (), None).mapping().get("about")
        return about.text() if about else ""

    def resolved(self, name: str) -> Yaml:
        """Returns the spec of that name, with the parts that it inherits."""
        return self._resolve(name, (), None)

    def resolved_at(self, path: Path) -> Yaml:
        """Returns the spec in a file, with the parts that it inherits, as if it stood in place of the spec of the same
        name in the first folder.
        """
        replaced = _first(self.folders[:1], path.stem, ())
        return self._inherit(read_yaml(path), (path, *([replaced] if replaced else ())), [path])

    def read(self, name: str, spec: Yaml) -> Format:
        """Returns the format that a resolved spec describes; raises all mistakes in it."""
        return read_format(name, spec, self._type_table)

    def inline(self, spec: Yaml) -> Yaml:
        """Returns a spec that is written inside a source, with the parts that it inherits."""
        return self._inherit(spec, (), [])

    def _resolve(
        self, name: str, below: tuple[Path, ...], asked_by: Yaml | None, read: list[Path] | None = None
    ) -> Yaml:
        """Returns the spec of that name, with the parts that it inherits. `below` are the specs that extend it, each
        extending the next; `read` are all files read for the first of them.
        """
        path = _first(self.folders, name, below)
        read = [] if read is None else read
        if len(read) > MOST_PARENTS:
            message = f"formats that extend others read more than {MOST_PARENTS} files"
            raise _error(asked_by, "format-cycle", message, "extend fewer, and none twice")
        if path is None:
            if any(p.stem == name for p in below):
                raise _error(
                    asked_by,
                    "format-cycle",
                    f'the format "{name}" extends itself',
                    "only a spec that shadows a built-in one may extend its own name",
                )
            raise _error(asked_by, "format-unknown", f'there is no format "{name}"', nearest_or_all(name, self.names()))
        read.append(path)
        return self._inherit(read_yaml(path), (*below, path), read)

    def _inherit(self, spec: Yaml, below: tuple[Path, ...], read: list[Path]) -> Yaml:
        parents = spec.mapping().get("extends")
        out: Yaml | None = None
        for parent in parents.as_list() if parents else ():
            resolved = self._resolve(parent.text(), below, parent, read)
            out = merge(out, resolved) if out else resolved
        return merge(out, spec) if out else spec

    def _type_table(self, asked_by: Yaml, below: tuple[Path, ...] = ()) -> TypeTable:
        """Returns the table of types of that name: its own types, and those of the table that it extends."""
        name = asked_by.text()
        path = _first((f / "types" for f in self.folders), name, below)
        if path is None or len(below) > MOST_PARENTS:
            known = {p.stem for f in self.folders for p in (f / "types").glob("*.yml")}
            raise asked_by.error("types-unknown", f'there is no type table "{name}"', nearest_or_all(name, known))
        yaml = read_yaml(path)
        own, extends = read_type_table(name, yaml), yaml.mapping().get("extends")
        if not extends:
            return own
        parent = self._type_table(extends, (*below, path))
        kept = {type_name: reader for type_name, reader in parent.readers.items() if type_name not in own.classes}
        return TypeTable(name, {**parent.classes, **own.classes}, {**kept, **own.readers})


def _first(folders: Iterable[Path], name: str, but: Collection[Path]) -> Path | None:
    """Returns the first file of that name in the folders. The name may be anything, so no path is made of it."""
    return next((p for f in folders for p in f.glob("*.yml") if p.stem == name and p not in but), None)


def merge(parent: Yaml, child: Yaml) -> Yaml:
    """Returns the parent's spec, changed by the child's: keys in MERGED are merged by member, all others replaced."""
    inherited = {(*child.steps, *steps): where for steps, where in parent.places.items()}
    return Yaml(_merged(parent.value, child.value, ()), {**inherited, **child.places}, child.steps)


def _merged(parent: object, child: object, steps: Steps) -> object:
    if steps not in MERGED or not isinstance(parent, dict) or not isinstance(child, dict):
        return child
    kept = {key: value for key, value in parent.items() if key != "extends"}
    return {**kept, **{key: _merged(kept.get(key), value, (*steps, key)) for key, value in child.items()}}


def read_type_table(name: str, yaml: Yaml) -> TypeTable:
    """Returns the table of types in a file such as `integer: [int, bigint]`. An entry may be {name, as} if the type
    decides how its values are written: by one reader, or by the first of several that fits.
    """
    problems = Problems()
    classes: dict[str, str] = {}
    readers: dict[str, tuple[str, ...]] = {}
    for class_name, entries in yaml.mapping().items():
        with problems.gathered():
            if class_name in ("about", "extends"):
                continue
            if class_name not in CLASSES:
                raise entries.error("spec-class", f'unknown class "{class_name}"', nearest_or_all(class_name, CLASSES))
            for entry in entries.as_list():
                type_name = _written_name(entry).lower()
                if classes.setdefault(type_name, class_name) != class_name:
                    raise entry.error("spec-class", f'the type "{_written_name(entry)}" is in two classes')
                if isinstance(entry.value, dict) and entry.get("as"):
                    words = entry["as"].as_list()
                    readers[type_name] = tuple(one_of(one, VALUE_READERS, "spec-reader", "reader") for one in words)
    problems.raise_if_any()
    return TypeTable(name, classes, readers)


def _written_name(entry: Yaml) -> str:
    if not isinstance(entry.value, dict):
        return entry.text()
    entry.only(["name", "as"])
    if not entry.get("name"):
        raise entry.error("spec-missing", 'a type needs a "name"')
    return entry["name"].text()


def _error(asked_by: Yaml | None, code: str, message: str, hint: str) -> RunnerError:
    return asked_by.error(code, message, hint) if asked_by else RunnerError(code, message, hint=hint)
