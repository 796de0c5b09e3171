"""The wheel, outside the checkout: formats, macros the starter project and what its page needs are in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the wheel was installed into; what it depends on comes from this interpreter."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    subprocess.run([*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), str(ROOT)], check=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", str(folder / "site"), str(wheel)], check=True)
    return folder / "site"


def python(installed: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    return subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True)


def test_a_new_project_builds_and_has_its_page(installed: Path, tmp_path: Path) -> None:
    where = python(installed, tmp_path, "-c", "import runner; print(runner.__file__)")
    assert where.stdout.startswith(str(installed))
    made = python(installed, tmp_path, "-m", "runner.cli", "init", "demo")
    assert made.returncode == 0, made.stderr
    built = python(installed, tmp_path / "demo", "-m", "runner.cli", "build")
    assert built.returncode == 0, built.stderr
    assert "ERROR=0" in built.stderr and "conserved_shop" in built.stderr
    table = pyarrow.parquet.read_table(tmp_path / "demo/warehouse/order_status").to_pylist()
    orders = [row["status"] for row in sorted(table, key=lambda row: (row["order_id"], row["step"]))]
    assert orders == ["created", "paid", "shipped", "created", "cancelled"]
    ran = python(installed, tmp_path / "demo", "-m", "runner.cli", "docs", "generate", "--no-tables")
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "demo/target/docs/index.html").stat().st_size > 100_000
