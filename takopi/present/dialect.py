"""The markdown that is understood: CommonMark, tables and strikethrough, without losing any text.

Importing this module loads the parser; a daemon that has nothing to say need not hold it.
"""

from __future__ import annotations

from collections.abc import Callable

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, blockquote, list_block

MAX_LEVEL = 24
"""Lists and quotes nested deeper are shown as they are written; a list takes two levels."""


class _Parser(MarkdownIt):
    # The parser looks for this name on itself.
    def validateLink(self, url: str) -> bool:  # ruff: ignore[invalid-function-name, no-self-use]
        # Every target is shown; which of them become links is decided where they are written.
        del url
        return True


def make_parser() -> MarkdownIt:
    """A parser whose tokens hold everything that was written."""
    parser = _Parser("commonmark", {"maxNesting": 2 * MAX_LEVEL, "html": False})
    parser.enable(["table", "strikethrough"])
    # Read as the definition of a link, a line like `[warning]: deprecated` would vanish.
    parser.disable(["html_block", "html_inline", "reference"])
    # Beyond maxNesting the parser drops what it reads, so these two give up before.
    rules = parser.block.ruler
    rules.at("blockquote", _shallow(blockquote), {"alt": ["paragraph", "blockquote", "list"]})
    rules.at("list", _shallow(list_block), {"alt": ["paragraph", "blockquote"]})
    return parser


def _shallow(
    rule: Callable[[StateBlock, int, int, bool], bool],
) -> Callable[[StateBlock, int, int, bool], bool]:
    def shallow_rule(state: StateBlock, first: int, end: int, silent: bool) -> bool:  # ruff: ignore[boolean-type-hint-positional-argument]  # their signature
        return state.level < MAX_LEVEL and rule(state, first, end, silent)

    return shallow_rule
