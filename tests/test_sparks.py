"""tools/spark/versions: make, the scripts of tools/ and the tests take the same versions from it."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.pages import ROOT
from tests.sparks import SPARKS, Served

CHOSEN = '. tools/spark/chosen.sh && echo "$spark $pyspark $kafka $delta $iceberg $suffix"'


def ran(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    # What a run with another Spark sets for its own tests.
    given = {name: text for name, text in os.environ.items() if name not in ("SPARK", "MAKEFLAGS", "MAKEOVERRIDES")}
    return subprocess.run(command, cwd=ROOT, env={**given, **environment}, capture_output=True, text=True)


@pytest.mark.parametrize("one", SPARKS, ids=lambda one: one.spark)
def test_scripts_take_the_line_of_the_spark_that_is_named(one: Served) -> None:
    *versions, suffix = ran("bash", "-c", CHOSEN, SPARK=one.spark).stdout.strip("\n").split(" ")
    assert versions == list(one)
    assert suffix == ("" if one is SPARKS[0] else f"-spark-{one.spark}")


def test_without_a_name_scripts_take_the_first() -> None:
    assert ran("bash", "-c", CHOSEN).stdout == ran("bash", "-c", CHOSEN, SPARK=SPARKS[0].spark).stdout != ""


@pytest.mark.parametrize("target", ["check", "quick", "test", "engines"])
def test_make_runs_tests_in_the_environment_of_the_spark_that_is_named(target: str) -> None:
    other = SPARKS[-1].spark
    for words, environment in (([target, f"SPARK={other}"], ".venv-spark-" + other), ([target], ".venv")):
        recipe = ran("make", "-n", *words).stdout
        used = {word.partition("/bin/")[0] for word in recipe.split() if word.startswith(".venv")}
        assert used == {environment}


def test_a_spark_that_is_not_in_the_list_is_an_error_with_those_that_are() -> None:
    for command in (["bash", "tools/setup.sh"], ["bash", "tools/jars.sh"]):
        refused = ran(*command, SPARK="0.9")
        assert refused.returncode == 2
        assert "error: the project is not tested with Spark '0.9'" in refused.stderr
        assert " ".join(one.spark for one in SPARKS) in refused.stderr


def test_jars_of_each_spark_are_those_of_the_list() -> None:
    for one in SPARKS:
        name = "SHA256SUMS" if one is SPARKS[0] else f"spark-{one.spark}.SHA256SUMS"
        listed = (ROOT / "tools/jars" / name).read_text()
        assert f"spark/delta-spark_{one.spark}_2.13-{one.delta}.jar\n" in listed
        assert f"spark/spark-sql-kafka-0-10_2.13-{one.kafka}.jar\n" in listed
        runtime = f"spark/iceberg-spark-runtime-{one.spark}_2.13-{one.iceberg}.jar\n"
        assert runtime in listed if one.iceberg != "-" else "iceberg" not in listed
