"""run, test, build, compile ...: the few lines that call the stages. Each returns the exit code."""

from __future__ import annotations

import importlib.resources
import shutil
import sys
import tempfile
import uuid
from argparse import Namespace
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner import artifacts
from runner.compile import compile_format, reads
from runner.contract import COLUMNS, MACRO_GLOBALS, RUN_COLUMNS
from runner.errors import Problems, RunnerError, Where, did_you_mean, nearest_or_all
from runner.formats import FormatFolders
from runner.graph import Graph
from runner.nodes import Case, DataTest, Model, Node, Project, Target, UnitTest
from runner.parse import Parser
from runner.project import built_in_folder, find_project, project_folders, read_project, with_schemas
from runner.render import Renderer
from runner.render import name as quoted
from runner.report import Report, json_text
from runner.select import select
from runner.spec_messages import read_schema
from runner.spec_schema import spec_schema
from runner.yaml_text import Yaml
from runner.zones import read_zone

if TYPE_CHECKING:
    from runner.avro_files import FileMessage
    from runner.spark import Spark

Wanted = Callable[[Node], bool]


class Opened:
    """A project with its graph, and what was chosen of it."""

    def __init__(self, args: Namespace) -> None:
        self.project: Project = read_project(args.project_dir, args.target, args.vars, args.target_path)
        parser = Parser(self.project)
        self.graph = Graph(parser.nodes_of_project())
        self.reads = reads(parser.renderer)
        self.renderer = parser.renderer
        self.args = args

    def chosen(self, wanted: Wanted = lambda node: True) -> list[Node]:
        """The chosen nodes of a kind; raises if there is none."""
        names = select(self.graph, self.args.select or [], self.args.exclude or [])
        nodes = [self.graph.nodes[name] for name in self.graph.order() if name in names and wanted(self.graph.nodes[name])]
        if not nodes:
            what = " ".join(self.args.select or []) or "the project"
            raise RunnerError("selector-empty", f'nothing to do: "{what}" holds nothing that this command works on', hint="runner ls shows what there is")
        return nodes


# --- without a JVM -----------------------------------------------------------------------------------------------------------------


def ls(args: Namespace, report: Report) -> int:
    """One line a node, in the order of the graph."""
    opened = Opened(args)
    names = select(opened.graph, args.select or [], args.exclude or [])
    nodes = [opened.graph.nodes[n] for n in opened.graph.order() if n in names and (not args.resource_type or opened.graph.nodes[n].resource_type == args.resource_type)]
    for node in nodes if args.resource_type or args.select else [n for n in nodes if not isinstance(n.about, Case)]:
        report.payload(_listed(node, args.output))
    return 0


def _listed(node: Node, output: str) -> str:
    if output == "json":
        return json_text(
            {"name": node.name, "resource_type": node.resource_type, "path": node.path, "format": node.format, "materialized": node.config.get("materialized"), "tags": sorted(node.tags), "depends_on": list(node.parents)}
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
    folders = FormatFolders(project_folders(_project_root(args), "formats"))
    renderer = opened.renderer if opened else Renderer(project_folders(_project_root(args), "macros"), {**MACRO_GLOBALS, "ref": str})
    for name in folders.names():
        with problems.gathered():
            _check_format(folders, name, renderer)
    problems.raise_if_any()
    assert opened
    counts: dict[str, int] = {}
    for node in opened.graph.nodes.values():
        counts[node.resource_type] = counts.get(node.resource_type, 0) + 1
    counts["format"] = len(folders.names())
    report.payload("all good: " + ", ".join(f"{count} {kind.replace('_', ' ')}{'s' if count != 1 else ''}" for kind, count in sorted(counts.items())))
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
    folders = FormatFolders(project_folders(_project_root(args), "formats"))
    if args.action == "list":
        for name in folders.names():
            report.payload(f"{name.ljust(24)} {folders.about(name)}")
        return 0
    names = [args.name] if args.name else folders.names()
    if args.action == "check":
        problems, renderer = Problems(), Renderer(project_folders(_project_root(args), "macros"), {**MACRO_GLOBALS, "ref": str})
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


# --- with Spark ----------------------------------------------------------------------------------------------------------------------


def run(args: Namespace, report: Report) -> int:
    return _execute(args, report, lambda node: isinstance(node.about, Model))


def test(args: Namespace, report: Report) -> int:
    def wanted(node: Node) -> bool:
        is_unit = isinstance(node.about, (UnitTest, Case))
        return (isinstance(node.about, DataTest) and not args.unit) or (is_unit and not args.data)

    return _execute(args, report, wanted)


def build(args: Namespace, report: Report) -> int:
    return _execute(args, report, lambda node: node.resource_type != "source")


def _execute(args: Namespace, report: Report, wanted: Wanted) -> int:
    """Run what was selected, in order, and say how it went."""
    opened = Opened(args)
    project, graph = opened.project, opened.graph
    names = [node.name for node in _with_tests(opened, wanted)]
    artifacts.write_compiled(project, graph)
    artifacts.write_manifest(project, graph)
    run_id = f"{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}-{uuid.uuid4().hex[:8]}"
    with _spark(project) as spark:  # the first moment a JVM exists
        from runner.execute import Execution

        execution = Execution(graph, spark, project.target, run_id, opened.reads, lambda node: artifacts.compiled_path(project, node), getattr(args, "full_refresh", False))
        results = execution.run(names, report, args.fail_fast)
    artifacts.write_results(project, graph, run_id, results)
    report.done(results)
    return 1 if any(r.status in ("error", "fail") for r in results) else 0


def _with_tests(opened: Opened, wanted: Wanted) -> list[Node]:
    """The chosen nodes of a kind, and the tests of the models that were chosen."""
    chosen = select(opened.graph, opened.args.select or [], opened.args.exclude or [])
    excluded = select(opened.graph, opened.args.exclude) if opened.args.exclude else set()
    about_chosen = {n for n, node in opened.graph.nodes.items() if node.resource_type in ("test", "unit_test") and set(node.parents) & chosen} - excluded
    nodes = [opened.graph.nodes[n] for n in opened.graph.order() if n in chosen | about_chosen and wanted(opened.graph.nodes[n])]
    return nodes or opened.chosen(wanted)


def show(args: Namespace, report: Report) -> int:
    """The first rows of a model, from what is in the tables now."""
    if not args.select and not args.inline:
        raise RunnerError("usage", "show needs -s MODEL or --inline SQL")
    opened = Opened(args)
    if args.inline:
        graph, node = _with_inline(opened)
    else:
        graph = opened.graph
        nodes = opened.chosen(lambda n: isinstance(n.about, Model))
        if len(nodes) > 1:
            raise RunnerError("usage", f"show takes one model, and {len(nodes)} are selected: {', '.join(n.name for n in nodes[:5])}")
        node = nodes[0]
    with _spark(opened.project) as spark:
        from runner.execute import Execution
        from runner.spark import QueryFailed

        execution = Execution(graph, spark, opened.project.target, "", opened.reads, lambda n: artifacts.compiled_path(opened.project, n))
        try:
            execution.prepare(node.name)
            execution.view_of(node)
            columns, rows = spark.rows(f"select * from {quoted(node.name)}", args.limit)
        except QueryFailed as failure:
            report.broken(f"error[query]: {failure.message}")
            return 1
    if args.output == "json":
        report.json_lines(rows)
    else:
        report.table(columns, rows)
    return 0


def _with_inline(opened: Opened) -> tuple[Graph, Node]:
    """The graph with the query of --inline in it as a model, which reads what it names with or without ref()."""
    from runner.lineage import tables_read

    parser = Parser(opened.project)
    sql = parser.renderer.expand(opened.args.inline, Where(Path("--inline")), {})
    read = tables_read(sql, [n for n, other in opened.graph.nodes.items() if isinstance(other.about, Model)])
    node = Node("inline", "model", tuple(dict.fromkeys([*parser.reading.parents, *read])), about=Model(sql, "view"))
    return Graph({**opened.graph.nodes, "inline": node}), node


def parse(args: Namespace, report: Report) -> int:
    """What a file of messages becomes: a table on a terminal, else one JSON object a row."""
    folders = FormatFolders(project_folders(_project_root(args), "formats"))
    schemas = tuple(read_schema(path, None) for path in args.schema)
    spec = with_schemas(folders.load(args.format), schemas, "--schema FILE.avsc", None)
    renderer = Renderer(project_folders(_project_root(args), "macros"), {**MACRO_GLOBALS, "ref": str})
    zone = read_zone(Yaml(args.zone, {(): Where(Path("--zone"))}))
    query = compile_format(renderer, spec, args.format, zone)
    messages, lines = _messages(args.file, query.encoding)
    target = Target("parse", Path(tempfile.gettempdir()) / "runner-parse")
    with _open_spark(target, Path(target.path) / "logs" / "spark.log") as spark:
        spark.messages_at_hand(messages, query.encoding, f"{args.format}_messages")
        spark.know(query.functions)
        _, rows = spark.rows(query.sql)
    rows = sorted(rows, key=lambda r: (r["seq"]["arrival"], r["seq"]["row"]))
    rows = [r for r in rows if not args.kind or r["kind"] == args.kind]
    shown = rows[: args.limit] if args.limit is not None else rows
    if args.output == "json" or (args.output is None and not report.stdout.isatty()):
        report.json_lines({c: row.get(c) for c in COLUMNS if c not in RUN_COLUMNS} for row in shown)
    else:
        report.table(["line", "kind", "op", "table", "key", "changed"], [_parsed(row, lines[row["seq"]["arrival"][0]]) for row in shown])
        counts = {kind: sum(r["kind"] == kind for r in rows) for kind in ("row", "ddl", "control", "dead_letter")}
        report.payload(f"{len(messages)} messages: " + ", ".join(f"{n} {kind}" for kind, n in counts.items()))
    return 0


def _messages(file: str, encoding: str) -> tuple[list[FileMessage], list[int]]:
    """The messages of a file, and for each the line where it begins, or its number where there are no lines."""
    from runner.avro_files import FileMessage
    from runner.documents import messages_of, split_messages

    content = _read(file)
    if encoding == "avro":
        messages = messages_of(file.removesuffix(".gz"), content, encoding)
        return messages, list(range(1, len(messages) + 1))
    split = split_messages(content)
    return [FileMessage(0, 0, m.text) for m in split], [m.line for m in split]


def _parsed(row: dict[str, Any], line: int) -> dict[str, Any]:
    table = ".".join(row[c] for c in ("tenant", "db_name", "schema_name", "table_name") if row[c] is not None)
    changed = f"{row['reason']}: {row['detail']}" if row["reason"] else ", ".join(row["changed"] or [])
    return {"line": line, "kind": row["kind"], "op": row["op"], "table": table, "key": row["key_text"], "changed": changed.removesuffix(": None")}


def _read(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    path = Path(file)
    if not path.is_file():
        near = did_you_mean(path.name, [p.name for p in path.parent.glob("*")] if path.parent.is_dir() else [])
        raise RunnerError("file-missing", f'"{file}" is a folder' if path.is_dir() else f'there is no file "{file}"', hint="" if path.is_dir() else near)
    if path.suffix == ".gz":
        import gzip

        try:
            return gzip.decompress(path.read_bytes())
        except (OSError, EOFError) as e:
            raise RunnerError("file-gzip", f'cannot unpack "{file}": {str(e)[:1].lower()}{str(e)[1:]}') from None
    return path.read_bytes()


def _spark(project: Project) -> Spark:
    return _open_spark(project.target, project.target_path / "logs" / "spark.log")


def _open_spark(target: Any, log: Path) -> Spark:
    from runner.spark import Spark

    return Spark(target, log)


def _project_root(args: Namespace) -> Path | None:
    try:
        return (args.project_dir or find_project(Path.cwd())).absolute()
    except RunnerError:
        return None
