"""The reader of a project's files: the nodes of sources, models, mirrors, seeds, tests and cases. Compiles no SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath

from runner.errors import Problems, RunnerError, RunnerWarning, Where, did_you_mean
from runner.project.many_mirrors import Mirrors
from runner.project.mirrors import generated_tests, mirror_names, mirror_nodes, mirror_tests
from runner.project.models import (
    VIEWS,
    check_new_rows,
    conserved,
    model_node,
    nodes_of_source,
    seed_files,
    seed_node,
    views,
    with_properties,
)
from runner.project.nodes import Case, Exposure, Graph, Model, Node, Project
from runner.project.properties import (
    COLUMN_KEYS,
    EXPOSURE_KEYS,
    data_tests,
    doc_blocks,
    entries,
    optional_text,
    properties_by_name,
    read_property_file,
    with_docs,
)
from runner.project.settings import as_tuple
from runner.project.sources import external_tables
from runner.project.templates import Templates
from runner.project.tests import Tests, function_tests
from runner.render import function_folder
from runner.yaml_text import Yaml, yaml_files


def read_properties(project: Project, problems: Problems) -> list[Yaml]:
    """Returns the property files of the project. Mistakes are added to `problems`; files with mistakes are left out."""
    blocks = doc_blocks(sorted((project.root / "models").rglob("*.md")), problems)
    read = [read for path in _property_files(project) if (read := read_property_file(path, problems))]
    return [with_docs(file, blocks, problems) for file in read]


def names_of_files(project: Project) -> dict[str, Where]:
    """Returns the names of all models but mirrors, each with the place where it is written."""
    paths = (*_model_files(project), *seed_files(project))
    sources = {source.model: source.where for source in project.sources}
    views = dict.fromkeys(VIEWS, Where(project.root / "project.yml"))
    return {**views, **sources, **{path.stem: Where(path) for path in paths}}


def read_templates(project: Project, properties: list[Yaml], mirrors: Mirrors, problems: Problems) -> Templates:
    """Returns the project's templates, which know the names of all its models and the tables that others make; raises
    mistakes in its macros. Mistakes in these tables are added to `problems`.
    """
    models = {*names_of_files(project), *(name for entry in mirrors.entries for name in mirror_names(entry))}
    return Templates(project, models, external_tables(project, properties, problems), mirrors.awaited)


def parse(project: Project, files: list[Yaml], mirrors: Mirrors, templates: Templates, problems: Problems) -> Nodes:
    """Returns all nodes of the project, whose property files are `files` and whose mirrors are `mirrors`. Mistakes are
    added to `problems`, and nodes with mistakes are left out. From then on the templates know the names of the nodes'
    tables and views.
    """
    nodes = Nodes(project, problems)
    for source in project.sources:
        for node in nodes_of_source(source):
            nodes.add(node)
    for node in views(project.sources):
        nodes.add(node)
    described, described_seeds = (properties_by_name(files, key, problems) for key in ("models", "seeds"))
    tests = Tests(project, templates, nodes.by_name)
    for node, written in templates.foreign.values():
        nodes.add(node)
        with problems.gathered():
            _add_data_tests(nodes, tests, node, written)
    for entry in mirrors.entries:
        with problems.gathered() if entry.value["name"] not in mirrors.by_rule else _of_rule(entry, nodes):
            _add_mirror(nodes, tests, entry)
    _add_seeds(nodes, tests, described_seeds)
    _add_models(nodes, tests, described)
    for node in nodes.by_name.values():
        with problems.gathered():
            check_new_rows(node, nodes.by_name)
    for entry in (entry for file in files for entry in entries(file, "exposures", EXPOSURE_KEYS, problems)):
        with problems.gathered():
            nodes.add(_exposure(entry, nodes, templates))
    _add_tests(nodes, tests, files)
    _leave_out_waiting(nodes, templates)
    _check_parents(nodes)
    _check_former(nodes)
    templates.relations = {name: node.relation for name, node in nodes.by_name.items()}
    if not project.sources:
        _leave_out_unreadviews(nodes)
    return nodes


def _add_tests(nodes: Nodes, tests: Tests, files: Iterable[Yaml]) -> None:
    """Adds the tests that are not written with a model: tests of sources, unit tests, and tests in their own files."""
    for source in nodes.project.sources:
        nodes.add(conserved(source))
    for entry in (entry for file in files for entry in _unit_tests(file)):
        with nodes.problems.gathered():
            # A model that could not be read has no tests: its mistake is already among the problems.
            if (test := tests.unit_test(entry)) is not None:
                nodes.add(test)
    for path in yaml_files(function_folder(nodes.project.root / "macros")):
        with nodes.problems.gathered():
            for node in function_tests(path, nodes.project):
                nodes.add(node)
    for path in _singular_tests(nodes.project):
        with nodes.problems.gathered():
            if singular := tests.singular_test(path):
                nodes.add(singular)
    for path in sorted((nodes.project.root / "formats" / "cases").glob("*/*.rows.yml")):
        nodes.add(_case(path, nodes))


# Names of files have at most 255 bytes, and these files have more in theirs than the name of their node.
MOST_OF_NAME = 200


class Nodes:
    """The nodes found so far. `by_relation` are those that have a table or view of a name, their own or one beside it;
    `disabled` are the names of models that are not enabled, `waiting` those of models that read the mirror, or another
    such model, of a table that has not landed yet. `warnings` are about mirrors that rules cannot make.
    """

    def __init__(self, project: Project, problems: Problems) -> None:
        self.project, self.problems = project, problems
        self.by_name: dict[str, Node] = {}
        self.by_relation: dict[str, Node] = {}
        self.disabled: set[str] = set()
        self.waiting: dict[str, str] = {}
        self.warnings: list[RunnerWarning] = []

    def add(self, node: Node) -> None:
        parts = PurePath(node.name).parts
        if ".." in parts or parts[:1] == ("/",):
            message, hint = f'the name "{node.name}" leads out of a folder', "its SQL is written to a file of this name"
            self.problems.add(RunnerError("node-name", message, node.where, hint))
            return
        if too_long := [name for name in (*parts, *node.relations) if len(name.encode()) > MOST_OF_NAME]:
            message, hint = f'the name "{too_long[0]}" is too long', f"{MOST_OF_NAME} bytes at most: it names files too"
            self.problems.add(RunnerError("node-name", message, node.where, hint))
            return
        owners = [(node.name, self.by_name.setdefault(node.name, node))]
        owners += [(name, self.by_relation.setdefault(name, node)) for name in node.relations]
        for name, owner in {name: owner for name, owner in owners if owner is not node}.items():
            message, by = f'the name "{name}" is taken', f"by {owner.resource_type} {owner.path}"
            self.problems.add(RunnerError("name-taken", message, node.where, by))

    def graph(self) -> Graph:
        """Returns the graph of the nodes; raises `ref-unknown` and `cycle`."""
        return Graph(self.by_name, self.project.name, frozenset(self.disabled))


def _model_files(project: Project) -> list[Path]:
    return sorted((project.root / "models").rglob("*.sql"))


def _property_files(project: Project) -> list[Path]:
    return [path for folder in ("models", "seeds") for path in yaml_files(project.root / folder)]


def _singular_tests(project: Project) -> list[Path]:
    """Returns the files in tests/, without those of folders that are projects of their own."""
    folder = project.root / "tests"
    others = {path.parent for path in folder.rglob("project.yml")}
    return sorted(path for path in folder.rglob("*.sql") if not others.intersection(path.parents))


# --- cases


def _case(path: Path, nodes: Nodes) -> Node:
    """Returns the case of a file `NAME.rows.yml`, which is read only when the case is compiled."""
    case = Case(path.parent.name, path)
    name = f"{case.format}.{path.name.removesuffix('.rows.yml')}"
    return Node(name, "unit_test", case, path=nodes.project.relative(path), format=case.format, where=Where(path, 1, 1))


# --- properties


def _unit_tests(file: Yaml) -> list[Yaml]:
    return file["unit_tests"].list().elements() if file.get("unit_tests") else []


def _leave_out_unreadviews(nodes: Nodes) -> None:
    """Removes the views of all sources that nothing reads, from a project that has no source."""
    read = {parent for node in nodes.by_name.values() for parent in node.parents}
    for view in VIEWS.keys() - read:
        del nodes.by_name[view]


def _leave_out_waiting(nodes: Nodes, templates: Templates) -> None:
    """Removes the nodes that read mirrors of tables that have not landed yet, and all that read those."""
    gone: set[str] = set()
    while True:
        waiting = {
            node.name: missing
            for node in nodes.by_name.values()
            if (missing := [one for one in node.parents if one in gone or _is_awaited(one, nodes, templates)])
        }
        if not waiting:
            return
        gone |= waiting.keys()
        for name, missing in waiting.items():
            if nodes.by_name.pop(name).model:
                nodes.waiting[name] = missing[0]


def _is_awaited(name: str, nodes: Nodes, templates: Templates) -> bool:
    return name not in nodes.by_name and name not in nodes.disabled and templates.awaits(name)


def _check_parents(nodes: Nodes) -> None:
    """Adds `ref-disabled` for each node that reads a model which is not enabled."""
    for node in nodes.by_name.values():
        for parent in sorted(nodes.disabled.intersection(node.parents)):
            message = f'"{node.label}" reads "{parent}", which is not enabled'
            hint = f'enable "{parent}", or disable what reads it'
            nodes.problems.add(RunnerError("ref-disabled", message, node.where, hint))


def _check_former(nodes: Nodes) -> None:
    """Adds `renamed-from` for each former name that a table still has, or that two tables had."""
    owners: dict[str, Node] = {}
    for node in nodes.by_name.values():
        for name in node.model.renamed_from if node.model else ():
            has = nodes.by_relation.get(name)
            other = has or owners.setdefault(name, node)
            if other is not node or has:
                says = "is still the name of" if has else "is also a former name of"
                message = (
                    f'"{name}", from which "{node.relation}" is renamed, {says} {other.resource_type} {other.path}'
                )
                hint = "a name is taken from one table, which no longer has it"
                nodes.problems.add(RunnerError("renamed-from", message, node.where, hint))


def _exposure(entry: Yaml, nodes: Nodes, templates: Templates) -> Node:
    config = dict(entry["config"].mapping().value) if entry.get("config") else {}
    tags = as_tuple(config.get("tags", entry.value.get("tags")))
    problems, read, where = Problems(), list[str](), entry.where()
    for one in entry["depends_on"].list().elements() if entry.get("depends_on") else ():
        with problems.gathered():
            read += _named_by(one, templates)
    problems.raise_if_any()
    return Node(
        f"exposure.{entry['name'].text()}",
        "exposure",
        Exposure(dict(entry.value)),
        tuple(dict.fromkeys(read)),
        frozenset(tags),
        nodes.project.relative(where.path),
        optional_text(entry.get("description")),
        where=where,
    )


def _named_by(yaml: Yaml, templates: Templates) -> Iterable[str]:
    """Returns the node that an exposure names by `ref(...)` or `source(...)`, as in a template, or by a model's
    name.
    """
    text = yaml.text().strip()
    call = text if "(" in text else f"ref({text!r})"
    return templates.expand(f"{{{{ {call} }}}}", yaml.where())[1].parents


# --- mirrors


@contextmanager
def _of_rule(entry: Yaml, nodes: Nodes) -> Iterator[None]:
    """Keeps the mistakes that the block finds in a mirror of a rule. Those that no person has written come from what
    has landed: they become warnings, so that the project can be used all the same.
    """
    problems = Problems()
    with problems.gathered():
        yield
    for error in problems.errors:
        if error.where == entry.where():
            what = f'no mirror "{entry.value["name"]}": {error.message}'
            nodes.warnings.append(RunnerWarning("mirror-rule-table", what, error.where, error.hint))
        else:
            nodes.problems.add(error)


def _add_mirror(nodes: Nodes, tests: Tests, entry: Yaml) -> None:
    """Adds the models of a mirror, and the data tests of its rows."""
    state, *history = mirror_nodes(entry, nodes.project, nodes.project.relative(entry.where().path))
    for node in (state, *history):
        nodes.add(node)
    if state.model and state.model.mirror:
        for test_node in generated_tests(state, state.model.mirror):
            nodes.add(test_node)
    for column, test in mirror_tests(entry):
        with nodes.problems.gathered():
            if (found := tests.data_test(state, column, test)) is None:
                continue
            nodes.add(found)
            # A test that runs the query again does so for the history too.
            for node in history if found.data_test and found.data_test.mirror else ():
                if again := tests.data_test(node, column, test):
                    nodes.add(again)


# --- seeds and models


def _add_seeds(nodes: Nodes, tests: Tests, described: dict[str, Yaml]) -> None:
    """Adds the seeds of files, and their data tests."""
    files = seed_files(nodes.project)
    _add_files(nodes, tests, files, described, seed_node)
    seeds = [path.stem for path in files]
    for name, properties in described.items():
        message, hint = f'there is no seed "{name}"', did_you_mean(name, seeds)
        nodes.problems.add(properties["name"].error("seed-unknown", message, hint))


def _add_models(nodes: Nodes, tests: Tests, described: dict[str, Yaml]) -> None:
    """Adds the models of files and the data tests of all models; gives generated models their properties."""
    files = _model_files(nodes.project)
    _add_files(nodes, tests, files, described, model_node)
    for name in [name for name in described if name in nodes.by_name]:
        properties = described.pop(name)
        with nodes.problems.gathered():
            nodes.by_name[name] = with_properties(nodes.by_name[name], properties)
            _add_data_tests(nodes, tests, nodes.by_name[name], properties)
    models = [name for name, node in nodes.by_name.items() if node.model]
    for name, properties in described.items():
        hint = did_you_mean(name, models)
        nodes.problems.add(properties["name"].error("model-unknown", f'there is no model "{name}"', hint))


def _add_files(
    nodes: Nodes,
    tests: Tests,
    files: Iterable[Path],
    described: dict[str, Yaml],
    node_of: Callable[[Project, Templates, Path, Yaml | None], Node | None],
) -> None:
    """Adds the node of each file and its data tests, and removes its properties from `described`."""
    for path in files:
        properties = described.pop(path.stem, None)
        # This node takes the place of a model that cannot be read, so that mistakes in its tests are told too.
        node: Node | None = Node(path.stem, "model", Model(path, "view"), path=nodes.project.relative(path))
        with nodes.problems.gathered():
            if (node := node_of(nodes.project, tests.templates, path, properties)) is None:
                nodes.disabled.add(path.stem)
            else:
                nodes.add(node)
        if node and properties:
            _add_data_tests(nodes, tests, node, properties)


def _add_data_tests(nodes: Nodes, tests: Tests, node: Node, properties: Yaml) -> None:
    for column, entry in _data_tests(properties, nodes.problems):
        with nodes.problems.gathered():
            if test := tests.data_test(node, column, entry):
                nodes.add(test)


def _data_tests(properties: Yaml, problems: Problems) -> Iterable[tuple[str | None, Yaml]]:
    """Returns each data test of a model, and the column if it tests one. Mistakes are added to `problems`."""
    with problems.gathered():
        yield from ((None, entry) for entry in data_tests(properties))
    for column in entries(properties, "columns", COLUMN_KEYS, problems):
        with problems.gathered():
            yield from ((column["name"].text(), entry) for entry in data_tests(column))
