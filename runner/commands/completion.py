"""completion: scripts with which a shell completes commands, and the words that could stand at the cursor."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from operator import attrgetter

import click
from click.shell_completion import CompletionItem, ShellComplete

from runner.commands.arguments import Call
from runner.errors import RunnerError, RunnerErrors
from runner.project.nodes import Node
from runner.project.select import METHODS, compared
from runner.run.workspace import ProjectArguments, Workspace, folders_of, root_of
from runner.spec.formats import FormatFolders
from runner.yaml_text import read_yaml

BASH = """\
_runner_complete() {
    local line="${COMP_LINE:0:$COMP_POINT}" candidate begun=""
    local word="${line##*[[:space:]]}"
    # Bash replaces only what follows the last of these characters.
    [[ $word == *:* && $COMP_WORDBREAKS == *:* ]] && begun="${word%"${word##*:}"}"
    COMPREPLY=()
    while IFS= read -r candidate; do
        candidate="${candidate%%$'\\t'*}"
        COMPREPLY+=("${candidate#"$begun"}")
    done < <("${COMP_WORDS[0]}" completion candidates "$line" 2>/dev/null)
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *: ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -o default -F _runner_complete runner
"""
ZSH = """\
#compdef runner
_runner() {
    local line="${(j: :)${(@)words[1,CURRENT]}}"
    local -a found values
    found=("${(@f)$("${words[1]}" completion candidates "$line" 2>/dev/null)}")
    if [[ -z "${found[1]}" ]]; then
        _files
        return
    fi
    values=("${(@)found%%$'\\t'*}")
    found=("${(@)found/$'\\t'/  -- }")
    compadd -l -d found -a values
}
if [[ "${funcstack[1]}" == _runner ]]; then
    _runner "$@"
else
    compdef _runner runner
fi
"""
FISH = """\
function __runner_candidates
    set -l words (commandline -opc)
    set -l found ($words[1] completion candidates (commandline -cp | string collect) 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c runner -f -a '(__runner_candidates)'
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}
# The text before the name of a node in a selector.
BEGUN = re.compile(r"(.*,)?(@|[0-9]*\+)?")


def completion(call: Call, shell: str, line: str) -> int:
    """Prints the script for a shell. If such a script asks for words, prints each word that could stand at the end of a
    line, with a tab and its meaning. The scripts are not click's: those lose colons in bash and commas in fish.
    """
    if shell in SCRIPTS:
        call.report.payload(SCRIPTS[shell].rstrip("\n"))
        return 0
    *before, current = _words(line)[1:] or [""]
    command, own = click.get_current_context().find_root().command, Call(call.environment)
    found = ShellComplete(command, {"obj": own}, "runner", "").get_completions(before, current)
    for item in sorted(found, key=attrgetter("value")):
        if item.value.startswith(current):
            call.report.payload(f"{item.value}\t{item.help}" if item.help else item.value)
    return 0


def _words(line: str) -> list[str]:
    """Returns the words of a line, the last one empty if the line ends in a blank.

    >>> _words("runner build -s "), _words("runner ls --select 'a b")
    (['runner', 'build', '-s', ''], ['runner', 'ls', '--select', "'a", 'b'])
    """
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    return [*words, ""] if line[-1:].isspace() else words


def names_in(ctx: click.Context, parameter: click.Parameter, kind: str, begun: str) -> list[CompletionItem[str]]:
    """Returns the names of this kind in a project, each with its meaning; nothing if the project cannot be read."""
    if ctx.info_name == "parse" and ctx.params.get(parameter.name):
        return []  # behind the name of the format there is a file
    try:
        names = dict(_names(ctx.obj.project, kind, begun))
        return [CompletionItem(name, help=meaning) for name, meaning in names.items()]
    except (RunnerError, RunnerErrors):
        return []


def _names(project: ProjectArguments, kind: str, begun: str) -> Iterator[tuple[str, str]]:
    match kind:
        case "targets":
            root = root_of(project)
            targets = read_yaml(root / "project.yml").get("targets") if root else None
            yield from ((name, "target") for name in targets.mapping().value) if targets else ()
        case "formats":
            yield from ((name, "format") for name in FormatFolders(folders_of(project, "formats")).names())
        case "sources":
            yield from ((node.label, "source") for node in _nodes(project) if node.resource_type == "source")
        case "selectors":
            yield from _selectors(project, begun)


def _selectors(project: ProjectArguments, begun: str) -> Iterator[tuple[str, str]]:
    """Yields the selectors that begin with the given text."""
    match = BEGUN.match(begun)
    before = match[0] if match else ""
    method, colon, _ = begun[len(before) :].partition(":")
    if colon:
        nodes = _nodes(project) if method in METHODS else ()
        values = {value for node in nodes for value in compared(node, method)}
        yield from ((f"{before}{method}:{value}", "") for value in values)
        return
    for node in _nodes(project):
        yield from ((f"{before}{name}", _kind(node)) for name in compared(node, "name"))
    yield from ((f"{before}{method}:", "") for method in METHODS if method != "name")


def _nodes(project: ProjectArguments) -> Iterable[Node]:
    try:
        return Workspace(project).graph.nodes.values()
    except (RunnerError, RunnerErrors):
        return ()


def _kind(node: Node) -> str:
    return node.model.materialized if node.model else node.resource_type.replace("_", " ")
