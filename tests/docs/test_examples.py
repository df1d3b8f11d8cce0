"""What the pages say is so: configs load, commands print what is shown, links lead somewhere."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from takopi.cli.names import known_names
from takopi.config.load import find_problems
from tests.cli.command import BIN, Takopi
from tests.docs.pages import PAGES, ROOT, Block, blocks
from tests.projects.repos import make_repo

DEADLINE_S = 120
HARMLESS = {"takopi", ".venv/bin/takopi", "cd", "echo", "export", "git"}
"""The first words of lines that are run."""
CONSOLE = blocks("console")
# A plugin's config needs the plugin: test_plugins_howto.py installs it.
CONFIGS = [block for block in blocks("toml") if block.page.name != "plugins.md"]
SHELL = [block for block in blocks("sh", "") if re.search(r"takopi |\./scripts/", block.text)]


@pytest.fixture
def ada(tmp_path: Path) -> Takopi:
    """Somebody with a repository, in which she is, and an engine."""
    ada = Takopi(tmp_path.resolve())
    ada.cwd = make_repo(ada.folder / "dev/z80")
    ada.install("claude")
    ada.environ["PATH"] = f"{BIN}:{ada.environ['PATH']}"
    return ada


def run(ada: Takopi, lines: list[str]) -> str:
    """What the lines print, with the prompt in front of each."""
    for line in lines:
        assert line.split()[0] in HARMLESS, f"is it harmless to run {line}?"
    script = "".join(f"cat <<'LINE'\n$ {line}\nLINE\n{line}\n" for line in lines)
    done = subprocess.run(
        ["sh", "-c", script.replace(".venv/bin/takopi", "takopi")],
        cwd=ada.cwd,
        env=ada.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    return done.stdout.replace(str(ada.folder), "/home/ada")


@pytest.mark.parametrize("block", CONSOLE, ids=str)
def test_command_prints_what_the_page_shows(ada: Takopi, block: Block) -> None:
    lines = [line[2:] for line in block.text.splitlines() if line.startswith("$ ")]
    assert run(ada, lines) == block.text


@pytest.mark.parametrize("block", SHELL, ids=str)
def test_command_of_the_page_works(ada: Takopi, block: Block) -> None:
    lines = [line.partition("  # ")[0].strip() for line in block.text.splitlines()]
    scripts = [line for line in lines if line.startswith("./scripts/")]
    assert all((ROOT / line.split()[0]).is_file() for line in scripts)
    ours = [f"{line} || exit" for line in lines if line and line not in scripts]
    said = run(ada, [*ours, "echo done"])
    assert said.endswith("$ echo done\ndone\n"), said


@pytest.mark.parametrize("block", CONFIGS, ids=str)
def test_config_of_the_page_is_one(block: Block) -> None:
    assert find_problems(block.text.encode(), known_names(), environ={}) == ()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_link_of_the_page_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if re.match(r"\w+:", target):
            continue
        name, _, heading = target.partition("#")
        there = page.parent / name if name else page
        assert there.exists(), target
        if heading:
            titles = re.findall(r"^#+ (.+)$", there.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = [re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles]
            assert heading in slugs, target
