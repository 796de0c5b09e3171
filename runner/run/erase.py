"""Erasing: the rows of one key of a table are removed from all that a target keeps, and stay out."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.counts import enumeration
from runner.engine.erasures import (
    CERTIFICATES,
    Erasure,
    erase_unfinished,
    erasures_of,
    of_tables,
    record_erasures,
    unfinished_erase,
)
from runner.engine.errors import QueryFailed
from runner.engine.masks import mask_keys_view
from runner.engine.recorded import ERASING
from runner.engine.tables import check_consistency
from runner.errors import RunnerError, full_refresh
from runner.functions.avro.files import plain_path
from runner.project.inputs import SHOWN, Source, instant_of
from runner.project.mask_secret import MaskSecret
from runner.project.masks import mask_of, masks_of
from runner.project.mirror import MirrorQuery
from runner.project.node_results import NodeResults
from runner.project.nodes import Node
from runner.run.erased_readers import Columns, Readers
from runner.run.erased_search import Search
from runner.run.erased_state import Asked, State
from runner.run.stale import check_opened
from runner.run.verified import DIFFERENCES

if TYPE_CHECKING:
    from runner.run.execute import Execution
    from runner.run.run import Run

# Before it is known how new the rows are: later than any of them.
ANY_TIME = "9999-12-31T23:59:59Z"
# Values of a person that are searched: at least so long, and at most so many.
SHORTEST, MOST = 4, 200


class Erasing:
    """Erases one key. Needs a session; after `find` or `resume` it is known which tables are concerned."""

    state: State

    def __init__(self, run: Run) -> None:
        self.run, self.tables, self.spark, self.macro = run, run.tables, run.spark, run.macro
        self.storage, self.path = run.tables.storage, run.tables.target.at(ERASING)
        self.values: list[str] = []
        self.open = ExitStack()
        mask_keys_view(run.spark, run.project.mask_secret)

    @property
    def read_by(self) -> Readers:
        """The tables that read the changelogs that are concerned."""
        return Readers(self.run, self.state.sources, self.state.erasure.parts, self._note)

    # --- what is concerned

    def unfinished(self, asked: Asked | None) -> bool:
        """Takes up the erase that was begun and not finished; returns False if there is none. Raises `erase-unfinished`
        if it is of another key.
        """
        found = unfinished_erase(self.tables.files, self.path)
        if found is None:
            return False
        self.state = State(**{**found, "erasure": Erasure.read(found["erasure"])})
        if asked and not (self.state.erasure.is_of_key(asked.key) and of_tables([asked.table], self.state.names)):
            raise erase_unfinished(self.tables, found)
        for changelog in self.state.sources:
            self._show(changelog)
        return True

    def find(self, asked: Asked, command: str, because: str, purges: bool) -> None:
        """Finds the rows of a key. Raises `erase-table`, `erase-key` and `erase-mirror`, and QueryFailed
        for a changelog whose last run was interrupted.
        """
        found, keys = self._tables_named(asked)
        names = max((one for names in found.values() for one in names), key=len)
        self._check_key(asked, names, keys)
        now = datetime.now(timezone.utc)
        id_ = f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
        erasure = Erasure.of(id_, names, self._masked(asked.key, found), asked.key, ANY_TIME)
        self.state = State(command, names, erasure, found, because, purges)
        for changelog in found:
            self._check_settled(changelog)
            self._show(changelog)
        newest = [self._counts(changelog)["newest"] for changelog in found]
        at = max([int(now.timestamp() * 1_000_000), *(one for one in newest if one is not None)])
        self.state.erasure = replace(erasure, at=instant_of(at))
        self._check_found(asked)
        self._check_mirrors()

    def _check_found(self, asked: Asked) -> None:
        """Raises `erase-key` if nothing has the key, and nothing ever had: what is mistyped must not stay out."""
        for changelog in self.state.sources:
            counts = self._counts(changelog)
            if counts["rows"] or counts["letters"] or counts["controls"]:
                return
            if any(one.is_of_key(asked.key) for one in erasures_of(self.tables, changelog)):
                return
        nodes = [node for node, _ in self.read_by.mirrors() if self.read_by.is_built(node)]
        if not any(self._rows_there(node) for node in nodes):
            what = f'no row, dead letter or message of "{".".join(self.state.names)}" has this key'
            raise RunnerError(
                "erase-key", what, hint="values are compared to the letter, as the changelog has them in key"
            )

    def _tables_named(self, asked: Asked) -> tuple[dict[str, list[list[str]]], set[tuple[str, ...]]]:
        """Returns the names that the table has in each changelog that has it, which may lack first parts, and the
        columns of its keys.
        """
        found: dict[str, list[list[str]]] = {}
        keys: set[tuple[str, ...]] = set()
        parts = [part.lower() for part in asked.table]
        every: list[list[str]] = []
        for source in asked.sources:
            if self.storage.has_changelog(source.model):
                self.storage.changelog_view(source.model, f"{source.model}__whole")
                rows = self.spark.rows(self.macro("tables_ending_with", f"{source.model}__whole", parts))[1]
                every += [row["names"] for row in rows]
                keys |= {tuple(one.lower() for one in row["key_columns"]) for row in rows if row["key_columns"]}
                found |= {source.model: sorted(map(list, {tuple(row["names"]) for row in rows}))} if rows else {}
        table = ".".join(asked.table)
        if not every:
            hint = "runner show -s freshness_by_table lists the tables that have landed"
            raise RunnerError("erase-table", f'no row of a table "{table}" has landed', hint=hint)
        longest = max(every, key=len)
        if others := [one for one in every if not of_tables([one], longest)]:
            named = enumeration(sorted({".".join(one) for one in (longest, *others)}))
            raise RunnerError(
                "erase-table", f'"{table}" is several tables: {named}', hint="name one of them, or --source"
            )
        return found, keys

    def _check_key(self, asked: Asked, names: Sequence[str], keys: set[tuple[str, ...]]) -> None:
        given = tuple(sorted(name.lower() for name in asked.key))
        if keys and given not in {tuple(sorted(one)) for one in keys}:
            columns = min(keys, key=lambda one: (-len({*one} & {*given}), one))
            what = f'the key of "{".".join(names)}" is {", ".join(columns)}, not {", ".join(given)}'
            hint = "--key '{" + ", ".join(f'"{one}": "..."' for one in columns) + "}'"
            raise RunnerError("erase-key", what, hint=hint)

    def _masked(self, key: Mapping[str, str], found: Mapping[str, Sequence[Sequence[str]]]) -> dict[str, str]:
        """Returns a key as the rows of changelogs have it: masked columns of keys are hashed. Raises `mask-secret`, and
        `erase-key` if only some of the changelogs mask it.
        """
        keys = []
        for source in (one for one in self.run.project.sources if one.model in found):
            settings = masks_of(source, found[source.model][0])
            masked = [name for name in key if settings and mask_of(settings.masks, name) != SHOWN]
            keys.append({**key, **{name: self._hashed(source, key[name]) for name in masked}})
        if any(one != keys[0] for one in keys):
            raise RunnerError("erase-key", "the key is masked in some sources alone", hint="--source NAME, for each")
        return keys[0]

    def _hashed(self, source: Source, value: str) -> str:
        secret = self.run.project.mask_secret
        # Rows that the secret before this one has hashed would not be found.
        check_opened(self.run, source, secret and MaskSecret(secret.now))
        assert secret
        return secret.masked(value)

    def _check_settled(self, changelog: str) -> None:
        self.tables.check_changelog(changelog)
        check_consistency(changelog, self.tables)
        checkpoint = self.tables.checkpoint(changelog)
        if checkpoint.has_unfinished_batch or checkpoint.again_waiting() or self.tables.refreshes.unfinished(changelog):
            what = f'the last run of "{changelog}" was interrupted, or messages wait to land'
            raise QueryFailed(f"{what}: runner run -s {changelog} finishes it")

    def _check_mirrors(self) -> None:
        """Raises `erase-mirror` for a mirror that would have to be built of changes that are not all there any more."""
        for node, query in self.read_by.mirrors():
            removed = self.run.reading.without_old_rows(query.mirror.models)
            if removed and self.read_by.is_built(node) and not self.read_by.columns_of(query):
                what = f'"{node.name}" must be built again, and maintain --keep-days has removed old changes of it'
                hint = f"{full_refresh(node.name)} makes it of those that are left; then erase"
                raise RunnerError("erase-mirror", what, node.where, hint)

    def _show(self, changelog: str) -> None:
        """Creates the views of all rows of a changelog, and of those that are concerned, which are computed once."""
        self.storage.finish_erasing(changelog)
        self.storage.changelog_view(changelog, f"{changelog}__whole")
        sql = self.macro("rows_erased", f"{changelog}__whole", self._erasures(changelog))
        self.open.enter_context(self.spark.computed_view(f"{changelog}__touched", sql))

    def _erasures(self, changelog: str) -> list[Erasure]:
        return [self.state.erasure.under(names) for names in self.state.sources[changelog]]

    def _counts(self, changelog: str) -> dict[str, Any]:
        return self.spark.rows(self.macro("erased_counts", f"{changelog}__touched"))[1][0]

    # --- the steps; each does nothing where it was already done

    def begin(self, key: Mapping[str, str]) -> None:
        """Records that the erase is begun: no run writes the target until it has ended."""
        self._write()
        for changelog in self.state.sources:
            record_erasures(self.tables, changelog, self._erasures(changelog), key)

    def _write(self) -> None:
        self.tables.files.write(self.path, self.state.text())

    def _removed(self, place: str, **counts: int) -> None:
        """Records what is about to be removed. Where an interrupted erase has removed it, its numbers stay."""
        if any(counts.values()):
            known = self.state.removed.get(place, {})
            self.state.removed[place] = {**known, **{name: count for name, count in counts.items() if count}}
            self._write()

    def plan(self) -> list[dict[str, Any]]:
        """Returns what would be removed, place by place."""
        rows = [
            {"place": changelog, "what": what.replace("_", " "), "rows": count}
            for changelog in self.state.sources
            for what, count in self._said(self._counts(changelog)).items()
            if count
        ]
        for node in self.read_by.built():
            in_place = self.read_by.in_place(node)
            count = self._rows_of_key(node.relation, in_place) if in_place else None
            rows.append({"place": node.relation, "what": "rows" if in_place else "built again", "rows": count})
        return rows

    def _said(self, counts: Mapping[str, int]) -> dict[str, int]:
        return {
            "rows": counts["rows"],
            "rows_that_keep_another_key": counts["moved"],
            "dead_letters": counts["letters"],
            "control_messages": counts["controls"],
        }

    def changelogs(self) -> None:
        """Removes the rows from the changelogs, and what is kept of messages beside them."""
        for changelog in self.state.sources:
            whole, erasures = f"{changelog}__whole", self._erasures(changelog)
            told = self.macro("telling_values", whole, f"{changelog}__touched", erasures, SHORTEST, MOST)
            self.values += [row["value"] for row in self.spark.rows(told)[1]]
            counts = self._said(self._counts(changelog))
            self._removed(changelog, **counts)
            self._remove_messages(changelog)
            if any(counts.values()):
                self.storage.erase(changelog, f"{changelog}__touched", erasures)
            self.storage.changelog_view(changelog, whole)
            others = self.spark.rows(self.macro("others_holding", whole, erasures))[1][0]["letters"]
            if others:
                see = "runner show --inline \"select source, reason, raw from dead_letters where contains(raw, '...')\""
                self._note(
                    f"{others} other dead letters of {changelog} hold the values and do not name the table: {see}"
                )

    def _note(self, note: str) -> None:
        if note not in self.state.notes:
            self.state.notes.append(note)

    def _remove_messages(self, changelog: str) -> None:
        """Removes messages that have landed once more, and results of queries that have landed."""
        checkpoint, files = self.tables.checkpoint(changelog), self.tables.files
        landed = {*files.names(checkpoint.again_folder)} - {*checkpoint.again_waiting()}
        self._removed(f"{changelog}: messages that landed once more", files=len(landed))
        for folder in sorted(landed):
            files.remove(f"{checkpoint.again_folder}/{folder}")
        source = next(one for one in self.run.project.sources if one.model == changelog)
        if jdbc := source.messages.jdbc:
            rows = self.spark.rows(self.macro("files_of_erased", f"{changelog}__whole", f"{changelog}__touched"))[1]
            names = {plain_path(row["file"]).rsplit("/", 1)[1] for row in rows if row["file"]}
            there = [one for one in sorted(names) if files.exists(f"{jdbc.folder}/{one}")]
            self._removed(f"{changelog}: results of its query", files=len(there))
            for name in there:
                files.remove(f"{jdbc.folder}/.{name}.crc")
                files.remove(f"{jdbc.folder}/{name}")

    def readers(self, execution: Execution) -> Iterator[tuple[Node, Any]]:
        """Removes the rows from the tables that read the changelogs. Yields those that are built again, with the
        result.
        """
        again = []
        for node in self.read_by.built():
            if in_place := self.read_by.in_place(node):
                self._remove_in_place(node, in_place)
            else:
                again.append(node)
        self.tables.refreshes.begin([node.relation for node in again], self.run.run_id)
        for node in again:
            self._removed(node.relation, rows=self._rows_there(node), built_again=1)
            result = execution.run(node)
            if not result.has_failed:
                self.tables.refreshes.done(node.relation)
            yield node, result

    def _remove_in_place(self, node: Node, columns: Columns) -> None:
        name, query = node.relation, node.model and node.model.query
        assert isinstance(query, MirrorQuery)
        progress, names = self.tables.progress(name), [name, query.beside]
        counts = {one: self._rows_of_key(one, columns) for one in names}
        for one, count in counts.items():
            self._removed(one, rows=count)
        if any(counts.values()) and (read := progress.read()) is not None:
            with progress.writing(read):
                for one in (query.beside, name):
                    self.spark.do(self.macro("rows_of_key_removed", self.storage.table(one), [*columns.items()]))

    def _rows_there(self, node: Node) -> int:
        """Returns the number of rows of the key in a table, 0 if its columns do not tell."""
        query = node.model and node.model.query
        columns = self.read_by.columns_of(query) if isinstance(query, MirrorQuery) else None
        return self._rows_of_key(node.relation, columns) if columns else 0

    def _rows_of_key(self, name: str, columns: Columns) -> int:
        sql = self.macro("rows_of_key", self.storage.table(name), [*columns.items()])
        return int(self.spark.rows(sql)[1][0]["rows"])

    def kept(self) -> None:
        """Removes rows that tests and `runner verify` have kept, and what messages of results say."""
        for name in self._kept_by_tests:
            if self.tables.table_view(name) and (count := self.tables.count(name)):
                self._removed(name, rows=count)
                self.tables.replace(name, self.macro("rows_emptied", name))
        if self.tables.table_view(DIFFERENCES):
            mirrors = [query.mirror.name for _, query in self.read_by.mirrors()]
            view = (DIFFERENCES, mirrors or [""], [self.state.erasure])
            count = self.spark.rows(self.macro("differences_with_key", *view))[1][0]["rows"]
            if count:
                self._removed(DIFFERENCES, rows=count)
                self.tables.replace(DIFFERENCES, self.macro("differences_without_key", *view))
        NodeResults(self.run.project).forget_messages()

    @property
    def _kept_by_tests(self) -> list[str]:
        """The tables with rows that fail."""
        return [node.relation for node in self.run.graph.nodes.values() if node.is_test and node.writes_table]

    def purge(self) -> Iterator[str]:
        """Removes old versions of all tables that had rows of the key, and yields their names."""
        for name in self._purged() if self.storage.changes_rows else ():
            yield name
            if name not in self.state.sources:
                self.tables.progress(name).settle()
            self.storage.purge(name)

    def _purged(self) -> list[str]:
        """Returns the tables that have, or may have had, rows of the key."""
        readers = [node.relation for node in self.read_by.built()]
        beside = [query.beside for _, query in self.read_by.mirrors()]
        others = [one for one in (*readers, *beside, *self._kept_by_tests, DIFFERENCES) if self.storage.has_table(one)]
        return [*self.state.sources, *dict.fromkeys(others)]

    def search(self, target_path: Path) -> tuple[dict[str, int], list[dict[str, Any]]]:
        """Looks through all files of the target, and of the folder for files about runs; returns how many it has looked
        through, and where rows of the key, or values that only they had, are left.
        """
        columns = {
            name: columns
            for node, query in self.read_by.mirrors()
            if (columns := self.read_by.columns_of(query))
            for name in (node.relation, query.beside)
        }
        erasures = [one for changelog in self.state.sources for one in self._erasures(changelog)]
        search = Search(self.spark, self.macro, erasures, columns, self.values)
        return search.of([self.tables.target.path, f"{target_path}"])

    def end(self, certificate: Mapping[str, Any]) -> str:
        """Keeps the certificate, and records that the erase has ended; returns where the certificate is."""
        path = f"{self.tables.target.at(CERTIFICATES)}/{self.state.erasure.id}.json"
        self.tables.files.write(path, json.dumps(certificate, indent=1) + "\n")
        self.tables.files.remove(self.path)
        return path
