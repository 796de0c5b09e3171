"""Checks that a run can reach what it needs: messages of sources, the place of the tables, the catalog."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from runner.counts import counted
from runner.engine.errors import QueryFailed, query_errors
from runner.engine.files import files_of
from runner.engine.kafka import topics_now
from runner.engine.messages import STORED_AS
from runner.engine.session import Spark
from runner.files import is_uri
from runner.patterns import matching
from runner.project.inputs import Catalog, Messages
from runner.render import name as quoted


def messages_found(spark: Spark, messages: Messages) -> str:
    """Returns in words how many messages or files of a source are found; raises QueryFailed if there are none, or no
    answer.
    """
    if messages.topics:
        now = topics_now(spark, messages.topics, ())
        if not now:
            return "not looked for: only the server of Spark Connect can reach Kafka"
        return f"{counted(len(now.ids), 'topic')}, {counted(now.left({}), 'message')}"
    if pattern := messages.local_pattern:
        files = [path for path in matching(pattern) if os.access(path, os.R_OK)]
        if not files:
            raise QueryFailed(f'nothing that can be read matches "{messages.path}"')
        return counted(len(files), "file")
    with query_errors():
        # This only lists the files.
        frame = spark.session.read.format(STORED_AS[messages.kind]).load(messages.path)
        return counted(len(frame.inputFiles()), "file")


def tables_found(spark: Spark) -> str:
    """Returns in words whether the place of the tables is there; raises QueryFailed if nothing can be written there."""
    path = spark.target.path
    if is_uri(path):
        with query_errors():
            return "there" if files_of(spark, spark.target).exists(path) else "will be created"
    nearest = next(folder for folder in (Path(path), *Path(path).parents) if folder.exists())
    try:
        # Access rights do not tell everything: a disk may be read-only.
        tempfile.TemporaryFile(dir=nearest).close()
    except OSError as error:
        raise QueryFailed(f'nothing can be written to "{nearest}": {error.strerror}') from None
    return "there" if Path(path).exists() else "will be created"


def schema_found(spark: Spark, catalog: Catalog) -> str:
    """Returns in words whether a schema is in its catalog; raises QueryFailed if the catalog does not answer."""
    with query_errors():
        is_there = spark.session.catalog.databaseExists(f"{quoted(catalog.name)}.{quoted(catalog.schema)}")
    return "there" if is_there else "will be created"
