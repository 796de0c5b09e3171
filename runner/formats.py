"""formats/*.yml -> Format: where specs are found, and what they inherit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from runner.errors import Problems, RunnerError, nearest_or_all
from runner.spec import CLASSES, MERGED, Format, TypeTable, read_format
from runner.yaml_text import Steps, Yaml, read_yaml


@dataclass(frozen=True)
class FormatFolders:
    """Folders with specs, the user's before the built-in ones: a spec there may extend one of the same name behind it."""

    folders: tuple[Path, ...]

    def names(self) -> list[str]:
        return sorted({path.stem for folder in self.folders for path in folder.glob("*.yml")})

    def load(self, name: str, asked_by: Yaml | None = None) -> Format:
        """The format of that name, with what it inherits; raises `format-unknown` or all mistakes in the spec."""
        return self.read(name, self._resolve(name, (), asked_by))

    def read(self, name: str, spec: Yaml) -> Format:
        return read_format(name, spec, self._type_table)

    def inline(self, spec: Yaml) -> Yaml:
        """A spec written at its source, with what it inherits."""
        return self._inherit(spec, ())

    def _resolve(self, name: str, below: tuple[Path, ...], asked_by: Yaml | None) -> Yaml:
        path = next((p for p in (f / f"{name}.yml" for f in self.folders) if p.is_file() and p not in below), None)
        if path is None:
            if any(p.stem == name for p in below):
                raise _error(asked_by, "format-cycle", f'the format "{name}" extends itself', "only a spec that shadows a built-in one may extend its own name")
            raise _error(asked_by, "format-unknown", f'there is no format "{name}"', nearest_or_all(name, self.names()))
        return self._inherit(read_yaml(path), (*below, path))

    def _inherit(self, spec: Yaml, below: tuple[Path, ...]) -> Yaml:
        parents = spec.mapping().get("extends")
        out: Yaml | None = None
        for parent in parents.listed() if parents else ():
            resolved = self._resolve(parent.text(), below, parent)
            out = merge(out, resolved) if out else resolved
        return merge(out, spec) if out else spec

    def _type_table(self, asked_by: Yaml) -> TypeTable:
        name = asked_by.text()
        path = next((p for p in (f / "types" / f"{name}.yml" for f in self.folders) if p.is_file()), None)
        if path is None:
            known = {p.stem for f in self.folders for p in (f / "types").glob("*.yml")}
            raise asked_by.error("types-unknown", f'there is no type table "{name}"', nearest_or_all(name, known))
        return read_type_table(name, read_yaml(path))


def merge(parent: Yaml, child: Yaml) -> Yaml:
    """The child's spec over its parent's: see MERGED for the keys whose members are merged, all others are replaced whole."""
    inherited = {(*child.steps, *steps): where for steps, where in parent.places.items()}
    return Yaml(_merged(parent.value, child.value, ()), {**inherited, **child.places}, child.steps)


def _merged(parent: object, child: object, steps: Steps) -> object:
    if steps not in MERGED or not isinstance(parent, dict) or not isinstance(child, dict):
        return child
    kept = {key: value for key, value in parent.items() if key != "extends"}
    return {**kept, **{key: _merged(kept.get(key), value, (*steps, key)) for key, value in child.items()}}


def read_type_table(name: str, yaml: Yaml) -> TypeTable:
    problems = Problems()
    classes: dict[str, str] = {}
    for class_name, names in yaml.mapping().items():
        with problems.gathered():
            if class_name == "about":
                continue
            if class_name not in CLASSES:
                raise names.error("spec-class", f'unknown class "{class_name}"', nearest_or_all(class_name, CLASSES))
            for one in names.listed():
                if classes.setdefault(one.text().lower(), class_name) != class_name:
                    raise one.error("spec-class", f'the type "{one.text()}" is in two classes')
    problems.raise_if_any()
    return TypeTable(name, classes)


def _error(asked_by: Yaml | None, code: str, message: str, hint: str) -> RunnerError:
    return asked_by.error(code, message, hint) if asked_by else RunnerError(code, message, hint=hint)
