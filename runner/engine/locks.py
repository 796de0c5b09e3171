"""Locks that let only one run at a time write a table: a locked file for each table, which says who holds the lock."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import pwd
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

from runner.errors import RunnerError, RunnerErrors, from_here, refused

LOOK_AGAIN_SECONDS = 0.05
# A lock may be held this long before its file says by whom: in that time its holder writes that, or is refused and
# releases it.
SETTLING_SECONDS = 0.5
JVM_SECONDS = 30.0
NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS}


@dataclass(frozen=True)
class Process:
    """A process on this host. `start` tells it from a later process with the same number."""

    pid: int
    start: str

    def lives(self) -> bool:
        return start_of(self.pid) == self.start


@dataclass(frozen=True)
class Session:
    """A session of `user` on a Spark Connect server, which continues to write after its client has died."""

    server: str
    user: str
    id: str


@dataclass(frozen=True)
class Holder:
    """The process that holds a table's lock, as the lock's file says. `since` is ISO 8601 in UTC. `jvm` or `session`
    writes for the process.
    """

    user: str
    host: str
    pid: int
    start: str
    command: str
    target: str
    since: str
    jvm: Process | None = None
    session: Session | None = None

    @property
    def process(self) -> Process:
        return Process(self.pid, self.start)

    @property
    def said(self) -> str:
        """The process in words."""
        since = self.since.replace("T", " ").replace("Z", " UTC")
        return f"process {self.pid} of {self.user} on {self.host}, since {since}"

    def is_here(self) -> bool:
        return self.host == socket.gethostname()


class TableLocks:
    """Locks on the tables that a run writes: no other run gets them until the block ends or the process dies, however
    it dies. A Spark session belongs inside the block: the session must have stopped when the block ends without an
    error.
    """

    def __init__(
        self,
        folder: Path,
        command: str,
        target: str,
        jvm_seconds: float = JVM_SECONDS,
        settling_seconds: float = SETTLING_SECONDS,
    ) -> None:
        self._folder, self._jvm_seconds, self._settling_seconds = folder, jvm_seconds, settling_seconds
        self._locked: dict[str, int] = {}
        self._me = _this_process(command, target)

    def __enter__(self) -> TableLocks:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Releases the locks. After an error the files keep their records: Spark may not have stopped, and the next run
        has to check. A mistake that is told to the user stops nothing before its time.
        """
        while self._locked:
            lock = self._locked.popitem()[1]
            try:
                if kind is None or issubclass(kind, (RunnerError, RunnerErrors)):
                    os.ftruncate(lock, 0)
            finally:
                _release(lock)

    def take(self, tables: Iterable[str], end: Callable[[Session], bool] | None = None) -> None:
        """Locks all of the tables or none; raises `target-held` for the first by name that is held. `end` ends a
        session that a dead holder has left; it returns False if it cannot.
        """
        locked: dict[str, int] = {}
        try:
            # All runs lock in the same order: of two runs that want the same tables, one gets them.
            for table in sorted(set(tables) - self._locked.keys()):
                locked[table] = self._lock(table)
            self._wait_for_jvms(locked)
            self._end_sessions(locked, end)
            # The records are written only when all JVMs and sessions are gone: if this process dies first, the next run
            # must find the records of the dead holders.
            for table, file in locked.items():
                self._write(table, file)
        except BaseException:
            for file in locked.values():
                _release(file)
            raise
        self._locked |= locked

    def jvm(self, pid: int) -> None:
        """Records the JVM that writes for this run: the JVM outlives a killed Python for a while."""
        start = start_of(pid)
        self._me = replace(self._me, jvm=None if start is None else Process(pid, start))
        for table, file in self._locked.items():
            self._write(table, file)

    def session(self, session: Session) -> None:
        """Records the session that writes for this run."""
        self._me = replace(self._me, session=session)
        for table, file in self._locked.items():
            self._write(table, file)

    def _lock(self, table: str) -> int:
        """Returns the table's file, open and locked. The file is never deleted: then two runs could hold files with one
        name.
        """
        with _explained(self._path(table)):
            self._folder.mkdir(parents=True, exist_ok=True)
            # Python opens files close-on-exec: no child keeps the lock.
            file = os.open(self._path(table), os.O_RDWR | os.O_CREAT, 0o666)
            try:
                _lock_file(table, file, self._settling_seconds)
            except BaseException:
                os.close(file)
                raise
            return file

    def _wait_for_jvms(self, locked: dict[str, int]) -> None:
        deadline = time.monotonic() + self._jvm_seconds
        for table, file in locked.items():
            last = _read(file)
            # A JVM of this process does not end now, and writes nothing: the block that used the JVM has ended.
            if last is None or last.jvm is None or not last.is_here() or last.process == self._me.process:
                continue
            while last.jvm.lives():
                if time.monotonic() >= deadline:
                    raise _left_behind(table, last, last.jvm)
                time.sleep(LOOK_AGAIN_SECONDS)

    def _end_sessions(self, locked: dict[str, int], end: Callable[[Session], bool] | None) -> None:
        ended: set[Session] = set()
        for table, file in locked.items():
            last = _read(file)
            if last and last.session and last.session not in ended:
                if not (end and end(last.session)):
                    raise _left_in_server(table, last, last.session, self._path(table))
                ended.add(last.session)

    def _write(self, table: str, file: int) -> None:
        line = json.dumps(asdict(self._me)).encode() + b"\n"
        with _explained(self._path(table)):
            # The new line overwrites the old one, and only then is the rest cut off: if this process is killed in
            # between, the first line is complete.
            os.pwrite(file, line, 0)
            os.ftruncate(file, len(line))

    def _path(self, table: str) -> Path:
        return self._folder / f"{table}.lock"


class Held(NamedTuple):
    """A lock whose file names a holder. `is_held` is True while the holder has it, False if the holder has died or did
    not end as it should, None if this machine cannot tell.
    """

    table: str
    holder: Holder
    is_held: bool | None


def locks_in(folder: Path) -> Iterator[Held]:
    """Yields the locks in a folder that are held, or that a dead holder has left."""
    for path in sorted(folder.glob("*.lock")):
        # A file may not be for this user to read.
        with suppress(OSError), path.open("rb") as file:
            if holder := _read(file.fileno()):
                yield Held(path.stem, holder, _is_held(file.fileno(), holder))


def _is_held(file: int, holder: Holder) -> bool | None:
    try:
        # A run that comes at this moment waits for the lock, because the holder that it finds in the file is dead.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(file, fcntl.LOCK_UN)
    # Not all file systems tell other machines of locks.
    return False if holder.is_here() else None


def start_of(pid: int) -> str | None:
    """Returns the time when a process started, as the system writes it; None if the process has ended. A zombie counts
    as ended: it writes nothing, and may stay for ever.
    """
    return _start_in_proc(pid) if sys.platform == "linux" else _start_by_ps(pid)


def _start_in_proc(pid: int) -> str | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes().decode("ascii", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in brackets, which may contain spaces and brackets.
    state, *others = text.rpartition(")")[2].split()
    return None if state in "ZX" else others[18]


def _start_by_ps(pid: int) -> str | None:
    # ps writes times in the language and time zone of its caller, which must always be the same.
    asked = subprocess.run(
        ["/bin/ps", "-o", "stat=", "-o", "lstart=", "-p", str(pid)],
        env={"LC_ALL": "C", "TZ": "UTC"},
        capture_output=True,
        text=True,
    )
    state, *start = asked.stdout.split() or ["Z"]
    return None if state.startswith("Z") else " ".join(start)


def user_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _this_process(command: str, target: str) -> Holder:
    since = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Holder(user_name(), socket.gethostname(), os.getpid(), start_of(os.getpid()) or "", command, target, since)


def _lock_file(table: str, file: int, settling_seconds: float) -> None:
    deadline = time.monotonic() + settling_seconds
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _living(_read(file))
            if holder or time.monotonic() >= deadline:
                raise _held(table, holder) from None
        time.sleep(LOOK_AGAIN_SECONDS)


def _release(file: int) -> None:
    # Closing alone does not unlock: a child that was just forked has the file open too, until its program starts.
    fcntl.flock(file, fcntl.LOCK_UN)
    os.close(file)


def _read(file: int) -> Holder | None:
    """Returns the holder that a lock's file names; None if the file names none (yet)."""
    try:
        fields = json.loads(os.pread(file, os.fstat(file).st_size, 0).partition(b"\n")[0])
        jvm, session = fields.pop("jvm"), fields.pop("session", None)
        return Holder(**fields, jvm=Process(**jvm) if jvm else None, session=Session(**session) if session else None)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _living(holder: Holder | None) -> Holder | None:
    """Returns the holder, unless it is dead: then another process holds the lock and has not written its record yet."""
    return holder if holder and (not holder.is_here() or holder.process.lives()) else None


def _held(table: str, holder: Holder | None) -> RunnerError:
    if holder is None:
        return RunnerError(
            "target-held",
            f'"{table}" is being written by an unknown process',
            hint="wait for it, or select other models",
        )
    who = holder.said
    place = "" if holder.is_here() else f" on {holder.host}"
    return RunnerError(
        "target-held",
        f'"{table}" is being written by "{holder.command}" ({who})',
        hint=f"wait for it, stop it (kill {holder.pid}{place}), or select other models",
    )


def _left_behind(table: str, holder: Holder, jvm: Process) -> RunnerError:
    message = (
        f'"{table}" may still be written by the JVM (process {jvm.pid}) of "{holder.command}" '
        f"(process {holder.pid} of {holder.user}), which has died"
    )
    return RunnerError("target-held", message, hint=f"stop it (kill -9 {jvm.pid}), then run again")


def _left_in_server(table: str, holder: Holder, session: Session, lock: Path) -> RunnerError:
    message = (
        f'"{table}" may still be written by the session {session.id} in {session.server} of "{holder.command}" '
        f"(process {holder.pid} of {holder.user}), which has died"
    )
    hint = (
        f'run once with the target "{holder.target}", which ends it; '
        f'if that server no longer exists, remove "{from_here(lock)}"'
    )
    return RunnerError("target-held", message, hint=hint)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Raises errors of the system as RunnerError `target-lock`."""
    try:
        yield
    except OSError as e:
        hint = (
            "its file system has no locks (flock); a disk of this host has them"
            if e.errno in NO_LOCKS
            else f"each table has a file in this folder, which must be writable: {refused(e).hint}"
        )
        raise RunnerError("target-lock", f'"{from_here(path)}" cannot be locked: {e.strerror}', hint=hint) from e
