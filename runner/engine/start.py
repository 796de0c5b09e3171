"""Starts Spark with the settings of its JVM, and says why Spark does not start."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import TimeoutExpired
from tempfile import NamedTemporaryFile

import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from runner.contract import SQL_SETTINGS
from runner.engine.errors import QueryFailed, SparkGone, query_errors, spark_gone
from runner.errors import RunnerError, from_here
from runner.files import is_uri
from runner.project.inputs import Target

OPTIONS, DEFAULT_OPTIONS = "spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions"
SETTINGS = {
    "spark.master": "local[*]",
    "spark.driver.memory": "2g",
    # The query of a format becomes long methods, which Java only interprets without the second option. Without the
    # third, Java collects garbage each time that Spark's classes have grown by some megabytes.
    OPTIONS: "-XX:+UseParallelGC -XX:-DontCompileHugeMethods -XX:MetaspaceSize=256m",
    "spark.executor.extraJavaOptions": "-XX:+UseParallelGC -XX:-DontCompileHugeMethods -XX:MetaspaceSize=256m",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.adaptive.enabled": "true",
    # Without this Spark plans a whole stream again, twice a batch, to describe its adaptive plan.
    "spark.sql.adaptive.streaming.stateless.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "100000",
    # Streams refuse the expression for the number of a row in its block, though it is right where a query reads files
    # directly.
    "spark.sql.streaming.unsupportedOperationCheck": "false",
    # Each batch of a stream is planned again, and its Java compiled again unless the class is in this cache: a session
    # with many sources has more than 100 such classes.
    "spark.sql.codegen.cache.maxEntries": "2000",
    # Delta's vacuum lists folders in this many tasks, however few folders there are; the default is 10,000.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "64",
    # Rows of several kinds and days are written side by side: without this Spark sorts them first.
    "spark.sql.maxConcurrentOutputFileWriters": "32",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # The results of Python functions for this many rows fit the processor's cache, and few large messages come
    # together.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
}

SECONDS_TO_END = 10.0
# The variable in which pyspark looks for the arguments of the launcher of its JVM.
SUBMIT = "PYSPARK_SUBMIT_ARGS"
CORES = str(os.cpu_count() or 2)

# Settings for Spark on this machine only.
LOCAL_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": CORES,
    # Each task that lists files is sent all of Hadoop's settings: more tasks than cores only cost time.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": CORES,
    # Delta would read its log in 50 tasks, which for small tables takes longer than everything else.
    "spark.databricks.delta.snapshotPartitions": "2",
    # Each sort and each table of a join takes a page at least. The pages that Spark chooses, of up to 64 MB, fill the
    # memory of a run that builds several small tables at once.
    "spark.buffer.pageSize": "2m",
    # Only the heartbeat tells how many rows a query has read so far.
    "spark.executor.heartbeatInterval": "1s",
}

# Settings for tables and checkpoints in a folder.
FOLDER_SETTINGS = {
    # Spark's other class renames files of checkpoints through an interface of Hadoop that starts four processes for
    # each: in Java alone it cannot see whether a file is a link. In a folder both classes rename in one step.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}


# Java without its second compiler, which takes half of two cores at first, and with as much memory for compiled code as
# Java would have with that compiler.
FOR_LITTLE = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"


# Settings that sessions of a JVM that somebody else has started need too, to land all messages and to count them.
NEEDED = {
    name: SETTINGS[name]
    for name in ("spark.sql.streaming.unsupportedOperationCheck", "spark.sql.streaming.numRecentProgressUpdates")
}


def running() -> SparkSession | None:
    """Returns the session of Spark that this process has, whoever opened it; None if there is none. Raises RunnerError
    `spark-gone` if its JVM has ended, and forgets the JVM, so that another can be started.
    """
    if not SparkContext._active_spark_context:
        return None
    gateway = SparkContext._gateway
    with spark_gone():
        try:
            if gateway and gateway.proc and gateway.proc.poll() is not None:
                raise SparkGone
            return SparkSession.active()
        except (SparkGone, Py4JError, ConnectionError):
            SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
            SparkSession._instantiatedSession = SparkSession._activeSession = None
            raise


def has_jvm() -> bool:
    """Returns True if this process has started a JVM, with a session or without."""
    return SparkContext._gateway is not None


def end_jvm(seconds: float = SECONDS_TO_END) -> None:
    """Ends the JVM of this process, whose sessions have been stopped; kills the JVM after so many seconds."""
    gateway = SparkContext._gateway
    SparkContext._gateway = SparkContext._jvm = None
    if gateway and gateway.proc:
        with suppress(Py4JError, OSError):
            gateway.shutdown()
        # The JVM ends when nobody can write to it any more.
        gateway.proc.stdin.close()
        try:
            gateway.proc.wait(seconds)
        except TimeoutExpired:
            gateway.proc.kill()


def started(target: Target, log: Path, is_small_job: bool = False) -> SparkSession:
    """Starts a new JVM; returns a session in it."""
    conf = SparkConf().setAppName("runner").setAll(list(settings_of(target, is_small_job).items()))
    with _start_explained(log):
        _launch(conf, log)
        session = SparkSession.builder.config(conf=conf).getOrCreate()
    if _is_local(target) and "spark.pyspark.python" not in target.spark:
        session.sparkContext.pythonExec = sys.executable
    return session


def settings_of(target: Target, is_small_job: bool = False) -> dict[str, str]:
    """Returns the settings with which a JVM is started for a target. Those of the target win over those that are chosen
    here, but not over those that compiled SQL relies on.
    """
    return {
        **SETTINGS,
        **(LOCAL_SETTINGS if _is_local(target) else {}),
        **({} if is_uri(target.path) else FOLDER_SETTINGS),
        "spark.sql.warehouse.dir": target.at("_catalog"),
        **target.spark,
        **SQL_SETTINGS,
        OPTIONS: java_options(target.spark, is_small_job),
    }


def _is_local(target: Target) -> bool:
    """Returns True if Spark runs on this machine only."""
    return str(target.spark.get("spark.master", "local")).startswith("local")


def java_options(settings: Mapping[str, str], is_small_job: bool) -> str:
    """Returns the options of Java for a target with these settings of Spark. Options in the settings win over those
    that are chosen here.
    """
    options, default_options = settings.get(OPTIONS, SETTINGS[OPTIONS]), settings.get(DEFAULT_OPTIONS, "")
    has_own = bool({OPTIONS, DEFAULT_OPTIONS} & set(settings))
    return " ".join((options, reading((options, default_options)), FOR_LITTLE if is_small_job and not has_own else ""))


@contextmanager
def _start_explained(log: Path) -> Iterator[None]:
    """Raises any error that keeps Spark from starting as RunnerError `spark-start`."""
    known = log.stat().st_size if log.exists() else 0
    try:
        with query_errors():
            yield
    except (QueryFailed, OSError) as failure:
        # Only the log says why a JVM did not start.
        reason = (
            _first_reason(log.read_bytes()[known:].decode(errors="replace"))
            if "JAVA_GATEWAY_EXITED" in str(failure)
            else str(failure)
        )
        hint = (
            "Spark needs Java 17 or later (in JAVA_HOME or in PATH), and settings under spark must exist; "
            f"{from_here(log)} has the whole output"
        )
        raise RunnerError("spark-start", f"Spark did not start: {reason}", hint=hint) from failure


# Lines that Java and Spark print at every start, and lines of stack traces.
NOT_A_REASON = re.compile(
    r"\s|Picked up |WARNING: |\[[0-9.]+s\]\[warning\]|Error occurred during initialization of VM"
    r"|Using |Setting |To adjust |\S+ \S+ (WARN|INFO) "
)


def _first_reason(text: str) -> str:
    """Returns the line that says what is wrong in the output of a JVM or its launcher.

    >>> _first_reason("Picked up JAVA_TOOL_OPTIONS: -Da=b\\nException in thread x.Bad: number\\n\\tat a.b(C.java)")
    'Exception in thread x.Bad: number'
    """
    return next(
        (line for line in text.splitlines() if line and not NOT_A_REASON.match(line)), "Java ended and gave no reason"
    )


def _launch(conf: SparkConf, log: Path) -> None:
    """Starts a JVM whose output goes to a file. A JVM that this process already has is used again: a JVM stays when its
    session ends.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        # The output of Java may hold secrets, and nothing here can redact them: only this user may read the file.
        log.chmod(0o600)
        gateway = SparkContext._gateway
        if gateway and gateway.proc and gateway.proc.poll() is not None:
            # The JVM was killed, or has crashed.
            gateway = SparkContext._gateway = SparkContext._jvm = None
        if not gateway:
            with _submitted(conf):
                gateway = launch_gateway(None, {"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]
            SparkContext._ensure_initialized(gateway=gateway)


@contextmanager
def _submitted(conf: SparkConf) -> Iterator[None]:
    """Lets a JVM that pyspark launches in the block read these settings from a file that only this user can read. All
    users of the machine can read the command line of a JVM.
    """
    given = os.environ.get(SUBMIT)
    with NamedTemporaryFile("w", prefix="runner-", suffix=".properties", encoding="ascii") as file:
        file.writelines(f"{_escaped(key)}={_escaped(value)}\n" for key, value in conf.getAll())
        file.flush()
        file_words = f"--properties-file {shlex.quote(file.name)} --load-spark-defaults"
        os.environ[SUBMIT] = f"{file_words} {given or 'pyspark-shell'}"
        try:
            yield
        finally:
            if given is None:
                del os.environ[SUBMIT]
            else:
                os.environ[SUBMIT] = given


def _escaped(text: str) -> str:
    """Returns a text as a file of Java's properties has it, whatever the text holds.

    >>> _escaped("a=é")
    '\\\\u0061\\\\u003d\\\\u00e9'
    """
    units = text.encode("utf-16-be").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


# --- the archive of the classes that Spark loads for a run, in the form in which Java maps them into memory

# A user who sets one of these options has chosen how Java shares classes.
CHOSEN = re.compile(r"-XX:\W*(SharedArchiveFile|ArchiveClassesAtExit|UseSharedSpaces|AOT)|-Xshare:")
READ_BY_JAVA = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
FOLDER = Path("share", "changelog-runner")


def archive() -> Path:
    """Returns the file of the archive in this environment of Python, for the Java, the Spark and the folder of Spark's
    settings that are used now. With another of these the file is another: Java does not read an archive whose class
    path was another.
    """
    java_home, spark = os.environ.get("JAVA_HOME"), _find_spark_home()  # type: ignore[no-untyped-call, unused-ignore]
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
