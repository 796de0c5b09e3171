"""The Sparks that the project is tested with, from tools/spark/versions, and the one that this environment has."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent


class Served(NamedTuple):
    """Versions that fit together; one that is "-" is not served for this Spark."""

    spark: str
    pyspark: str
    kafka: str
    delta: str
    iceberg: str


def _listed() -> list[Served]:
    lines = (ROOT / "tools/spark/versions").read_text().splitlines()
    return [Served(*line.split()) for line in lines if line and not line.startswith("#")]


# The first is the one that the project needs.
SPARKS = _listed()
HERE = next(one for one in SPARKS if version("pyspark").startswith(f"{one.spark}."))
# What `make setup` and `make jars` have made for it.
COMMANDS = Path(sys.executable).parent
JARS = ROOT / (".jars" if HERE is SPARKS[0] else f".jars-spark-{HERE.spark}")
WITHOUT_ICEBERG = f"Iceberg is not served for Spark {HERE.spark}" if HERE.iceberg == "-" else ""
