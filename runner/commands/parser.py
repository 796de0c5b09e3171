"""The parser of the command line."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from typing import NoReturn

from runner.errors import RunnerError, did_you_mean, nearest_or_all
from runner.project import absent


class Parser(ArgumentParser):
    """Raises wrong arguments as RunnerError, like all other mistakes."""

    def error(self, message: str) -> NoReturn:
        choice = re.fullmatch(r"argument (\S+): invalid choice: '(.*)' \(choose from (.*)\)", message)
        if choice:
            known = [name.strip("' ") for name in choice[3].split(",")]
            hint = absent.COMMANDS.get(choice[2]) or nearest_or_all(choice[2], known)
            raise RunnerError("usage", f'unknown {choice[1].lower()} "{choice[2]}"', hint=hint)
        number = re.fullmatch(r"argument (\S+): invalid int value: '(.*)'", message)
        if number:
            raise RunnerError("usage", f'"{number[1]}" must be a whole number, not "{number[2]}"')
        alone = absent.ALONE.get(self.prog.rpartition(" ")[2]) if "are required" in message else None
        raise RunnerError("usage", message, hint=alone or f"{self.prog} --help")

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]  # argparse overloads it
        """Refuses unknown arguments. Not left to the parser above, which does not know the flags of this command. Words
        behind a flag belong to those before it, which argparse takes for all that there are.
        """
        known, unknown = super().parse_known_args(args, namespace)
        if "words" in known and all(word == "-" or not word.startswith("-") for word in unknown):
            known.words, unknown = [*known.words, *unknown], []
        if unknown:
            word = unknown[0].partition("=")[0]
            hint = absent.FLAGS.get(word) or absent.FLAGS.get(word.replace("--no-", "--", 1), "")
            hint = hint or (did_you_mean(word, self._option_string_actions) if word.startswith("-") else "")
            raise RunnerError("usage", f'unknown argument "{unknown[0]}"', hint=hint or f"{self.prog} --help")
        return known, unknown
