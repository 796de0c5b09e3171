"""ls, check, compile, formats ...: the commands that need no Spark. Each returns the exit code."""

from __future__ import annotations

import importlib.resources
import shutil
from argparse import Namespace
from pathlib import Path
from typing import Any

from runner import artifacts
from runner.commands.workspace import Opened, project_root
from runner.compile.query import compile_format
from runner.contract import MACRO_GLOBALS
from runner.errors import Problems, RunnerError, Where, nearest_or_all
from runner.project.nodes import Case, DataTest, Model, Node
from runner.project.project import built_in_folder, project_folders, read_project
from runner.project.select import select
from runner.render import Renderer
from runner.report import Report, json_text
from runner.spec.formats import FormatFolders
from runner.spec.json_schema import spec_schema


def ls(args: Namespace, report: Report) -> int:
    """One line a node, in the order of the graph."""
    opened = Opened(args)
    names = select(opened.graph, args.select or [], args.exclude or [])
    nodes = [
        opened.graph.nodes[n]
        for n in opened.graph.order()
        if n in names and (not args.resource_type or opened.graph.nodes[n].resource_type == args.resource_type)
    ]
    for node in nodes if args.resource_type or args.select else [n for n in nodes if not isinstance(n.about, Case)]:
        report.payload(_listed(node, args.output))
    return 0


def _listed(node: Node, output: str) -> str:
    if output == "json":
        return json_text(
            {
                "name": node.name,
                "resource_type": node.resource_type,
                "path": node.path,
                "format": node.format,
                "materialized": node.config.get("materialized"),
                "tags": sorted(node.tags),
                "depends_on": list(node.parents),
            }
        )
    if output == "path":
        return node.path
    name = node.name.replace("source.", "source:", 1) if node.resource_type == "source" else node.name
    return name if output == "name" else f"{node.resource_type}:{name}" if node.resource_type != "source" else name


def check(args: Namespace, report: Report) -> int:
    """Reads everything; mistakes are raised before this returns."""
    problems, opened = Problems(), None
    with problems.gathered():
        opened = Opened(args)
    folders = FormatFolders(project_folders(project_root(args), "formats"))
    renderer = (
        opened.renderer
        if opened
        else Renderer(project_folders(project_root(args), "macros"), {**MACRO_GLOBALS, "ref": str})
    )
    for name in folders.names():
        with problems.gathered():
            _check_format(folders, name, renderer)
    problems.raise_if_any()
    assert opened
    counts: dict[str, int] = {}
    for node in opened.graph.nodes.values():
        counts[node.resource_type] = counts.get(node.resource_type, 0) + 1
    counts["format"] = len(folders.names())
    report.payload(
        "all good: "
        + ", ".join(
            f"{count} {kind.replace('_', ' ')}{'s' if count != 1 else ''}" for kind, count in sorted(counts.items())
        )
    )
    return 0


def compile_(args: Namespace, report: Report) -> int:
    """Writes target/compiled; with -q or --inline prints the SQL."""
    opened = Opened(args)
    if args.inline:
        report.payload(opened.renderer.expand(args.inline, Where(Path("--inline")), {}))
        return 0
    nodes = opened.chosen(lambda node: isinstance(node.about, (Model, DataTest)))
    artifacts.write_compiled(opened.project, opened.graph)
    artifacts.write_manifest(opened.project, opened.graph)
    for node in nodes:
        if args.quiet or args.runnable:
            report.payload((opened.renderer.call("runnable") if args.runnable else "") + node.about.sql.rstrip())
        else:
            report.payload(str(artifacts.compiled_path(opened.project, node)))
    return 0


def clean(args: Namespace, report: Report) -> int:
    """Removes what the runner wrote to target/; tables and checkpoints stay, and so does what is not the runner's."""
    project = read_project(args.project_dir, args.target, args.vars, args.target_path)
    for path in (project.target_path / name for name in artifacts.WRITTEN):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    if project.target_path.is_dir() and not any(project.target_path.iterdir()):
        project.target_path.rmdir()
    report.say(f"removed what was written to {project.target_path}")
    return 0


def init(args: Namespace, report: Report) -> int:
    """Writes a small project that builds: one source, its messages, a model with tests."""
    root = Path(args.name)
    if root.is_file() or (root.is_dir() and any(root.iterdir())):
        raise RunnerError("init-exists", f'"{root}" is there and not empty', hint="choose another name")
    starter = importlib.resources.files("runner") / "starter"
    with importlib.resources.as_file(starter) as folder:
        shutil.copytree(folder, root, dirs_exist_ok=True)
    (messages,) = (built_in_folder("formats") / "cases").glob("*/shop.messages.jsonl")
    (root / "messages").mkdir()
    shutil.copyfile(messages, root / "messages" / "shop.jsonl")
    shutil.copytree(built_in_folder("models"), root / "models", dirs_exist_ok=True)
    report.say(f"wrote {root}/. Next: cd {root} && runner build && runner show -s changelog --limit 5")
    return 0


def formats(args: Namespace, report: Report) -> int:
    """list, show NAME, check [NAME] or schema."""
    if args.action == "schema":
        report.payload(json_text(spec_schema()))
        return 0
    folders = FormatFolders(project_folders(project_root(args), "formats"))
    if args.action == "list":
        for name in folders.names():
            report.payload(f"{name.ljust(24)} {folders.about(name)}")
        return 0
    names = [args.name] if args.name else folders.names()
    if args.action == "check":
        problems, renderer = (
            Problems(),
            Renderer(project_folders(project_root(args), "macros"), {**MACRO_GLOBALS, "ref": str}),
        )
        for name in names:
            with problems.gathered():
                _check_format(folders, name, renderer)
        problems.raise_if_any()
        report.payload(f"all good: {len(names)} format{'s' if len(names) != 1 else ''}")
        return 0
    if not args.name:
        raise RunnerError("usage", "formats show needs the name of a format", hint=nearest_or_all("", folders.names()))
    for line in _shown(folders, args.name):
        report.payload(line)
    return 0


def _check_format(folders: FormatFolders, name: str, renderer: Renderer) -> None:
    spec = folders.check(name)
    # A format whose schema its users bring is compiled only with a source.
    if spec and (spec.message.schemas or spec.message.encoding != "avro"):
        compile_format(renderer, spec, name, None)


def _shown(folders: FormatFolders, name: str) -> list[str]:
    """The spec with what it inherits, and behind each key where it was written."""
    spec = folders.resolved(name)
    out = []

    def lines(yaml: Any, depth: int, label: str) -> None:
        pad = "  " * depth
        if isinstance(yaml.value, dict) and depth < 2 and yaml.value:
            out.append(f"{pad}{label}:")
            for key, child in yaml.items():
                lines(child, depth + 1, key)
        else:
            text = yaml.value if isinstance(yaml.value, str) else json_text(yaml.value)
            where = yaml.where()
            out.append(f"{pad}{label}: {text}".ljust(90) + f"  # {where.path.name}:{where.line}")

    for key, child in spec.items():
        lines(child, 0, key)
    return out
