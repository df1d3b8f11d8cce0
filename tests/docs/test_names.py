"""Every command, option, key and setting that stands in a sentence of a page is one."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from takopi.app.commands.table import DESCRIPTIONS, NAMES
from takopi.cli.names import known_names
from takopi.config.load import find_problems
from tests.config.keys import ANY, Key, every_key
from tests.docs.commands import ROOT_COMMAND, find, leaves, options, subcommands
from tests.docs.pages import PAGES, ROOT

EVERYWHERE = options(ROOT_COMMAND) | {"--help", "-h", "--debug"}
KEYS = every_key()
TABLES = {key[0] for key in KEYS if len(key) > 1} - {"*"}
PLACEHOLDER = re.compile(r"[A-Z]+|.*[<\[…|].*")
EVERYTHING = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)


def inline(page: Path) -> list[str]:
    """What stands in backticks in the sentences and tables of a page."""
    text = re.sub(
        r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    return re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text)


def on_pages(pattern: str) -> list[str]:
    """What stands in backticks anywhere and reads so."""
    found = {name for page in PAGES for name in inline(page) if re.fullmatch(pattern, name)}
    return sorted(found)


@pytest.mark.parametrize("typed", on_pages(r"(takopi|teddy) .+"))
def test_command_of_a_sentence_is_one(typed: str) -> None:
    program, *words = shlex.split(typed)
    if program == "teddy":
        words = ["session", *words]
    named, command = find(words)
    rest = [word for word in words[len(named) :] if not PLACEHOLDER.fullmatch(word)]
    flags = {word for word in rest if word.startswith("-") and word != "-"}
    assert flags <= options(command) | EVERYWHERE
    if subcommands(command):
        assert set(rest) - flags <= set(known_names().engines), (
            f"takopi has no such command: {typed}"
        )


@pytest.mark.parametrize("said", on_pages(rf"({'|'.join(TABLES)})(\.[\w<>*-]+)+"))
def test_key_of_a_sentence_is_one(said: str) -> None:
    assert any(fits(key, tuple(said.split("."))) for key in KEYS), f"there is no key {said}"


def fits(key: Key, said: Key) -> bool:
    """Whether a key, or the table that it is in, is written so."""
    pairs = zip(key, said, strict=False)
    return len(said) <= len(key) and all(part in {ANY, name} for part, name in pairs)


@pytest.mark.parametrize("said", on_pages(rf"({'|'.join(key[0] for key in KEYS)})(\.\w+)* = [^…]+"))
def test_setting_of_a_sentence_is_one(said: str) -> None:
    assert find_problems(said.encode(), known_names(), environ={}) == ()


def test_every_command_of_the_chat_is_in_its_reference() -> None:
    page = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`/.+?) \|", page, re.MULTILINE)
    shown = {name for row in rows for name in re.findall(r"`/(\w+)", row)}
    assert shown == NAMES
    assert set(DESCRIPTIONS) <= shown


@pytest.mark.parametrize("words", [words for words, _ in leaves(ROOT_COMMAND)], ids=" ".join)
def test_command_is_on_a_page_with_its_options(words: tuple[str, ...]) -> None:
    named, command = find(list(words))
    assert f"`takopi {' '.join(named)}" in EVERYTHING
    for param in command.params:
        spellings = [name for name in param.opts if name.startswith("-")]
        assert not spellings or any(name in EVERYTHING for name in spellings), spellings
