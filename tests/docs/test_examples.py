"""What the pages say is so: configs load, commands print what is shown, links lead somewhere."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import msgspec
import pytest

from takopi.app.commands.table import NAMES
from takopi.cli.names import known_names
from takopi.config.load import find_problems
from takopi.engines.demo.child.words import read_words
from takopi.turns.layout import Settings
from tests.cli.command import BIN, Takopi
from tests.docs.commands import TOP
from tests.docs.pages import PAGES, ROOT, Block, blocks
from tests.projects.repos import make_repo

DEADLINE_S = 120
STAND_INS = ("systemctl", "journalctl", "loginctl", "tmux")
"""Programs that would do something to this machine: they do nothing, and succeed."""
HARMLESS = {"takopi", ".venv/bin/takopi", "cd", "echo", "export", "git", *STAND_INS}
"""The first words of lines that are run."""
SET_UP = 'bot_token = "123456789:AAsample"\nchat_id = 123456789\n'
RUN = {"console", "sh", "", "toml", "yaml", "chat"}
"""The kinds of blocks that a test runs or loads; those of a chat are in test_chat_examples.py."""
PLUGINS = ROOT / "docs/how-to/plugins.md"
"""Its blocks are a package, and test_plugins_howto.py installs it."""
CONSOLE = blocks("console")
CONFIGS = [block for block in blocks("toml") if block.page != PLUGINS]
SHELL = blocks("sh", "")
TYPED = re.compile(
    rf"\$ |\./scripts/|(takopi|teddy) ({'|'.join(TOP)})\b|@\w|/({'|'.join(NAMES)})\b"
)
"""How something begins that is typed, in a terminal or in the chat."""


@pytest.fixture
def ada(tmp_path: Path) -> Takopi:
    """Somebody with a repository, in which she is, and an engine."""
    ada = Takopi(tmp_path.resolve())
    ada.cwd = make_repo(ada.folder / "dev/z80")
    for program in ("claude", *STAND_INS):
        ada.install(program)
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
    assert lines
    assert run(ada, lines) == block.text


@pytest.mark.parametrize("block", SHELL, ids=str)
def test_command_of_the_page_works(ada: Takopi, block: Block) -> None:
    ada.write(SET_UP)
    lines = [line.partition("  # ")[0].strip() for line in block.text.splitlines()]
    scripts = [line for line in lines if line.startswith("./scripts/")]
    assert all((ROOT / line.split()[0]).is_file() for line in scripts)
    ours = [f"{line} || exit" for line in lines if line and line not in scripts]
    said = run(ada, [*ours, "echo done"])
    assert said.endswith("$ echo done\ndone\n"), said


@pytest.mark.parametrize("block", CONFIGS, ids=str)
def test_config_of_the_page_is_one(block: Block) -> None:
    assert find_problems(block.text.encode(), known_names(), environ={}) == ()


@pytest.mark.parametrize("block", blocks("yaml"), ids=str)
def test_settings_of_sessions_are_those_that_there_are(block: Block) -> None:
    said = msgspec.yaml.decode(block.text)
    assert set(said) <= set(Settings.__struct_fields__)
    assert msgspec.convert(said, Settings)


@pytest.mark.parametrize("block", blocks(), ids=str)
def test_every_block_is_run_or_is_nothing_to_run(block: Block) -> None:
    if block.kind in RUN or block.page == PLUGINS:
        return
    assert block.kind == "text", f"no test knows what to do with a block of {block.kind}"
    typed = [line for line in block.text.splitlines() if TYPED.match(line) or read_words(line)]
    assert not typed, "what is typed in a terminal goes into sh or console, in a chat into chat"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_link_of_the_page_leads_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in [*re.findall(r"\]\(([^)\s]+)\)", text), *re.findall(r'src="([^"]+)"', text)]:
        if re.match(r"\w+:", target):
            continue
        name, _, heading = target.partition("#")
        there = page.parent / name if name else page
        assert there.exists(), target
        if heading:
            titles = re.findall(r"^#+ (.+)$", there.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = [re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles]
            assert heading in slugs, target


def test_every_page_is_reached_from_the_index() -> None:
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    linked = {(ROOT / "docs" / target).resolve() for target in re.findall(r"\]\(([^)#\s]+)", index)}
    assert {page for page in PAGES if page.parent != ROOT} - {ROOT / "docs/README.md"} <= linked
