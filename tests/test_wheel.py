"""The wheel, outside the checkout: formats, macros and the starter project are in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the wheel was installed into; what it depends on comes from this interpreter."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    subprocess.run([*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), str(ROOT)], check=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", str(folder / "site"), str(wheel)], check=True)
    return folder / "site"


@pytest.mark.spark
def test_a_new_project_builds(installed: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(installed)}

    def runner(*words: str, cwd: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "runner.cli", *words], cwd=cwd, env=environment, capture_output=True, text=True
        )

    where = subprocess.run(
        [sys.executable, "-c", "import runner; print(runner.__file__)"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert str(installed) in where.stdout
    made = runner("init", "demo")
    assert made.returncode == 0, made.stderr
    built = runner("build", cwd=tmp_path / "demo")
    assert built.returncode == 0, built.stderr
    assert "ERROR=0" in built.stderr and "conserved_shop" in built.stderr
    shown = runner("show", "-s", "order_status", "--output", "json", cwd=tmp_path / "demo")
    assert [json.loads(line)["status"] for line in shown.stdout.splitlines()] == [
        "created",
        "paid",
        "shipped",
        "created",
        "cancelled",
    ]


def test_it_writes_the_page_of_a_project(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "project.yml").write_text("sources:\n  - {name: s, format: canal, files: in}\n")
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    words = [sys.executable, "-m", "runner.cli", "docs", "generate", "--no-tables"]
    ran = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "target/docs/index.html").stat().st_size > 100_000
