"""One Spark and one Kafka broker for each process of a test run. Commands that are called in this process find this
Spark and use a session of their own in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pyarrow.parquet
import pytest

from runner.cli import main
from runner.storage.delta import Delta
from runner.storage.iceberg import Iceberg
from runner.storage.known import STORAGES
from tests.engines import Broker, jars
from tests.sparks import WITHOUT_ICEBERG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from runner.engine.session import Spark


def every_storage() -> dict[str, str]:
    """What of all storages a JVM must know from its start; a target's own settings come on top."""
    return {
        "spark.jars": ",".join(map(str, jars("spark"))),
        "spark.sql.extensions": ",".join(
            storage.extension
            for name, storage in STORAGES.items()
            if storage.extension and not (name == "iceberg" and WITHOUT_ICEBERG)
        ),
        "spark.sql.catalog.spark_catalog": Delta.session_catalog,
    }


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spark]:
    from runner.engine.session import Spark
    from runner.project.inputs import Target

    folder: Path = tmp_path_factory.mktemp("spark")
    # Two tasks and small blocks: files of some kilobytes are read in parallel, as big ones are in use.
    target = Target("tests", str(folder), spark={"spark.master": "local[2]", **every_storage()})
    with Spark(target, folder / "spark.log") as session:
        yield session


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One broker for the process: each test has topics with names of its own."""
    with Broker(tmp_path_factory.mktemp("broker")) as started:
        yield started


@pytest.fixture(scope="module")
def interpreted(spark: Spark) -> Iterator[None]:
    """For tests of where rows go, not of what is in them: queries of this module are not compiled, neither in this
    process nor in those that it starts.
    """
    from runner.engine.session import INTERPRETED
    from runner.engine.start import SUBMIT

    # What new sessions of this JVM begin with.
    defaults = spark.session._jsc.sc().conf()
    for name, value in INTERPRETED.items():
        defaults.set(name, value)
    with pytest.MonkeyPatch.context() as patch:
        # With a folder of settings of their own these processes could not read the archive of Spark's classes.
        patch.setenv(
            SUBMIT, " ".join([*(f"--conf {name}={value}" for name, value in INTERPRETED.items()), "pyspark-shell"])
        )
        yield
    for name in INTERPRETED:
        defaults.remove(name)


def hadoop_catalog(session: SparkSession, name: str, warehouse: Path) -> None:
    """Makes a catalog of Iceberg known to a session, as a target of that name would."""
    for key, value in {"": Iceberg.own_catalog, ".type": "hadoop", ".warehouse": str(warehouse)}.items():
        session.conf.set(f"spark.sql.catalog.{name}{key}", value)


def rows(capsys: pytest.CaptureFixture[str], sql: str) -> list[dict]:
    """The rows of a query, as `runner show` prints them."""
    capsys.readouterr()
    assert main(["show", "--inline", sql, "--limit", "100000", "--output", "json"]) == 0
    # Not splitlines(): texts may hold other separators, which JSON leaves as they are.
    return [json.loads(line) for line in capsys.readouterr().out.split("\n") if line]


def batches_in_files(table: Path) -> dict[int, list[int]]:
    """The numbers of batches in the rows of a changelog in Parquet, for each batch that Spark's own log of its files
    has by itself: of every ten it makes one entry.
    """
    found = {}
    for entry in (table / "_spark_metadata").iterdir():
        if not entry.name.isdigit():
            continue
        files = [unquote(urlsplit(json.loads(line)["path"]).path) for line in entry.read_text().splitlines()[1:]]
        numbers = [pyarrow.parquet.read_table(file, columns=["batch"])["batch"].to_pylist() for file in files]
        found[int(entry.name)] = sorted({number for file in numbers for number in file})
    return found
