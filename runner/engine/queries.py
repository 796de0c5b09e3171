"""The results of queries of databases, as files of rows."""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql.types import DecimalType

from runner.engine.databases import driver_of
from runner.engine.errors import QueryFailed, SparkGone, query_errors
from runner.engine.session import Spark
from runner.project.inputs import Jdbc
from runner.project.tables_seen import MOST_DIGITS
from runner.render import name as quoted

NO_DRIVER = re.compile(
    r"No suitable driver|ClassNotFoundException|does not accept|Failed to find.*driver", re.IGNORECASE
)


def write_result(spark: Spark, jdbc: Jdbc) -> None:
    """Writes the result of a query to its folder, in place of one that is there; raises QueryFailed."""
    session = spark.fresh().session
    try:
        with query_errors():
            # Unlike the older kind of timestamps in Parquet, these say if they are instants.
            session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
            reader = session.read.format("jdbc").options(preferTimestampNTZ="true", **_driver(spark, jdbc))
            reader = reader.options(**jdbc.options)
            frame = reader.load()
            texts = [quoted(field.name) for field in frame.schema if _is_exact_as_text(field)]
            if texts and "customSchema" not in jdbc.options:
                frame = reader.option("customSchema", ", ".join(f"{one} string" for one in texts)).load()
            frame.write.mode("overwrite").parquet(jdbc.folder)
    except SparkGone:
        raise
    except QueryFailed as failure:
        if NO_DRIVER.search(failure.message):
            raise QueryFailed(
                f'Spark has no driver for "{jdbc.url}": name it under "packages" of the target, as '
                f"packages: [GROUP:ARTIFACT:VERSION]; docs/databases.md lists drivers"
            ) from None
        raise QueryFailed(f'"{jdbc.url}" gave no rows: {failure.message}') from None


def _driver(spark: Spark, jdbc: Jdbc) -> dict[str, str]:
    """Returns the option that names the driver for a database."""
    found = driver_of(spark.jvm, jdbc.url) if spark.jvm and "driver" not in jdbc.options else None
    return {"driver": found.getClass().getName()} if found else {}


def _is_exact_as_text(field: Any) -> bool:
    """Returns True for a column whose values are what the database has only as texts: numbers without a limit, which
    come with the most digits and would get zeros behind the point, and times of day, which would be instants of 1970.
    """
    is_unlimited = isinstance(field.dataType, DecimalType) and field.dataType.precision == MOST_DIGITS
    return is_unlimited or bool((field.metadata or {}).get("logical_time_type"))
