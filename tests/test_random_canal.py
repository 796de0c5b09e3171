"""Many random messages, compared with a reference in plain Python that knows nothing of SQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.compile.library import Library
from runner.compile.query import compile_format
from runner.contract import MACRO_GLOBALS
from runner.engine.messages import messages_view
from runner.engine.session import ASCII_LETTERS, INTERPRETED, Spark
from runner.functions.avro.files import FileMessage
from runner.render import Renderer
from runner.run.compare import as_text
from runner.spec.formats import FormatFolders
from tests import random_canal, reference_canal
from tests.drawn import drawn

ROOT = Path(__file__).parent.parent
LEFT_OUT = ("source", "format", "origin", "detail", "run_id", "batch", "loaded_at", "landed_on")


@pytest.fixture(scope="module")
def messages() -> list[bytes]:
    """Drawn one by one, and sent to Spark together: a query takes as long for one."""
    return drawn(random_canal.messages(), 1_000)


@pytest.mark.parametrize(
    ("zone", "conf"),
    [
        (None, {}),
        ("Asia/Shanghai", ASCII_LETTERS),
        ("America/New_York", {**ASCII_LETTERS, **INTERPRETED}),
        ("+08:00", {**ASCII_LETTERS, **INTERPRETED}),
    ],
)
def test_random_messages(spark: Spark, messages: list[bytes], zone: str | None, conf: dict[str, str]) -> None:
    renderer = Renderer([ROOT / "macros"], {**MACRO_GLOBALS, "ref": str})
    library = Library(renderer)
    session = spark.fresh(library).cloned(conf)
    messages_view(session, [FileMessage(0, 0, message) for message in messages], "json", "canal_messages")
    compiled = compile_format(renderer.call, FormatFolders((ROOT / "formats",)).load("canal"), "canal", zone)
    query = library.complete(compiled)
    session.register(query.functions, query.sql_functions)
    got: dict[int, list[dict]] = {}
    for row in sorted(session.rows(query.sql)[1], key=lambda r: (r["seq"]["arrival"], r["seq"]["row"])):
        got.setdefault(row["seq"]["arrival"][0], []).append(_comparable(row))
    for number, message in enumerate(messages):
        assert got[number] == [_comparable(row) for row in reference_canal.rows(message, zone)], message


def _comparable(row: dict) -> dict:
    seq = {key: value for key, value in row["seq"].items() if key != "arrival"}
    return as_text({key: value for key, value in {**row, "seq": seq}.items() if key not in LEFT_OUT})
