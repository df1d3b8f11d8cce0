from __future__ import annotations

import sys

import pytest

from takopi.interview.signal import INSTRUCTION
from tests.cli.command import Takopi
from tests.mcp.rig import SERVER

TEXT = "fix   the *parser*\n\n  and `test` it"
SERVERS = f"[mcp.servers.t]\ncommand = '{sys.executable}'\nargs = ['{SERVER}']\n"


@pytest.fixture(autouse=True)
def config(takopi: Takopi) -> None:
    takopi.write("default_engine = 'demo'\n")


def test_message_is_printed_byte_for_byte(takopi: Takopi) -> None:
    assert takopi("prompt", "preview", "--part", "message", TEXT).out == TEXT
    assert takopi("prompt", "preview", "--part", "message", "-", stdin=TEXT).out == TEXT


def test_system_text_is_printed_byte_for_byte_where_there_is_one(takopi: Takopi) -> None:
    assert takopi("prompt", "preview", "--part", "system", TEXT).out == INSTRUCTION

    takopi.write("default_engine = 'demo'\ninterview.auto = false\n")

    assert not takopi("prompt", "preview", "--part", "system", TEXT).out


def test_whole_preview_names_the_engine_the_sections_and_what_goes_where(takopi: Takopi) -> None:
    outcome = takopi("prompt", "preview", "/codex hello")

    assert outcome.code == 0
    assert outcome.out.startswith("codex\nabout ")
    assert "characters: System " in outcome.out
    assert f"--- system prompt ---\n{INSTRUCTION}\n" in outcome.out
    assert outcome.out.endswith("\n--- message ---\nhello\n")


def test_tools_of_the_servers_are_part_of_it(takopi: Takopi) -> None:
    takopi.write(f"default_engine = 'demo'\n{SERVERS}")

    outcome = takopi("prompt", "preview", "--part", "message", "hello")

    assert outcome.code == 0, outcome.err
    assert '"name": "t__add"' in outcome.out
    assert "# Message\n\nhello\n" in outcome.out


def test_server_that_does_not_start_is_a_hint(takopi: Takopi) -> None:
    takopi.write("default_engine = 'demo'\n[mcp.servers.t]\ncommand = '/no/such/program'\n")

    outcome = takopi("prompt", "preview", "--part", "message", "hello")

    assert outcome.out == "hello"
    assert "MCP server t: cannot start /no/such/program" in outcome.err


def test_conversation_that_only_a_chat_knows_is_refused(takopi: Takopi) -> None:
    outcome = takopi("prompt", "preview", "demo --resume 0123456789ab\ngo on")

    assert outcome.code == 1
    assert "only its chat knows" in outcome.err


def test_message_that_no_run_could_be_made_of_is_refused(takopi: Takopi) -> None:
    outcome = takopi("prompt", "preview", "@nowhere do it")

    assert outcome.code == 1
    assert "@nowhere names a branch, but no project" in outcome.err
