"""Real engines for tests: a Kafka broker, a Spark cluster, a Spark Connect server. Each is a context manager that stops
all it has started, even if the test run is killed.
"""

from __future__ import annotations

import atexit
import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from py4j.java_gateway import GatewayParameters, JavaGateway, JavaMember, launch_gateway
from py4j.protocol import STATIC_PREFIX, Py4JError, Py4JJavaError

from tests.sparks import JARS

ROOT = Path(__file__).parent.parent
SECONDS_TO_START = 60
HOST = "127.0.0.1"
USER, PASSWORD = "loader", "pa55-of-the-loader"
PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"

# Ends the whole group when its standard input ends, which it does when this process is gone, however it went.
GUARD = 'exec 3<&0; (cat <&3 >/dev/null; kill -TERM 0) & exec 3<&- "$@" </dev/null'


class EngineError(Exception):
    """An engine that is not there, or did not start."""


def jars(name: str, folder: Path = JARS) -> list[Path]:
    """The jars of `spark` or `kafka`, as `make jars` has fetched them."""
    found = sorted((folder / name).glob("*.jar"))
    if not found:
        raise EngineError(f"there are no jars in {folder / name}: run `make jars`")
    return found


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return listener.getsockname()[1]


def tail(log: Path, lines: int = 30) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.exists() else ""


class Program:
    """A program in a process group of its own, with what it writes in a log."""

    def __init__(self, command: list[str], log: Path, environment: Mapping[str, str]) -> None:
        self.name, self.log = log.stem, log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                ["sh", "-c", GUARD, "guard", *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                cwd=log.parent,
                env=dict(environment),
                start_new_session=True,
            )
        atexit.register(self.stop)

    def wait_until(self, ready: Callable[[], bool], seconds: float = SECONDS_TO_START) -> None:
        """Returns when it is ready; raises with the end of the log if it ends before or takes too long."""
        deadline = time.monotonic() + seconds
        while not ready():
            if self._process.poll() is not None:
                raise EngineError(f"{self.name} ended with exit code {self._process.returncode}:\n{tail(self.log)}")
            if time.monotonic() > deadline:
                raise EngineError(f"{self.name} did not start in {seconds} s:\n{tail(self.log)}")
            time.sleep(0.1)

    def stop(self) -> None:
        atexit.unregister(self.stop)
        stop_group(self._process)


def stop_group(process: subprocess.Popen[bytes]) -> None:
    """Ends a process that leads a group, and all others of the group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10)
    with contextlib.suppress(ProcessLookupError):  # what outlived its leader
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def processes(folder: Path) -> list[str]:
    """The command lines of what runs with this folder, or in it."""
    listed = subprocess.run(["ps", "-A", "-ww", "-o", "args="], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if str(folder) in line]


def processes_after(folder: Path, seconds: float = 10) -> list[str]:
    """What still runs with this folder when it has had time to end."""
    deadline = time.monotonic() + seconds
    while processes(folder) and time.monotonic() < deadline:
        time.sleep(0.1)
    return processes(folder)


class Message(NamedTuple):
    """A message as a producer sends it; without a value it is a tombstone, without a partition the key chooses one."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes]] = ()
    partition: int | None = None
    timestamp: int | None = None  # milliseconds of 1970


class Broker:
    """A Kafka broker that is its own controller, with two listeners: `servers` takes anyone, `secured` asks for USER
    and PASSWORD. It runs in a JVM that obeys this process, so that a call to its client for administration takes
    milliseconds. `properties` replace its own.
    """

    def __init__(self, folder: Path, properties: Mapping[str, str] = {}) -> None:
        self.folder, self.log, self.properties = folder, folder / "broker.log", properties
        self._cluster = ""

    def __enter__(self) -> Broker:
        self.folder.mkdir(parents=True, exist_ok=True)
        port, secured_port = free_port(), free_port()
        self.servers, self.secured = f"{HOST}:{port}", f"{HOST}:{secured_port}"
        self._all_properties = broker_properties(self.folder, port, secured_port, free_port()) | dict(self.properties)
        self._open()
        return self

    def restart(self, seconds_down: float) -> None:
        """Stops it for a while; then it has the same addresses, topics and messages."""
        self._stop()
        time.sleep(seconds_down)
        self._open()

    def _open(self) -> None:
        self._launch()
        atexit.register(self._stop)
        try:
            self._start(self._all_properties)
        except Py4JError as error:
            said = str(error)  # the JVM is asked for it
            self._stop()
            raise EngineError(f"the broker did not start: {said}\n{tail(self.log)}") from None
        except BaseException:
            self._stop()
            raise

    def __exit__(self, *_: object) -> None:
        self._stop()

    def _launch(self) -> None:
        """A JVM that ends when its standard input does: with this process, however that goes."""
        classpath = os.pathsep.join(map(str, jars("kafka")))
        self._output = self.log.open("a", buffering=1)
        try:
            port, token, self._process = launch_gateway(
                classpath=classpath,
                javaopts=["-Xmx512m", "-Dlog4j2.level=INFO", f"-Djava.io.tmpdir={self.folder}"],
                java_path=None,
                cwd=str(self.folder),
                die_on_exit=True,
                enable_auth=True,
                redirect_stdout=self._output,
                redirect_stderr=self._output,
                create_new_process_group=True,
                return_proc=True,
            )
        except ValueError as error:  # it ended without naming its port
            raise EngineError(f"the broker's JVM did not start:\n{tail(self.log)}") from error
        self._gateway = JavaGateway(
            gateway_parameters=GatewayParameters(
                port=port, auth_token=token, auto_convert=True, read_timeout=SECONDS_TO_START
            )
        )
        self._kafka = self._gateway.jvm.org.apache.kafka

    def _start(self, properties: Mapping[str, str]) -> None:
        java, kafka = self._gateway.jvm.java, self._gateway.jvm.kafka
        path = self.folder / "server.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        self._cluster = self._cluster or self._kafka.common.Uuid.randomUuid().toString()
        words = ["format", "-t", self._cluster, "-c", str(path), "-g"]
        array = self._gateway.new_array(java.lang.String, len(words))
        for index, word in enumerate(words):
            array[index] = word
        if kafka.tools.StorageTool.execute(array, java.lang.System.err):
            raise EngineError(f"the broker's storage could not be formatted:\n{tail(self.log)}")
        kafka.server.KafkaRaftServer(
            kafka.server.KafkaConfig(dict(properties)), self._kafka.common.utils.Time.SYSTEM
        ).startup()
        self._admin = self._kafka.clients.admin.AdminClient.create({"bootstrap.servers": self.servers})
        self._producer = self._kafka.clients.producer.KafkaProducer(producer_settings(self.servers))
        self._admin.describeCluster().nodes().get()

    def _stop(self) -> None:
        atexit.unregister(self._stop)
        # Else the finalizer of each Java object asks the JVM that is gone, in whatever code runs then, and logs that it
        # cannot.
        self._gateway._gateway_client.is_connected = False
        self._gateway.close()
        stop_group(self._process)
        self._process.stdin.close()
        self._output.close()

    def create_topic(self, name: str, partitions: int = 1) -> None:
        self._admin.createTopics([self._kafka.clients.admin.NewTopic(name, partitions, 1)]).all().get()
        self._wait_for_partitions(name, partitions)

    def add_partitions(self, name: str, total: int) -> None:
        self._admin.createPartitions({name: self._kafka.clients.admin.NewPartitions.increaseTo(total)}).all().get()
        self._wait_for_partitions(name, total)

    def delete_records(self, name: str, before: Mapping[int, int]) -> None:
        """Deletes what is before an offset of each partition, as retention would."""
        # py4j does not see a static method beside another of the same name that is not static, but it can call it.
        before_offset = JavaMember(
            "beforeOffset",
            None,
            f"{STATIC_PREFIX}org.apache.kafka.clients.admin.RecordsToDelete",
            self._gateway._gateway_client,
        )
        self._admin.deleteRecords(
            {self._partition(name, number): before_offset(offset) for number, offset in before.items()}
        ).all().get()

    def produce(self, topic: str, messages: Iterable[Message]) -> None:
        """Returns when the broker has them all; some 1,000 a second."""
        sent = [self._producer.send(self._record(topic, message)) for message in messages]
        self._producer.flush()
        for future in sent:
            future.get()

    def produce_in_transactions(self, topic: str, transactions: Iterable[tuple[list[Message], bool]]) -> None:
        """Sends each list in a transaction, which is then committed or aborted."""
        settings = producer_settings(self.servers) | {"transactional.id": topic}
        producer = self._kafka.clients.producer.KafkaProducer(settings)
        producer.initTransactions()
        for messages, is_good in transactions:
            producer.beginTransaction()
            for message in messages:
                producer.send(self._record(topic, message))
            producer.flush()
            producer.commitTransaction() if is_good else producer.abortTransaction()
        producer.close()

    def _partition(self, name: str, number: int) -> Any:
        return self._kafka.common.TopicPartition(name, number)

    def _partitions(self, name: str) -> int:
        return len(self._admin.describeTopics([name]).allTopicNames().get().get(name).partitions())

    def _wait_for_partitions(self, name: str, total: int) -> None:
        """The controller answers before the broker knows."""
        for _ in range(100):
            with contextlib.suppress(Py4JJavaError):  # the topic is not known yet
                if self._partitions(name) == total:
                    return
            time.sleep(0.05)
        raise EngineError(f"topic {name!r} has not got {total} partitions:\n{tail(self.log)}")

    def _record(self, topic: str, message: Message) -> Any:
        headers = [self._kafka.common.header.internals.RecordHeader(name, value) for name, value in message.headers]
        return self._kafka.clients.producer.ProducerRecord(
            topic, message.partition, message.timestamp, message.key, message.value, headers
        )


def broker_properties(folder: Path, port: int, secured_port: int, controller_port: int) -> dict[str, str]:
    """One node, small, that keeps messages of any age and takes big ones."""
    open_to_clients = f"PLAINTEXT://{HOST}:{port},SAFE://{HOST}:{secured_port}"
    return {
        "node.id": "1",
        "process.roles": "broker,controller",
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"{open_to_clients},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": open_to_clients,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SAFE:SASL_PLAINTEXT",
        "listener.name.safe.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.safe.plain.sasl.jaas.config": f'{PLAIN_LOGIN} user_{USER}="{PASSWORD}";',
        "log.dirs": str(folder / "data"),
        "log.retention.ms": "-1",
        "log.cleaner.dedupe.buffer.size": "8388608",
        "auto.create.topics.enable": "false",
        "message.max.bytes": "104857600",
        "socket.request.max.bytes": "209715200",
        "num.io.threads": "2",
        "num.network.threads": "2",
        "background.threads": "2",
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": "1",
        "group.initial.rebalance.delay.ms": "0",
        "min.insync.replicas": "1",
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }


def producer_settings(servers: str) -> dict[str, str]:
    """One request at a time: where a new partition refuses the first one, not being ready, and takes the second, the
    first is refused for ever.
    """
    as_it_is = "org.apache.kafka.common.serialization.ByteArraySerializer"
    sizes = {
        "max.request.size": "104857600",
        "buffer.memory": "209715200",
        "max.in.flight.requests.per.connection": "1",
    }
    return {"bootstrap.servers": servers, "key.serializer": as_it_is, "value.serializer": as_it_is, **sizes}


class StandaloneCluster:
    """A Spark master and its workers, each with one core and 1 GB. Their Python has the installed packages but not this
    project: what a job needs must come with it.
    """

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.folder, self.workers = folder, workers
        self._programs: list[Program] = []

    def __enter__(self) -> StandaloneCluster:
        self.folder.mkdir(parents=True, exist_ok=True)
        port, web_port = free_port(), free_port()
        self.master = f"spark://{HOST}:{port}"
        try:
            self._run("master", "master.Master", "--port", str(port), "--webui-port", str(web_port))
            self._programs[0].wait_until(lambda: alive_workers(web_port) == 0)
            for number in range(self.workers):
                name, size = f"worker-{number}", ("--cores", "1", "--memory", "1g")
                place = ("--webui-port", "0", "--work-dir", str(self.folder / name))
                self._run(name, "worker.Worker", *size, *place, self.master)
            self._programs[-1].wait_until(lambda: alive_workers(web_port) == self.workers)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for program in reversed(self._programs):
            program.stop()

    def _run(self, name: str, spark_class: str, *arguments: str) -> None:
        command = [str(spark_home() / "bin" / "spark-class"), f"org.apache.spark.deploy.{spark_class}", "--host", HOST]
        self._programs.append(Program([*command, *arguments], self.folder / f"{name}.log", environment(self.folder)))


class ConnectServer:
    """A Spark Connect server on two local cores, unless `conf` names another `spark.master`. Its Python has the
    installed packages but not this project.
    """

    def __init__(self, folder: Path, jars: Iterable[Path] = (), conf: Mapping[str, str] = {}) -> None:
        self.folder, self.jars, self.conf = folder, list(jars), conf

    def __enter__(self) -> ConnectServer:
        self.folder.mkdir(parents=True, exist_ok=True)
        port = free_port()
        self.remote = f"sc://{HOST}:{port}"
        settings = {
            "spark.master": "local[2]",
            "spark.ui.enabled": "false",
            "spark.driver.host": HOST,
            "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
            **self.conf,
            "spark.connect.grpc.binding.address": HOST,
            "spark.connect.grpc.binding.port": str(port),
        }
        server = "org.apache.spark.sql.connect.service.SparkConnectServer"
        command = [str(spark_home() / "bin" / "spark-submit"), "--class", server]
        command += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        command += ["--jars", ",".join(map(str, self.jars))] if self.jars else []
        self._program = Program([*command, "spark-internal"], self.folder / "connect.log", environment(self.folder))
        try:
            self._program.wait_until(lambda: speaks_http2(port))
        except BaseException:
            self._program.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._program.stop()


def spark_home() -> Path:
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise EngineError("pyspark is not installed: run `make setup`")
    return Path(found.origin).parent


def environment(folder: Path) -> dict[str, str]:
    """What a Spark process of its own gets to see: nothing that leads to this project, which the environment of tests
    has installed as a path to its source.
    """
    hook = folder / "python" / "sitecustomize.py"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"import sys\n\nsys.path[:] = [path for path in sys.path if path != {str(ROOT)!r}]\n")
    names = ("HOME", "JAVA_HOME", "JAVA_TOOL_OPTIONS", "LANG", "TMPDIR", "USER")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    return kept | {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        "PYTHONPATH": str(hook.parent),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_DAEMON_MEMORY": "512m",
    }


def alive_workers(web_port: int) -> int | None:
    """As the master's page counts them; None while it does not answer."""
    with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
        connection = http.client.HTTPConnection(HOST, web_port, timeout=5)
        connection.request("GET", "/json/")
        with connection.getresponse() as response:
            return json.load(response)["aliveworkers"]
    return None


def speaks_http2(port: int) -> bool:
    """Whether a server answers the first words of HTTP/2, which gRPC speaks, with its settings (a frame of type 4)."""
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=5) as connection:
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")
        return connection.recv(9)[3:4] == b"\4"
    return False
