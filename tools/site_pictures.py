"""The pictures in docs/site.md: the project in tests/site is built, and its page opened in Chromium."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

from runner.cli import main
from tests.browser import CHROMIUM, browser
from tools.site_messages import write_messages

ROOT = Path(__file__).parent.parent
# Name of a picture -> the page, the size of the window, and how far it is scrolled.
PICTURES = {
    "site-overview": ("#/", (1200, 860), 0),
    "site-source": ("#/node/source.shop", (1200, 860), 0),
    "site-format": ("#/format/canal", (1040, 560), 280),
}


def take(folder: Path) -> None:
    """Writes the pictures of the page of the project in a folder."""
    with browser(folder / "profile") as chromium:
        for name, (address, size, scrolled) in PICTURES.items():
            chromium.window(size)
            chromium.open(folder / "target/docs/index.html", address)
            chromium.run(f"window.scrollTo(0, {scrolled})")
            time.sleep(1)  # charts and lines are drawn after the page
            chromium.picture(ROOT / "docs" / f"{name}.png")


def build(folder: Path) -> None:
    """Builds the project in a folder, and its page."""
    shutil.copytree(ROOT / "tests/site/project", folder, dirs_exist_ok=True)
    write_messages(folder)
    for words in (["build"], ["docs", "generate"]):
        assert main(["--project-dir", str(folder), *words]) == 0


if __name__ == "__main__":
    if not CHROMIUM:
        sys.exit("there is no Chromium here: apt-get install chromium")
    with tempfile.TemporaryDirectory() as place:
        build(Path(place))
        take(Path(place))
