"""`make size`: how big the project is, and how far it is from the command line to Spark's write.

Prints a table and writes target/size.json, flat: name -> number. `run.*` are of `runner run` on a source with one
message, until Spark begins to write: `called` are the functions of the packages commands, run, engine and storage that
are called, in so many `modules`; `hops` those that are active in the end, through all threads, and `entries` is how
often their path comes into the module that it comes into most often.
"""

from __future__ import annotations

import ast
import json
import re
import statistics
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

from runner.cli import main
from runner.counts import grouped

ROOT = Path(__file__).parent.parent
# A module with fewer lines counts as small.
SMALL = 100
BRANCH = re.compile(r"\{%-?\s*if\b")
MESSAGE = ROOT / "formats/cases/canal/shop.messages.jsonl"
# The packages that a run goes through after its project was read and compiled.
PACKAGES = re.compile("(commands|run|engine|storage)/")
Called = tuple[str, str]
"""A module and one of its functions."""
PROJECT = "sources:\n  - {name: shop, format: canal, files: shop.jsonl}\n"


def of_python() -> dict[str, float]:
    """Lines, modules, dataclasses and lambdas of the runner."""
    texts = [path.read_text("utf-8") for path in sorted((ROOT / "runner").rglob("*.py"))]
    lengths = [text.count("\n") for text in texts]
    nodes = [node for text in texts for node in ast.walk(ast.parse(text))]
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    return {
        "python.lines": sum(lengths),
        "python.modules": len(lengths),
        "python.median": statistics.median(lengths),
        "python.small_modules": sum(length < SMALL for length in lengths),
        "python.dataclasses": sum(any("dataclass" in ast.unparse(one) for one in n.decorator_list) for n in classes),
        "python.lambdas": sum(isinstance(node, ast.Lambda) for node in nodes),
    }


def of_macros() -> dict[str, float]:
    """Lines and branches of the macros, and how often they read the plan of a format."""
    text = "".join(path.read_text("utf-8") for path in sorted((ROOT / "macros").rglob("*.sql")))
    return {
        "macros.lines": text.count("\n"),
        "macros.branches": len(BRANCH.findall(text)),
        "macros.plan": text.count("plan."),
    }


def of_run() -> dict[str, float]:
    """The path of `runner run` from the command line to Spark's write."""
    called, path = _calls_of_run()
    entries = Counter(module for module, _ in groupby(module for module, _ in path))
    return {
        "run.called": len(called),
        "run.modules": len({module for module, _ in called}),
        "run.hops": len(path),
        "run.entries": max(entries.values()),
    }


def _calls_of_run() -> tuple[set[Called], list[Called]]:
    """The functions that are called, and those that lead to Spark's write, from the first to the last."""
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    above, found = threading.local(), []
    called: set[Called] = set()
    submit, start = ThreadPoolExecutor.submit, DataStreamWriter.start

    def calls(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and not found and (one := _called(frame)) and PACKAGES.match(one[0]):
            called.add(one)

    def submits(pool: Any, call: Callable[..., Any], *arguments: Any, **named: Any) -> Future[Any]:
        caller = _active(above)

        def run() -> Any:
            above.path = caller
            return call(*arguments, **named)

        return submit(pool, run)

    def starts(*arguments: Any, **named: Any) -> Any:
        found.append(_active(above))
        return start(*arguments, **named)

    ThreadPoolExecutor.submit, DataStreamWriter.start = submits, starts  # type: ignore[method-assign]
    threading.setprofile(calls)
    sys.setprofile(calls)
    try:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "project.yml").write_text(PROJECT, "utf-8")
            (Path(folder) / "shop.jsonl").write_text(MESSAGE.read_text("utf-8").split("\n", 1)[0], "utf-8")
            code = main(["run", "--project-dir", folder, "-s", "shop_to_changelog", "-q"])
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        ThreadPoolExecutor.submit, DataStreamWriter.start = submit, start  # type: ignore[method-assign]
    if code or not found:
        raise SystemExit(f"runner run ended with {code}, and {len(found)} streams were started")
    return called, found[0]


def _active(above: threading.local) -> list[Called]:
    """The runner's functions that are active in this thread, behind those that have started it."""
    here = [one for frame in _frames(sys._getframe(1)) if (one := _called(frame))]
    return [*getattr(above, "path", []), *reversed(here)]


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame:
        yield frame
        frame = frame.f_back


def _called(frame: FrameType) -> Called | None:
    """The module and the name of a function of the runner; None for those of others, and for parts of functions."""
    path, name = Path(frame.f_code.co_filename), frame.f_code.co_name
    if name.startswith("<") or not path.is_relative_to(ROOT / "runner"):
        return None
    return path.relative_to(ROOT / "runner").as_posix(), name


def table(sizes: dict[str, float]) -> str:
    """
    >>> print(table({"python.lines": 12345, "run.hops": 6}))
    python.lines   12 345
    run.hops            6
    """
    width = max(map(len, sizes))
    return "\n".join(f"{name.ljust(width)} {grouped(round(size)):>8}" for name, size in sizes.items())


if __name__ == "__main__":
    sizes = {**of_python(), **of_macros(), **of_run()}
    (ROOT / "target").mkdir(exist_ok=True)
    (ROOT / "target" / "size.json").write_text(json.dumps(sizes, indent=1) + "\n", "utf-8")
    print(table(sizes))
