"""Locks of written tables, held by real processes that end in all ways."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from runner.engine.locks import TableLocks, _start_by_ps, locks_in, start_of
from runner.errors import RunnerError

HOLDING = {"command": "run --continuous", "target": "local"}


class Run:
    """A process that holds tables until it is told to end. What stands for its JVM outlives it, and gets every file
    that may be inherited. A copy of this process, which need not import anything.
    """

    def __init__(self, folder: Path, tables: Sequence[str], jvm_seconds: float) -> None:
        self.mine, its = Pipe()
        self.process = get_context("fork").Process(target=held, args=(folder, tables, jvm_seconds, its))
        self.process.start()
        its.close()
        self.jvm_start: str | None = None

    @cached_property
    def said(self) -> int | str:
        """The number of its JVM once it has the tables, or the code of the error that it was refused with."""
        said = self.mine.recv()
        self.jvm_start = start_of(said) if isinstance(said, int) else None
        return said

    @property
    def jvm(self) -> int:
        assert isinstance(self.said, int), self.said
        return self.said

    def kill(self) -> None:
        self.process.kill()
        self.process.join()

    def end(self) -> None:
        self.mine.send("end")
        self.process.join()
        assert self.process.exitcode == 0


def held(folder: Path, tables: Sequence[str], jvm_seconds: float, out: Connection) -> None:
    try:
        with TableLocks(folder, **HOLDING) as mine:
            mine.take(tables)
            nothing = subprocess.DEVNULL
            words = ["sleep", str(jvm_seconds)]
            jvm = subprocess.Popen(words, stdin=nothing, stdout=nothing, stderr=nothing, close_fds=False)
            mine.jvm(jvm.pid)
            out.send(jvm.pid)
            out.recv()
    except RunnerError as error:
        out.send(error.code)


@pytest.fixture
def begin() -> Iterator[Callable[..., Run]]:
    """Starts processes that hold tables; none of them outlives the test, nor its JVM."""
    begun: list[Run] = []

    def start(folder: Path, *tables: str, jvm_seconds: float = 60) -> Run:
        begun.append(Run(folder, tables, jvm_seconds))
        return begun[-1]

    yield start
    for run in begun:
        run.kill()
        if run.jvm_start and start_of(run.jvm) == run.jvm_start:
            os.kill(run.jvm, signal.SIGKILL)


@pytest.fixture
def hold(begin: Callable[..., Run]) -> Callable[..., Run]:
    """A process that holds tables, once it has them."""

    def start(folder: Path, *tables: str, jvm_seconds: float = 60) -> Run:
        run = begin(folder, *tables, jvm_seconds=jvm_seconds)
        assert run.jvm
        return run

    return start


def locks(folder: Path, jvm_seconds: float = 5, settling_seconds: float = 0.5) -> TableLocks:
    return TableLocks(folder, "build", "local", jvm_seconds, settling_seconds)


def refused(folder: Path, *tables: str, jvm_seconds: float = 0.2, settling_seconds: float = 0.5) -> RunnerError:
    with pytest.raises(RunnerError) as raised, locks(folder, jvm_seconds, settling_seconds) as mine:
        mine.take(tables)
    return raised.value


def record(folder: Path, table: str) -> dict:
    (line,) = (folder / f"{table}.lock").read_text().splitlines()
    return json.loads(line)


def seconds_to_take(folder: Path, *tables: str) -> float:
    before = time.monotonic()
    with locks(folder) as mine:
        mine.take(tables)
        return time.monotonic() - before


def gone(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 5
    while start_of(pid):
        assert time.monotonic() < deadline, "it may be a zombie"
        time.sleep(0.01)


# --- held


def test_the_second_is_told_who_holds_the_table(tmp_path: Path, hold) -> None:
    run = hold(tmp_path, "orders")
    error = refused(tmp_path, "orders")
    assert error.code == "target-held"
    assert error.hint == f"wait for it, stop it (kill {run.process.pid}), or select other models"
    since = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"
    who = rf"\(process {run.process.pid} of \S+ on {re.escape(socket.gethostname())}, since {since}\)"
    assert re.fullmatch(rf'"orders" is being written by "run --continuous" {who}', error.message)


def test_the_record(tmp_path: Path, hold) -> None:
    run = hold(tmp_path, "orders", "customers")
    found = record(tmp_path, "customers")
    assert found == record(tmp_path, "orders")
    assert list(found) == ["user", "host", "pid", "start", "command", "target", "since", "jvm", "session"]
    assert (found["pid"], found["start"], found["target"]) == (run.process.pid, start_of(run.process.pid), "local")
    assert found["jvm"] == {"pid": run.jvm, "start": start_of(run.jvm)}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found["since"])


def test_a_shorter_record_leaves_nothing_of_the_last(tmp_path: Path, hold) -> None:
    hold(tmp_path, "orders", jvm_seconds=0.1).kill()
    with locks(tmp_path) as mine:
        mine.take(["orders"])
        assert record(tmp_path, "orders")["command"] == "build"
        assert record(tmp_path, "orders")["jvm"] is None


def test_one_process_too_is_refused_a_second_time(tmp_path: Path) -> None:
    with locks(tmp_path) as mine:
        mine.take(["orders"])
        assert f"(process {os.getpid()} of " in refused(tmp_path, "orders").message


def test_all_or_none(tmp_path: Path, hold) -> None:
    hold(tmp_path, "b")
    with locks(tmp_path) as mine:
        mine.take(["kept"])
        for tables in (["a", "b", "c"], ["c", "b", "a"]):
            with pytest.raises(RunnerError, match='"b" is being written'):
                mine.take(tables)
        hold(tmp_path, "a", "c")
        assert "build" in refused(tmp_path, "kept").message


def test_more_tables_and_the_same_again(tmp_path: Path) -> None:
    with locks(tmp_path) as mine:
        mine.take(["a", "a"])
        mine.jvm(os.getpid())
        mine.take(["a", "b"])
        assert [record(tmp_path, name)["jvm"]["pid"] for name in "ab"] == [os.getpid()] * 2


def test_the_first_by_name_is_said(tmp_path: Path, hold) -> None:
    """All runs take tables in one order, or two could refuse each other."""
    hold(tmp_path, "a", "b")
    assert refused(tmp_path, "b", "a").message.startswith('"a" is being written')


def test_of_many_at_once_one_gets_all(tmp_path: Path, begin) -> None:
    tables = ["a", "b", "c", "d"]
    runs = [begin(tmp_path, *(tables if number % 2 else reversed(tables))) for number in range(6)]
    assert sorted(str(run.said) for run in runs)[1:] == ["target-held"] * 5


# --- ended


def test_a_clean_end_leaves_an_empty_file_and_no_wait(tmp_path: Path, hold) -> None:
    run = hold(tmp_path, "orders")
    run.end()
    assert (tmp_path / "orders.lock").read_text() == "" and start_of(run.jvm)
    assert seconds_to_take(tmp_path, "orders") < 1


def test_a_dead_holder_does_not_block_but_its_jvm_is_awaited(tmp_path: Path, hold) -> None:
    run = hold(tmp_path, "orders", jvm_seconds=1.5)
    run.kill()
    assert start_of(run.jvm)
    with locks(tmp_path) as mine:
        mine.take(["orders"])
        assert start_of(run.jvm) is None


def test_a_jvm_that_stays_is_named_each_time(tmp_path: Path, hold) -> None:
    run = hold(tmp_path, "orders")
    run.kill()
    for _ in range(2):
        error = refused(tmp_path, "orders")
        assert error.code == "target-held" and error.hint == f"stop it (kill -9 {run.jvm}), then run again"
        by = f'JVM (process {run.jvm}) of "run --continuous" (process {run.process.pid} of '
        assert error.message.startswith(f'"orders" may still be written by the {by}')
    gone(run.jvm)
    assert seconds_to_take(tmp_path, "orders") < 1


def test_who_is_refused_another_table_leaves_the_dead_holders_record(tmp_path: Path, hold) -> None:
    run = hold(tmp_path, "a")
    hold(tmp_path, "b")
    run.kill()
    assert '"b" is being written' in refused(tmp_path, "a", "b").message
    assert f"(process {run.jvm})" in refused(tmp_path, "a").message


def test_who_is_refused_for_a_jvm_takes_none(tmp_path: Path, hold) -> None:
    hold(tmp_path, "b").kill()
    with locks(tmp_path, jvm_seconds=0.1) as mine:
        with pytest.raises(RunnerError, match='"b" may still be written'):
            mine.take(["a", "b"])
        hold(tmp_path, "a")


@pytest.mark.parametrize(
    "change",
    [{"jvm": {"pid": os.getpid(), "start": "1"}}, {"host": "another"}, {"jvm": None}],
    ids=["pid used again", "another host", "no JVM yet"],
)
def test_other_processes_are_not_awaited(tmp_path: Path, hold, change: dict) -> None:
    hold(tmp_path, "orders").kill()
    (tmp_path / "orders.lock").write_text(json.dumps({**record(tmp_path, "orders"), **change}) + "\n")
    assert seconds_to_take(tmp_path, "orders") < 1


def test_after_an_error_the_next_process_looks_but_not_this_one(tmp_path: Path, begin, hold) -> None:
    """Here the JVM is that of this process, which lives on after a block has ended."""
    with pytest.raises(ZeroDivisionError), locks(tmp_path) as mine:
        mine.take(["orders"])
        mine.jvm(hold(tmp_path, "others").jvm)
        raise ZeroDivisionError
    jvm = record(tmp_path, "orders")["jvm"]["pid"]
    next_one = begin(tmp_path, "orders")
    time.sleep(0.7)
    assert start_of(jvm) and next_one.process.is_alive()
    gone(jvm)
    assert next_one.jvm
    next_one.kill()
    with pytest.raises(ZeroDivisionError), locks(tmp_path) as mine:
        mine.take(["customers"])
        mine.jvm(os.getpid())
        raise ZeroDivisionError
    assert seconds_to_take(tmp_path, "customers") < 1


# --- records that say nothing


@pytest.mark.parametrize(
    "text", ["", '{"user": "an', "[1]", "\x00\x00", '{"jvm": null, "colour": "red"}', '{"jvm": 1}']
)
def test_a_record_that_says_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "orders.lock"
    path.write_text(text)
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        error = refused(tmp_path, "orders", settling_seconds=0.05)
        assert error.message == '"orders" is being written by an unknown process'
        assert error.hint == "wait for it, or select other models"
    assert seconds_to_take(tmp_path, "orders") < 1


def test_a_dead_holder_is_not_named_for_one_who_has_not_written_yet(tmp_path: Path, hold) -> None:
    hold(tmp_path, "orders").kill()
    with (tmp_path / "orders.lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert "unknown process" in refused(tmp_path, "orders").message


def test_a_holder_on_another_host_is_named(tmp_path: Path, hold) -> None:
    hold(tmp_path, "orders").kill()
    path, its = tmp_path / "orders.lock", {"user": "ana", "host": "db7", "pid": 4711, "since": "2026-11-21T10:00:00Z"}
    path.write_text(json.dumps(record(tmp_path, "orders") | its) + "\n")
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        error = refused(tmp_path, "orders")
    who = "(process 4711 of ana on db7, since 2026-11-21 10:00:00 UTC)"
    assert error.message == f'"orders" is being written by "run --continuous" {who}'
    assert "(kill 4711 on db7)" in error.hint


def test_who_only_tries_a_lock_is_waited_for(tmp_path: Path) -> None:
    """As one does that is about to be refused another table."""
    with (tmp_path / "orders.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        release = threading.Timer(0.15, fcntl.flock, (file, fcntl.LOCK_UN))
        release.start()
        assert 0.1 < seconds_to_take(tmp_path, "orders") < 1
        release.join()


def test_a_child_of_the_run_does_not_keep_the_lock(tmp_path: Path) -> None:
    """One that was forked and has not started its program has all files open."""
    with locks(tmp_path) as mine:
        mine.take(["orders"])
        (file,) = mine._locked.values()
        copy = os.dup(file)
    try:
        assert seconds_to_take(tmp_path, "orders") < 1
    finally:
        os.close(copy)


# --- no locks


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def without(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("runner.engine.locks.fcntl.flock", without)
    monkeypatch.chdir(tmp_path)
    error = refused(tmp_path / "locks", "orders")
    said = f'"locks/orders.lock" cannot be locked: {os.strerror(number)}'
    assert (error.code, error.message) == ("target-lock", said)
    assert error.hint == "its file system has no locks (flock); a disk of this host has them"


def test_a_folder_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("locks").write_text("")
    error = refused(tmp_path / "locks", "orders")
    assert (error.code, error.message) == ("target-lock", '"locks/orders.lock" cannot be locked: File exists')
    assert "must be writable" in error.hint


# --- processes


@pytest.mark.parametrize("start", [start_of, _start_by_ps])
def test_the_start_of_a_process(start: Callable[[int], str | None]) -> None:
    process = subprocess.Popen(["sleep", "60"])
    try:
        assert start(process.pid) and start(process.pid) == start(process.pid) != start(os.getpid())
    finally:
        process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert start(process.pid) is None, "a zombie is gone"
    process.wait()
    assert start(process.pid) is None


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is of Linux")
def test_the_name_of_a_process_does_not_matter(tmp_path: Path) -> None:
    program = tmp_path / "a) Z 1 (b"
    program.symlink_to(shutil.which("sleep"))
    before = start_of(os.getpid())
    process = subprocess.Popen([program, "60"])
    try:
        assert int(start_of(process.pid)) >= int(before)
    finally:
        process.kill()
        process.wait()


def test_locks_are_seen_without_taking_them(tmp_path: Path, hold: Callable[..., Run]) -> None:
    run = hold(tmp_path, "a", "b")
    with locks(tmp_path) as mine:
        mine.take(["c"])
        assert [(one.table, one.is_held) for one in locks_in(tmp_path)] == [("a", True), ("b", True), ("c", True)]
        assert [one.holder.pid for one in locks_in(tmp_path)] == [run.process.pid, run.process.pid, os.getpid()]
    # A lock that was given back names no holder.
    run.kill()
    assert [(one.table, one.is_held) for one in locks_in(tmp_path)] == [("a", False), ("b", False)]
    elsewhere = {**record(tmp_path, "a"), "host": "elsewhere"}
    (tmp_path / "a.lock").write_text(json.dumps(elsewhere))
    assert [one.is_held for one in locks_in(tmp_path)] == [None, False]
    assert list(locks_in(tmp_path / "none")) == []
