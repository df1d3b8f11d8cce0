from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takopi.core.context import Context
from takopi.core.errors import Refused
from takopi.projects.names import check_branch
from takopi.routing.ctx import format_ctx, parse_ctx


def is_branch(name: str) -> bool:
    try:
        check_branch(name)
    except Refused:
        return False
    return "`" not in name


def test_line_names_project_and_branch() -> None:
    assert format_ctx(Context("z80", "feat/name")) == "ctx: z80 @ feat/name"
    assert format_ctx(Context("z80")) == "ctx: z80"


@pytest.mark.parametrize(
    "line",
    [
        "ctx: z80 @ feat/name",
        "CTX: z80 @ feat/name",
        "Ctx:z80@feat/name",
        "  ctx :  z80   @feat/name  ",
        "ctx: z80 @  feat/name\t",
        "`ctx: z80 @ feat/name`",
        "``ctx: z80 @ feat/name",
        "ctx: `z80` @ `feat/name`",
        "ctx: z80 @ feat/name`",
        "done\r\n\r\nctx: z80 @ feat/name\r\nclaude --resume abc",
    ],
)
def test_case_spacing_and_backticks_do_not_matter(line: str) -> None:
    assert parse_ctx(line) == Context("z80", "feat/name")


@pytest.mark.parametrize("line", ["ctx: z80", "CTX:z80 ", "`ctx: z80`"])
def test_branch_may_be_missing(line: str) -> None:
    assert parse_ctx(line) == Context("z80")


def test_branch_may_have_an_at_sign() -> None:
    assert parse_ctx("ctx: z80 @ @a@b") == Context("z80", "@a@b")


def test_last_line_wins() -> None:
    text = "ctx: one @ a\nsome words\nctx: two\nctx: the third of them\nlast words"
    assert parse_ctx(text) == Context("two")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ctx",
        "ctx:",
        "ctx: @ feat",
        "ctx: z80 @",
        "ctx: z80 feat",
        "ctx: z80 @ feat and more",
        "the ctx: z80",
        "context: z80",
    ],
)
def test_other_lines_are_no_ctx_lines(text: str) -> None:
    assert parse_ctx(text) is None


@given(
    project=st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,31}", fullmatch=True),
    branch=st.none() | st.text(min_size=1, max_size=20).filter(is_branch),
    before=st.text(),
)
def test_what_was_written_is_read_back(project: str, branch: str | None, before: str) -> None:
    context = Context(project, branch)
    assert parse_ctx(f"{before}\n{format_ctx(context)}") == context


def test_long_lines_are_read_in_linear_time() -> None:
    begun = time.process_time()
    for filler in (" ", "`", "` ", "a", "@ ", "ctx: ", "ctx: a @ "):
        assert parse_ctx("ctx: " + filler * 100_000 + " x y") is None
    assert time.process_time() - begun < 2
