"""completion: scripts with which a shell completes commands, and what could stand at the cursor."""

from __future__ import annotations

import re
import shlex
from argparse import Action, ArgumentParser, _SubParsersAction
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from runner.commands.arguments import CompletionArguments, ProjectArguments
from runner.commands.workspace import Workspace, folders_of, root_of
from runner.errors import RunnerError, RunnerErrors
from runner.project.nodes import Node
from runner.project.select import COMPARED
from runner.report import Report
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
# What stands before the name of a node in a selector, and what leads to it.
BEGUN = re.compile(r"(.*,)?(@|[0-9]*\+)?")
# Words of the command line -> what in the project could stand there.
NAMED = {"target": "targets", "source": "sources", "format": "formats", "words": "formats"}


def completion(arguments: CompletionArguments, parser: ArgumentParser, report: Report) -> int:
    """Prints the script for a shell; or, which such a script asks for, each word that could stand at the end of a line,
    with a tab and what it means.
    """
    if arguments.shell in SCRIPTS:
        report.payload(SCRIPTS[arguments.shell].rstrip("\n"))
        return 0
    for word, meaning in sorted(candidates(arguments, parser).items()):
        report.payload(f"{word}\t{meaning}" if meaning else word)
    return 0


def candidates(arguments: CompletionArguments, parser: ArgumentParser) -> Mapping[str, str]:
    """The words that could stand at the end of the line, with what they mean; none if that is the name of a file."""
    *before, current = _words(arguments.line)[1:] or [""]
    place = Place(parser).after(before)
    found = place.flags if current.startswith("-") and not place.waiting else _values(place, current, arguments.project)
    return {word: meaning for word, meaning in found.items() if word.startswith(current)}


def _words(line: str) -> list[str]:
    """
    >>> _words("runner build -s "), _words("runner ls --select 'a b")
    (['runner', 'build', '-s', ''], ['runner', 'ls', '--select', "'a", 'b'])
    """
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    return [*words, ""] if line[-1:].isspace() else words


@dataclass(frozen=True)
class Place:
    """A place in a command line: the parser that reads it, how many words of its own it has had, the flag that waits
    for its value, and where the project is, if the line says so.
    """

    parser: ArgumentParser
    command: str = ""
    words: int = 0
    waiting: Action | None = None
    project: Mapping[str, str] = ()  # type: ignore[assignment]

    def after(self, words: Iterable[str]) -> Place:
        """The place behind these words."""
        place = replace(self, project={})
        for word in words:
            place = place.behind(word)
        return place

    def behind(self, word: str) -> Place:
        if self.waiting:
            return replace(self, waiting=None, project={**self.project, self.waiting.dest: word})
        if word.startswith("-"):
            flag = self.parser._option_string_actions.get(word)
            return replace(self, waiting=flag if flag and flag.nargs != 0 else None)
        if self.commands and word in self.commands:
            return replace(self, parser=self.commands[word], command=word)
        return replace(self, words=self.words + 1)

    @cached_property
    def commands(self) -> Mapping[str, ArgumentParser]:
        """The commands, where one can stand."""
        found = [action for action in self.parser._actions if isinstance(action, _SubParsersAction)]
        return found[0].choices if found else {}

    @property
    def flags(self) -> dict[str, str]:
        """The flags that can stand here; of those with a short form only the long one."""
        actions = [action for action in self.parser._actions if action.option_strings]
        return {max(action.option_strings, key=len): action.help or "" for action in actions}

    @property
    def action(self) -> Action | None:
        """What reads the word at this place; None if no more words belong there."""
        if self.waiting:
            return self.waiting
        own = [action for action in self.parser._actions if not action.option_strings]
        if own and self.words >= len(own):
            return own[-1] if own[-1].nargs in ("+", "*") else None
        return own[self.words] if own else None


def _values(place: Place, current: str, project: ProjectArguments) -> Mapping[str, str]:
    if place.commands and not place.waiting:
        return {name: command.description or "" for name, command in place.commands.items()}
    action = place.action
    if not action:
        return {}
    if action.choices:
        return {str(choice): "" for choice in action.choices}
    folder = place.project.get("project_dir")
    names = Names(replace(project, project_dir=Path(folder), target=None) if folder else project)
    if action.dest in ("select", "exclude"):
        return dict(names.selectors(current))
    if action.dest == "words" and place.command == "parse" and place.words:
        return {}
    return getattr(names, NAMED[action.dest]) if action.dest in NAMED else {}


@dataclass(frozen=True)
class Names:
    """What a project has, with what it is; nothing if the project cannot be read."""

    arguments: ProjectArguments

    @property
    def targets(self) -> dict[str, str]:
        root = root_of(self.arguments)
        try:
            targets = read_yaml(root / "project.yml").get("targets") if root else None
            return dict.fromkeys(targets.mapping().value, "target") if targets else {}
        except (RunnerError, RunnerErrors):
            return {}

    @property
    def formats(self) -> dict[str, str]:
        return dict.fromkeys(FormatFolders(folders_of(self.arguments, "formats")).names(), "format")

    @property
    def sources(self) -> dict[str, str]:
        return {node.label: "source" for node in self.nodes if node.resource_type == "source"}

    @cached_property
    def nodes(self) -> Collection[Node]:
        try:
            return Workspace(self.arguments).graph.nodes.values()
        except (RunnerError, RunnerErrors):
            return ()

    def selectors(self, current: str) -> Iterator[tuple[str, str]]:
        """The selectors that begin as this one does."""
        begun = BEGUN.match(current)
        before = begun[0] if begun else ""
        method, colon, _ = current[len(before) :].partition(":")
        if colon:
            values = {value for node in self.nodes for value in COMPARED.get(method, _nothing)(node)}
            yield from ((f"{before}{method}:{value}", "") for value in values)
            return
        for node in self.nodes:
            yield from ((f"{before}{name}", _kind(node)) for name in COMPARED["name"](node))
        yield from ((f"{before}{method}:", "") for method in COMPARED if method != "name")


def _nothing(node: Node) -> Iterable[str]:
    return ()


def _kind(node: Node) -> str:
    return node.model.materialized if node.model else node.resource_type.replace("_", " ")
