from __future__ import annotations

import json

from takopi.core.tools import MCPToolCall
from takopi.runs.tooling import PREVIEW_CHARS, approval_of


def test_approval_shows_the_tool_and_every_argument() -> None:
    ask = approval_of(MCPToolCall("fs__write", {"path": "/srv/notes", "text": "añb\n"}))
    assert (ask.tool, ask.for_thread) == ("fs__write", True)
    assert json.loads(ask.preview) == {"path": "/srv/notes", "text": "añb\n"}


def test_nothing_hides_in_an_approval() -> None:
    ask = approval_of(MCPToolCall("fs__\u202ewrite", {"path": "a\u202eb\u200bc\U000e0100"}))
    assert ask.tool == "fs__\\u202ewrite"
    assert '"a\\u202eb\\u200bc\\U000e0100"' in ask.preview


def test_long_arguments_show_their_ends_and_how_much_is_between() -> None:
    ask = approval_of(MCPToolCall("fs__write", {"text": f"begin{'x' * 1_000_000}end"}))
    assert "begin" in ask.preview
    assert "end" in ask.preview
    assert "characters are not shown]" in ask.preview
    assert len(ask.preview) < PREVIEW_CHARS + 100
