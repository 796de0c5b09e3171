"""The archive of the classes that Spark loads for a run, in the form in which Java maps them into memory."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pyspark
from pyspark.find_spark_home import _find_spark_home

# A user who sets one of these options has chosen how Java shares classes.
CHOSEN = re.compile(r"-XX:\W*(SharedArchiveFile|ArchiveClassesAtExit|UseSharedSpaces|AOT)|-Xshare:")
READ_BY_JAVA = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
FOLDER = Path("share", "changelog-runner")


def archive() -> Path:
    """Returns the file of the archive in this environment of Python, for the Java, the Spark and the folder of Spark's
    settings that are used now. With another of these the file is another: Java does not read an archive whose class
    path was another.
    """
    java_home, spark = os.environ.get("JAVA_HOME"), _find_spark_home()  # type: ignore[no-untyped-call]
    java = Path(shutil.which(f"{java_home}/bin/java" if java_home else "java") or "java").resolve()
    made_of = (java, _release(java), spark, pyspark.__version__, os.environ.get("SPARK_CONF_DIR"))
    digest = hashlib.sha256("\n".join(map(str, made_of)).encode(errors="surrogateescape")).hexdigest()
    return Path(sys.prefix) / FOLDER / f"classes-{digest[:16]}.jsa"


def _release(java: Path) -> str:
    """Returns a text that tells one version of Java from another at the same place."""
    with suppress(OSError):
        return (java.parent.parent / "release").read_text(encoding="utf-8", errors="surrogateescape")
    with suppress(OSError):
        return str(java.stat().st_mtime_ns)
    return ""


def writing(file: Path) -> str:
    """Returns the option with which Java writes an archive when it ends."""
    return shlex.quote(f"-XX:ArchiveClassesAtExit={file}")


def reading(options: Iterable[str]) -> str:
    """Returns the option with which Java reads the archive, which Java passes over if it does not fit. Empty if there
    is no archive, or if other options of Java, or those in its variables, name one.
    """
    chosen = (*options, *(os.environ.get(name, "") for name in READ_BY_JAVA))
    if any(map(CHOSEN.search, chosen)) or not (file := archive()).is_file():
        return ""
    return shlex.quote(f"-XX:SharedArchiveFile={file}")
