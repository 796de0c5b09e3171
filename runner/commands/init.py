"""init and clean: creating a project, and removing what the runner wrote to target/."""

from __future__ import annotations

import importlib.resources
import shutil
from pathlib import Path

from runner import artifacts
from runner.commands.arguments import ProjectArguments
from runner.commands.workspace import read_project_of
from runner.errors import RunnerError
from runner.project.project import built_in_folder
from runner.report import Report


def init(name: str, report: Report) -> int:
    """Creates a small project that can be built: one source, its messages, a model with tests."""
    root = Path(name)
    if root.is_file() or (root.is_dir() and any(root.iterdir())):
        raise RunnerError("init-exists", f'"{root}" already exists and is not empty', hint="choose another name")
    starter = importlib.resources.files("runner") / "starter"
    with importlib.resources.as_file(starter) as folder:
        shutil.copytree(folder, root, dirs_exist_ok=True)
    (messages,) = (built_in_folder("formats") / "cases").glob("*/shop.messages.jsonl")
    (root / "messages").mkdir()
    shutil.copyfile(messages, root / "messages" / "shop.jsonl")
    shutil.copytree(built_in_folder("models"), root / "models", dirs_exist_ok=True)
    report.say(f"wrote {root}/. Next: cd {root} && runner build && runner show -s changelog --limit 5")
    return 0


def clean(arguments: ProjectArguments, report: Report) -> int:
    """Removes what the runner wrote to target/. Tables, checkpoints and other files in target/ stay."""
    project = read_project_of(arguments)
    for path in (project.target_path / name for name in artifacts.WRITTEN):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    if project.target_path.is_dir() and not any(project.target_path.iterdir()):
        project.target_path.rmdir()
    report.say(f"removed what the runner wrote to {project.target_path}")
    return 0
