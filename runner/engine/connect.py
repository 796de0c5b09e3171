"""Sessions on a Spark Connect server."""

from __future__ import annotations

import re
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from runner.engine.locks import Session, user_name
from runner.errors import RunnerError

# This takes about 70 seconds in all instead of ten minutes: a server that was restarted does not know the session any
# more.
RETRIES = 6
CAUSE = re.compile(r'details = "(.*?)"\n', re.DOTALL)


def connected(remote: str) -> tuple[SparkSession, Session]:
    """Returns a new session, and its server, user and id, with which other clients find it; raises `target-remote` at
    once if no server answers.
    """
    own = Session(server_of(remote), user_name(), str(uuid.uuid4()))
    with _explained(remote):
        session = SparkSession.builder.remote(_with(remote, own)).create()
        with _asked_once(session):
            _ = session.version
        from pyspark.sql.connect.client.retries import DefaultPolicy

        session.client.set_retry_policies([DefaultPolicy(max_retries=RETRIES)])
        return session, own


def end_session(remote: str, left: Session) -> bool:
    """Ends a session that its client has left, and returns True when its streams have stopped; returns False if the
    session is on another server.
    """
    if left.server != server_of(remote):
        return False
    with _explained(remote):
        session = SparkSession.builder.remote(_with(remote, left)).create()
        # It is not an error if the server does not know the session (any more).
        with _asked_once(session):
            session.client.release_session()
        session.release_session_on_close = False  # type: ignore[attr-defined, unused-ignore]
        session.stop()
    return True


def server_of(remote: str) -> str:
    """Returns the name and the port of the server in an address.

    >>> server_of("sc://spark.example:15002/;token=secret")
    'spark.example:15002'
    """
    return remote.removeprefix("sc://").split("/")[0]


def _with(remote: str, session: Session) -> str:
    """Returns the address with the session's id, and with its user if the address names none.

    >>> me = Session("a:1", "me", "7")
    >>> _with("sc://a:1", me), _with("sc://a:1/;user_id=b", me)
    ('sc://a:1/;user_id=me;session_id=7', 'sc://a:1/;user_id=b;session_id=7')
    """
    address, _, parameters = remote.partition("/;")
    given = [one for one in parameters.split(";") if one]
    user = [] if any(one.startswith("user_id=") for one in given) else [f"user_id={quote(session.user)}"]
    return f"{address.rstrip('/')}/;" + ";".join([*user, *given, f"session_id={session.id}"])


@contextmanager
def _asked_once(session: Any) -> Iterator[None]:
    """Asks the server in the block without retries."""
    session.client.set_retry_policies([])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _explained(remote: str) -> Iterator[None]:
    """Raises any error that prevents a session as RunnerError `target-remote`."""
    try:
        yield
    except ImportError as error:
        raise RunnerError(
            "target-remote",
            f"a remote target needs packages that are not installed: {error}",
            hint="pip install 'changelog-runner[connect]'",
        ) from None
    except PySparkException as error:
        cause = CAUSE.search(str(error))
        text = cause[1] if cause else str(error).split("\n")[0]
        raise RunnerError(
            "target-remote",
            f'no Spark Connect server answers at "{server_of(remote)}": {text}',
            hint='start it, or correct "remote" of the target (sc://HOST:PORT)',
        ) from None
