"""init and clean: creating a project, and removing what the runner wrote to target/."""

from __future__ import annotations

import importlib.resources
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import jinja2
import yaml

from runner import artifacts
from runner.commands.arguments import Call, MessagesArguments
from runner.commands.editors import editor_line, write_schemas
from runner.errors import RunnerError, Where, did_you_mean
from runner.files import is_uri
from runner.patterns import escaped, matching, unescaped
from runner.project.project import built_in_folder
from runner.run.workspace import read_project_of
from runner.spec.formats import FormatFolders
from runner.spec.schemas import schemas_at, with_schemas
from runner.yaml_text import Yaml
from runner.zones import read_zone


def init(call: Call, name: str | None, from_dbt: Path | None, format: str | None, files: str | None) -> int:
    """Creates a project that can be built: with the given messages, or a sample with messages, a model and tests."""
    of_messages = {"format": format, "files": files, "zone": call.flags["zone"], "schema": call.flags["schema"]}
    flags = [flag for flag, value in of_messages.items() if value]
    if bool(name) == bool(from_dbt) or (from_dbt and flags):
        hint = "runner init NAME, or: runner init --from-dbt FOLDER"
        raise RunnerError("usage", "init needs the name of a new project, or a project of dbt alone", hint=hint)
    if from_dbt:
        from runner.commands.from_dbt import init_from_dbt

        return init_from_dbt(from_dbt, call.report)
    assert name
    missing = [f'"--{flag}"' for flag in ("format", "files") if flag not in flags]
    if flags and missing:
        hint = f"runner init {name} --format FORMAT --files 'messages/*.jsonl'"
        raise RunnerError("usage", f'"--{flags[0]}" needs {" and ".join(missing)} too', hint=hint)
    messages, root = call.messages(format, files) if format and files else None, Path(name)
    if root.is_file() or (root.is_dir() and any(root.iterdir())):
        raise RunnerError("init-exists", f'"{root}" already exists and is not empty', hint="choose another name")
    project_file = _project_of(messages, root) if messages else sample(root)
    root.mkdir(parents=True, exist_ok=True)
    write_schemas(root)
    (root / "project.yml").write_text(f"{editor_line('project')}\n{project_file}", encoding="utf-8")
    call.report.say(f"wrote {root}/. Next: cd {root} && runner build && runner show -s changelog --limit 5")
    return 0


def sample(root: Path, spark: Mapping[str, str] = MappingProxyType({})) -> str:
    """Writes all files of the sample but project.yml; returns the text of that, with these settings for Spark."""
    (messages,) = (built_in_folder("formats") / "cases").glob("*/shop.messages.jsonl")
    (root / "messages").mkdir(parents=True)
    shutil.copyfile(messages, root / "messages" / "shop.jsonl")
    shutil.copytree(built_in_folder("models"), root / "models", dirs_exist_ok=True)
    about = "The changes in the database of a shop"
    return _project_file(
        root,
        source="shop",
        description=about,
        format=messages.parent.name,
        zone="Asia/Shanghai",
        files="messages/*.jsonl",
        spark=dict(spark),
    )


def _project_of(messages: MessagesArguments, root: Path) -> str:
    """Returns the project.yml of a project with these messages; raises mistakes in the arguments about them."""
    formats = FormatFolders((built_in_folder("formats"),))
    if messages.format not in formats.names():
        own = f"start with one of runner formats list; one of your own is formats/{messages.format}.yml in the project"
        hint = did_you_mean(messages.format, formats.names()) or own
        raise RunnerError("format-unknown", f'there is no format "{messages.format}"', hint=hint)
    spec = formats.load(messages.format)
    with_schemas(spec, schemas_at([(path, None) for path in messages.schemas]), "--schema FILE.avsc", None)
    zone = read_zone(Yaml(messages.zone, {(): Where(Path("--zone"))}))
    if not is_uri(messages.file) and not any(one.is_file() for one in _matching(messages.file)):
        hint = "quote a pattern, so that the shell leaves it as it is: --files 'messages/*.jsonl'"
        raise RunnerError("file-missing", f'no file matches "{messages.file}"', hint=hint)
    files, schemas = _seen_from(root, messages.file), [_seen_from(root, str(path)) for path in messages.schemas]
    return _project_file(root, source="messages", format=messages.format, zone=zone, files=files, schemas=schemas)


def _matching(place: str) -> list[Path]:
    """Returns the files of a pattern or a folder."""
    pattern = place if place.startswith("/") else f"{escaped(str(Path.cwd()))}/{place}"
    return matching(f"{pattern}/*" if Path(unescaped(pattern)).is_dir() else pattern)


def _seen_from(root: Path, place: str) -> str:
    """Returns a path of the current folder as project.yml in another folder has it."""
    return place if is_uri(place) or place.startswith("/") else os.path.relpath(place, root)


def _project_file(root: Path, **values: object) -> str:
    template = (importlib.resources.files("runner") / "starter" / "project.yml.jinja").read_text(encoding="utf-8")
    environment = jinja2.Environment(keep_trailing_newline=True)
    environment.filters["yaml"] = _yaml
    return environment.from_string(template).render(name=root.absolute().name, **values)


def _yaml(value: object) -> str:
    """Returns a value as YAML on one line.

    >>> _yaml("demo"), _yaml("*.jsonl"), _yaml(["a.avsc"])
    ('demo', "'*.jsonl'", '[a.avsc]')
    """
    text: str = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=float("inf"))
    return text.removesuffix("...\n").rstrip("\n")


def clean(call: Call) -> int:
    """Removes what the runner wrote to target/. Tables, checkpoints and other files in target/ stay."""
    project = read_project_of(call.project)
    for path in (project.target_path / name for name in artifacts.WRITTEN):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    if project.target_path.is_dir() and not any(project.target_path.iterdir()):
        project.target_path.rmdir()
    call.report.say(f"removed what the runner wrote to {project.target_path}")
    return 0
