from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takopi.core.errors import Refused
from takopi.routing.directives import Directives, parse_directives, skip_directives
from tests.routing.given import BOT

ENGINES = ["claude", "codex"]
PROJECTS = ["z80", "Web-App"]


def parse(text: str, bot_name: str | None = BOT) -> Directives:
    return parse_directives(text, engines=ENGINES, projects=PROJECTS, bot_name=bot_name)


def parts(text: str, bot_name: str | None = BOT) -> tuple[str | None, str | None, str | None, str]:
    found = parse(text, bot_name)
    return found.engine, found.project, found.branch, found.prompt


def test_directives_stand_in_front_of_the_prompt() -> None:
    assert parts("/codex /z80 @feat/name fix tests") == ("codex", "z80", "feat/name", "fix tests")


def test_directives_have_a_line_of_their_own() -> None:
    assert parts("/z80 @feat/name\nfix tests") == (None, "z80", "feat/name", "fix tests")


def test_order_of_directives_does_not_matter() -> None:
    assert parts("@x /z80 /claude go") == ("claude", "z80", "x", "go")


def test_names_are_found_in_any_case_and_spelled_as_configured() -> None:
    assert parts("/CODEX /web-app go") == ("codex", "Web-App", None, "go")


def test_branch_keeps_its_case_and_slashes() -> None:
    assert parts("@Feat/Name/3 go") == (None, None, "Feat/Name/3", "go")


def test_empty_lines_in_front_are_passed_over() -> None:
    assert parts(" \n\t\r\n  /codex  go") == ("codex", None, None, "go")


@pytest.mark.parametrize(
    ("text", "prompt"),
    [
        ("/codex   two  spaces ", "two  spaces "),
        ("/codex go\n\n  indented\r\n\tend \n", "go\n\n  indented\r\n\tend \n"),
        ("/codex\n\n  indented\n", "\n  indented\n"),
        ("/codex  \r\nnext\r\n", "next\r\n"),
        ("/codex", ""),
        ("/codex \n", ""),
        ("/codex\n\n", "\n"),
    ],
)
def test_rest_stays_byte_for_byte(text: str, prompt: str) -> None:
    assert parts(text) == ("codex", None, None, prompt)


@pytest.mark.parametrize(
    "text",
    [
        "/unknown fix",
        "/unknown /codex fix",
        "fix /codex",
        "fix @feat",
        "/ codex",
        "/",
        "@",
        "@ feat",
        "//codex",
        "/codex: fix",
        "/codexx",
        "claude fix",
        "hello\n/codex fix",
        "  \n spaces in front",
        "",
        "\n\n",
    ],
)
def test_text_without_directives_stays_as_it_is(text: str) -> None:
    assert parse(text) == Directives(prompt=text)


def test_unknown_name_ends_the_directives_and_stays_in_the_prompt() -> None:
    assert parts("/codex /unknown /z80 go") == ("codex", None, None, "/unknown /z80 go")


def test_directive_after_the_first_word_of_the_prompt_is_text() -> None:
    assert parts("/codex ask @alice about /z80") == ("codex", None, None, "ask @alice about /z80")


def test_name_with_our_bot_is_ours_in_any_case() -> None:
    assert parts("/codex@Takopi_Bot /z80@takopi_bot go") == ("codex", "z80", None, "go")


@pytest.mark.parametrize("bot_name", [BOT, None])
def test_name_with_another_bot_is_not_ours(bot_name: str | None) -> None:
    assert parts("/codex@other_bot go", bot_name) == (None, None, None, "/codex@other_bot go")


def test_own_name_is_taken_out_and_is_never_a_branch() -> None:
    assert parts("@takopi_bot fix it") == (None, None, None, "fix it")
    assert parts("@TAKOPI_BOT /codex @takopi_bot @feat go") == ("codex", None, "feat", "go")
    assert parts("@takopi_bot") == (None, None, None, "")


def test_own_name_later_in_the_prompt_stays() -> None:
    assert parse("ask @takopi_bot") == Directives(prompt="ask @takopi_bot")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("/codex /claude go", "/codex and /claude name 2 engines"),
        ("/codex /CODEX go", "/codex and /CODEX name 2 engines"),
        ("/z80 @x /Web-App go", "/z80 and /Web-App name 2 projects"),
        ("@x @y\ngo", "@x and @y name 2 branches"),
    ],
)
def test_two_of_a_kind_are_refused_with_both_names(text: str, named: str) -> None:
    with pytest.raises(Refused) as caught:
        parse(text)
    assert caught.value.what == named
    assert caught.value.way_out


def test_where_directives_do_not_count_they_are_taken_out_and_never_refused() -> None:
    found = skip_directives(
        "/codex /claude @x @y go", engines=ENGINES, projects=PROJECTS, bot_name=BOT
    )
    assert (found.prompt, found.words) == ("go", ("/codex", "/claude", "@x", "@y"))


def test_words_are_kept_as_they_were_written() -> None:
    assert parse("@takopi_bot /CODEX @X go").words == ("/CODEX", "@X")


@given(st.text())
def test_any_text_whose_first_word_is_no_directive_comes_back_unchanged(text: str) -> None:
    words = text.split()
    first = words[0] if words else ""
    if re.match(r"@.|/(claude|codex|z80|web-app)(@takopi_bot)?$", first, re.IGNORECASE):
        return
    assert parse(text) == Directives(prompt=text)


SPACES = st.text(st.sampled_from(" \t\u00a0"), min_size=1)
NO_DIRECTIVE = st.from_regex(r"\A[^\s@/][^\0]*\Z")


@given(
    engine=st.none() | st.sampled_from(ENGINES),
    project=st.none() | st.sampled_from(PROJECTS),
    branch=st.none() | st.from_regex(r"[a-z]{1,8}(/[a-z]{1,8})?", fullmatch=True),
    gap=SPACES,
    prompt=NO_DIRECTIVE,
    own_line=st.sampled_from([None, "\n", "\r\n"]),
)
def test_what_was_put_in_front_is_read_back(
    engine: str | None,
    project: str | None,
    branch: str | None,
    gap: str,
    prompt: str,
    own_line: str | None,
) -> None:
    words = [f"/{engine}"] * bool(engine) + [f"/{project}"] * bool(project)
    words += [f"@{branch}"] * bool(branch)
    between = own_line or gap if words else ""
    text = gap.join(words) + between + prompt
    assert parts(text) == (engine, project, branch, prompt)
