"""The page of the architecture shows the packages as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_page_is_current() -> None:
    ran = subprocess.run([sys.executable, "tools/architecture.py", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
