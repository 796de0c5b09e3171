"""Values of environment variables are redacted in all that a command says and writes."""

from __future__ import annotations

import base64
import json
import os
import stat
import subprocess
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from runner.report import Report
from runner.run.results import Result
from runner.secrets import REDACTED, Secrets

SECRET = 'tr0ut & "gill\'s" \\ ü+/='


def with_secret(*values: str) -> Secrets:
    secrets = Secrets()
    for value in values:
        secrets.add("S", value)
    return secrets


@pytest.mark.parametrize(
    "written",
    [
        SECRET,
        quote(SECRET),
        quote(SECRET, safe=""),
        quote_plus(SECRET),
        quote(SECRET, safe="").lower(),
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        "tr0ut &amp; &quot;gill&#x27;s&quot; \\ ü+/=",
        'tr0ut & "gill\\\'s" \\\\ ü+/=',
        SECRET.encode().hex(),
    ],
)
def test_a_secret_is_redacted_however_it_is_written(written: str) -> None:
    assert with_secret(SECRET).redacted(f"before {written} after") == f"before {REDACTED} after"


@pytest.mark.parametrize("before", ["", "a", "ab", "abc", "loader:"])
@pytest.mark.parametrize("after", ["", "a", "ab"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_secret_inside_of_base64(before: str, after: str, encode) -> None:
    secret = "k3y~~~???-of-a-catalog"
    header = encode((before + secret + after).encode()).decode()
    shown = with_secret(secret).redacted(f"Authorization: Basic {header}")
    assert REDACTED in shown
    # At most two characters on each side are left, which hold bits of the neighbours.
    left = shown.removeprefix("Authorization: Basic ").split(REDACTED)
    assert len(left[0]) <= len(before) * 4 // 3 + 2 and len(left[1]) <= len(after) * 4 // 3 + 4


@pytest.mark.parametrize(
    ("value", "text", "shown"),
    [
        ("id-1:k3y-of-it", "client_id=id-1&client_secret=k3y-of-it", "client_id=id-1&client_secret=***"),
        ("jdbc:postgresql://me:k3y-of@host/db", "login failed: k3y-of", "login failed: ***"),
        (
            "sc://host:15002/;use_ssl=true;token=t0ken-1",
            "bad token t0ken-1 at host:15002",
            "bad token *** at host:15002",
        ),
        ('Login required username="me" password="k3y of it";', "no: k3y of it", "no: k3y of it"),
        ('Login required username="me" password="k3y-of-it";', "no: k3y-of-it", "no: ***"),
        ("-----BEGIN KEY-----\nMIIEvQIBADANB\nabc\n", "cannot read MIIEvQIBADANB", "cannot read ***"),
        ("true", "true is true", "true is true"),
        ("12345", "12345", "12345"),
        ("123456", "123456", "***"),
        ("", "nothing", "nothing"),
        ("secret-1", "secret-12", "***2"),
    ],
)
def test_parts_and_short_values(value: str, text: str, shown: str) -> None:
    assert with_secret(value).redacted(text) == shown


def test_the_longest_secret_goes_first() -> None:
    assert with_secret("abcdef", "abcdefgh").redacted("abcdefgh abcdef") == f"{REDACTED} {REDACTED}"


# --- through the command line


PROJECT = """
name: shop
target: t
targets:
  t:
    path: "{{ env_var('FOLDER', public=true) }}/warehouse"
    storage: iceberg
    catalog: {type: rest, uri: http://localhost, credential: "{{ env_var('CREDENTIAL') }}"}
sources:
  - {name: orders, format: canal, files: in/*.jsonl}
"""
CREDENTIAL = "loader:tr0ut-and-gill"


@pytest.fixture
def secret_project(project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CREDENTIAL", CREDENTIAL)
    monkeypatch.setenv("FOLDER", "/data/lake")

    def write(**files: str) -> Path:
        return project({"project.yml": PROJECT, **{name.replace("__", "/"): text for name, text in files.items()}})

    return write


@pytest.mark.parametrize("log_format", ["text", "json"])
@pytest.mark.parametrize("debug", [True, False])
def test_errors_and_tracebacks(secret_project, runner, monkeypatch, log_format: str, debug: bool) -> None:
    """A bug, with the secret in its message, and a mistake whose message quotes a value that was filled in."""
    folder = secret_project()

    def fail(*_: object) -> None:
        raise ValueError("401: POST /tokens client_id=loader&client_secret=tr0ut-and-gill")

    flags = ["--log-format", log_format, *(["-d"] if debug else [])]
    with monkeypatch.context() as patch:
        patch.setattr("runner.commands.inspect.Workspace.chosen", fail)
        patch.setattr("runner.commands.inspect.Workspace.in_order", fail)
        said = runner("compile", *flags)
        assert "client_secret=***" in said.err and "Traceback" in said.err and "tr0ut" not in said.err + said.out
    sources = "kafka: {servers: s, topics: t, batch: \"{{ env_var('CREDENTIAL') }}\"}"
    (folder / "project.yml").write_text(PROJECT.replace("files: in/*.jsonl", sources))
    said = runner("ls", *flags)
    assert said.code == 2 and "kafka-number" in said.err and "***" in said.err and "tr0ut" not in said.err
    if log_format == "json":
        assert all(json.loads(line)["event"] in ("error", "debug") for line in said.err.splitlines())


def test_a_setting_whose_name_is_secret_is_one_without_env_var(project, runner) -> None:
    settings = "{spark.a.password: wr1tten-here, spark.b: shown-here}"
    source = "{name: wr1tten-here-shown-here, format: canal, files: x}"
    project({"project.yml": f"targets: {{local: {{spark: {settings}}}}}\nsources: [{source}]"})
    ran = runner("ls")
    assert ran.code == 2 and '"***-shown-here" cannot be the name of a source' in ran.err


@pytest.mark.parametrize(
    "files",
    [
        {"models__m.sql": "select '{{ env_var('CREDENTIAL') }}'"},
        {"models__m.sql": "select '{{ env_var('CREDENTIAL') | upper }}'"},
        {"models__m.sql": "select '{{ env_var('CREDENTIAL', 'default') }}'"},
        {"models__m.sql": "select '{{ target.spark['spark.sql.catalog.lake.credential'] }}'"},
        {"models__m.sql": "select '{{ target.spark }}'"},
        {"models__m.sql": "{{ a() }}", "macros__a.sql": "{% macro a() %}{{ env_var('CREDENTIAL') }}{% endmacro %}"},
    ],
)  # fmt: skip
def test_a_model_that_holds_a_secret_is_an_error(secret_project, runner, files: dict[str, str]) -> None:
    folder = secret_project(**files)
    for words in (["compile"], ["ls"], ["compile", "--inline", files["models__m.sql"]]):
        ran = runner(*words)
        assert (ran.code == 2 and "error[secret-in-model]: the SQL would show" in ran.err) or words == ["ls"]
        assert "tr0ut" not in (ran.err + ran.out).lower()
    assert not any("tr0ut" in path.read_text().lower() for path in (folder / "target").rglob("*") if path.is_file())


def test_public_values_are_in_sql_and_messages(secret_project, runner) -> None:
    other = "env_var('NONE', 'd', public=true)"
    secret_project(
        **{"models__m.sql": f"select '{{{{ env_var('FOLDER', public=true) }}}}' as a, '{{{{ {other} }}}}' as b"}
    )
    assert "select '/data/lake' as a, 'd' as b" in runner("compile", "-s", "m", "-q").out


def test_what_a_result_says_is_redacted_in_events_and_files(secret_project, capsys: pytest.CaptureFixture[str]) -> None:
    from runner import artifacts
    from runner.compile.compiled import Compiled
    from runner.run.workspace import ProjectArguments, Workspace

    folder = secret_project(**{"models__m.sql": "select 1 as a"})
    workspace = Workspace(ProjectArguments())
    node = workspace.graph.nodes["m"]
    secret, basic = CREDENTIAL.split(":")[1], base64.b64encode(CREDENTIAL.encode()).decode()
    result = Result(
        "m", "model", "error", message=f"HTTP 401 {secret}\nAuthorization: Basic {basic}", notes=(quote(CREDENTIAL),)
    )
    artifacts.write_results(workspace.project, workspace.graph, Compiled(), "run", [result], 1.0, {})
    for log_format in ("text", "json"):
        Report(log_format, secrets=workspace.project.secrets).finished(node, result, 1, 1)
    written = (folder / "target/run_results.json").read_text() + capsys.readouterr().err
    assert written.count("HTTP 401 ***") == 3 and written.count("Basic ***") == 3
    assert not any(part in written for part in ("tr0ut", basic[:12], "dHIwdXQ"))


def test_payload_is_data(secret_project, capsys: pytest.CaptureFixture[str]) -> None:
    Report(secrets=with_secret("abcdef")).payload("abcdef")
    assert capsys.readouterr().out == "abcdef\n"


class Echo(BaseHTTPRequestHandler):
    """A catalog that refuses everybody, and says what it was asked."""

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        message = f"POST {self.path} {asked} {self.headers.get('Authorization')}"
        error = {"error": {"message": message, "type": "NotAuthorizedException", "code": 401}}
        content = json.dumps({**error, "error_description": message}).encode()
        self.send_response(401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.engines
@pytest.mark.parametrize("flags", [[], ["-d", "--log-format", "json"]])
def test_a_catalog_that_repeats_the_request(spark, secret_project, runner, flags: list[str]) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        uri = f"http://127.0.0.1:{server.server_address[1]}"
        text = PROJECT.replace("http://localhost", uri).replace("{{ env_var('FOLDER', public=true) }}/", "")
        folder = secret_project(**{"in__a.jsonl": "", "models__m.sql": "select 1 as a"})
        (folder / "project.yml").write_text(text)
        ran = runner("run", *flags)
        server.shutdown()
    assert ran.code in (1, 2) and "***" in ran.err, ran.err
    written = [path.read_text(errors="replace") for path in (folder / "target").rglob("*") if path.is_file()]
    assert "tr0ut" not in ran.err + ran.out + "".join(written)


@pytest.mark.engines
@pytest.mark.spark
def test_the_log_of_java_is_for_its_owner_and_what_spark_refuses_is_redacted(project, monkeypatch) -> None:
    """A JVM of its own that cannot start: what it says of a setting holds the value."""
    folder = project(
        {"project.yml": "targets: {local: {spark: {spark.driver.memory: \"{{ env_var('MEMORY') }}\"}}}",
         "models/m.sql": "select 1 as a"}
    )  # fmt: skip
    environment = {**os.environ, "MEMORY": "tr0ut-and-gill"}
    ran = subprocess.run(
        [sys.executable, "-m", "runner.cli", "run"], cwd=folder, env=environment, capture_output=True, text=True
    )
    log = folder / "target/logs/spark.log"
    assert ran.returncode == 2 and "error[spark-start]" in ran.stderr and "***" in ran.stderr, ran.stderr
    assert "tr0ut" not in ran.stderr + ran.stdout
    assert stat.S_IMODE(log.stat().st_mode) == 0o600 and "tr0ut" in log.read_text()


def command_lines(of: int) -> set[tuple[str, ...]]:
    """The words of the command lines of a process, its children and their children, as all users can read them."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    family = {of}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    found = set()
    for process in family:
        with suppress(OSError):
            found.add(tuple(Path(f"/proc/{process}/cmdline").read_text().split("\0")))
    return found


@pytest.mark.engines
@pytest.mark.spark
def test_no_command_line_of_a_run_has_a_setting_that_java_does_not_start_with(project) -> None:
    """Looked at for as long as the run takes, with functions in Python: these are processes too."""
    shown = "-Dshown=b\\c:#="
    settings = {
        "spark.hadoop.fs.s3a.secret.key": "{{ env_var('KEY') }}",
        "spark.ssl.keyPassword": "{{ env_var('KEY') }}",
        "spark.app.name": SECRET,
        "spark.driver.memory": "1234m",
        "spark.driver.extraJavaOptions": shown.replace("\\", "\\\\"),
    }
    source = {"name": "app", "format": "drs_mongodb", "files": "in/*", "dead_letters": {"fail": None}}
    folder = project(
        {
            "project.yml": json.dumps({"sources": [source], "targets": {"local": {"spark": settings}}}),
            "in/a.jsonl": "{}\n",
        }
    )
    seen = set()
    environment = {**os.environ, "KEY": "tr0ut-and-gill"}
    words = [sys.executable, "-m", "runner.cli", "run"]
    with subprocess.Popen(words, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as ran:
        while ran.poll() is None:
            seen |= command_lines(ran.pid)
            time.sleep(0.02)
        assert ran.stderr is not None
        said = ran.stderr.read()
    assert ran.returncode == 0, said
    java = [line for line in seen if "org.apache.spark.deploy.SparkSubmit" in line]
    assert any("-Xmx1234m" in line and shown in line for line in java), java
    assert any("pyspark.daemon" in line for line in seen), seen
    assert [word for line in seen for word in line if "tr0ut" in word] == []
