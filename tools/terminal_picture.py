"""Writes docs/pictures/terminal.svg: what the first commands of the README print, as they print it.

python -m tools.terminal_picture
"""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs/pictures/terminal.svg"
SHOW = (
    "select op, key_text, changed, before['status'] as status_before, after['status'] as status "
    "from changelog where table_name = 'orders' order by seq"
)
COMMANDS = (
    ("runner init demo && cd demo", ["init", "demo"]),
    ("runner run", ["run"]),
    (f'runner show --inline "{SHOW}"', ["show", "--inline", SHOW]),
)
COLUMNS, LINE, SIDE, TOP = 104, 19, 18, 46
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
COLOURS = {"OK": "#7ee787", "WARN": "#ffa657", "ERROR": "#ff7b72"}


def main() -> None:
    lines = [line for command, words in COMMANDS for line in (f"$ {command}", *_printed(words), "")]
    PICTURE.write_text(picture([part for line in lines for part in folded(line)][:-1]))


def _printed(words: list[str]) -> list[str]:
    """The lines that a command prints, in a project that the first one has made."""
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "PYTHONPATH": str(ROOT)}
    run = [sys.executable, "-m", "runner.cli", *words]
    done = subprocess.run(run, cwd=FOLDER, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise SystemExit(done.stdout)
    os.environ["RUNNER_PROJECT_DIR"] = str(Path(FOLDER) / "demo")
    return done.stdout.rstrip().splitlines()


def folded(line: str) -> list[str]:
    """A line as a terminal of this width shows it; a command goes on after blanks."""
    if len(line) <= COLUMNS or not line.startswith("$"):
        return [line[start : start + COLUMNS] for start in range(0, max(len(line), 1), COLUMNS)]
    cut = line.rfind(" ", 0, COLUMNS - 2)
    return [f"{line[:cut]} \\", *folded(f"$   {line[cut + 1 :]}")] if cut > 0 else [line]


def picture(lines: list[str]) -> str:
    """The lines in a window."""
    width, height = COLUMNS * 8 + 2 * SIDE, TOP + len(lines) * LINE + SIDE
    rows = "\n".join(
        f'<text x="{SIDE}" y="{TOP + number * LINE + 12}" xml:space="preserve">{_coloured(line)}</text>'
        for number, line in enumerate(lines)
    )
    dots = "".join(
        f'<circle cx="{22 + 20 * n}" cy="20" r="6" fill="{c}"/>'
        for n, c in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    said = 'role="img" aria-label="A terminal: runner init, runner run and runner show"'
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {said}>
<rect width="{width}" height="{height}" rx="10" fill="#0d1117"/>
{dots}
<g font-family="{FONTS}" font-size="13.3" fill="#d1d7e0">
{rows}
</g>
</svg>
"""


def _coloured(line: str) -> str:
    text = html.escape(re.sub(r"^\$   ", "    ", line))
    if line.startswith("$ "):
        return f'<tspan fill="#79c0ff" font-weight="bold">{text}</tspan>'
    return re.sub(
        r"\b(OK|WARN|ERROR)\b(?!=)", lambda found: f'<tspan fill="{COLOURS[found[1]]}">{found[1]}</tspan>', text
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as FOLDER:
        main()
