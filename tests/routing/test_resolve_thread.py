from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from takopi.core.context import Context
from takopi.core.errors import Refused
from takopi.core.ids import ResumeToken, RunId
from takopi.routing.facts import named_threads, reply_ref
from takopi.routing.resolve import Resolved
from takopi.store.ledger import RunState
from takopi.store.scopes import Choices
from tests.routing.given import (
    ABC,
    CLAUDE,
    CODEX,
    CODEX_BY_DEFAULT,
    ENGINES,
    OF_CODEX,
    PI,
    PLUGIN,
    WITH_DEFAULT,
    XYZ,
    message_of,
    resolved,
    run_of,
    thread_at,
)


def test_reply_continues_the_thread_of_the_message_with_its_context_and_cwd() -> None:
    found = resolved(message_of("more", reply_to=50), replied_thread=ABC, threads=(OF_CODEX,))
    assert found == Resolved(
        prompt="more",
        engine=CODEX,
        thread=ABC,
        context=Context("z80", "feat"),
        cwd_hint=Path("/dev/z80/.worktrees/feat"),
    )


def test_thread_of_no_project_stays_in_no_project() -> None:
    threads = (thread_at(ABC, None, "/start"),)
    found = resolved(
        message_of("more", reply_to=50), WITH_DEFAULT, replied_thread=ABC, threads=threads
    )
    assert (found.context, found.cwd_hint) == (None, Path("/start"))


def test_resume_line_in_the_message_comes_before_the_reply() -> None:
    found = resolved(
        message_of("claude --resume xyz\nmore", reply_to=50),
        replied_thread=ABC,
        threads=(OF_CODEX, thread_at(XYZ, Context("Web"), "/dev/web")),
    )
    assert (found.thread, found.engine, found.prompt) == (XYZ, CLAUDE, "more")
    assert (found.context, found.cwd_hint) == (Context("Web"), Path("/dev/web"))


def test_resume_line_of_the_replied_to_text_counts_where_the_store_knows_nothing() -> None:
    text = "done\n\nctx: z80 @ feat\ncodex resume abc"
    found = resolved(message_of("more", reply_to=50, reply_text=text))
    assert (found.thread, found.engine) == (ABC, CODEX)
    assert (found.context, found.cwd_hint) == (Context("z80", "feat"), None)


def test_s4_text_of_a_known_message_has_no_say() -> None:
    text = "ctx: web @ evil\nclaude --resume evil"
    found = resolved(
        message_of("more", reply_to=50, reply_text=text), replied_thread=ABC, threads=(OF_CODEX,)
    )
    assert (found.thread, found.context) == (ABC, Context("z80", "feat"))
    run = run_of("done", context=Context("z80", "x"))
    found = resolved(message_of("more", reply_to=50, reply_text=text), replied_run=run)
    assert (found.thread, found.context) == (None, Context("z80", "x"))


def test_s4_text_of_a_known_message_without_a_context_has_no_say_either() -> None:
    text = "ctx: web @ evil\nclaude --resume evil"
    found = resolved(message_of("more", reply_to=50, reply_text=text), replied_run=run_of("error"))
    assert (found.thread, found.context) == (None, None)


def test_thread_that_the_store_does_not_know_is_held_where_its_message_was() -> None:
    run = run_of("done", engine=CODEX, thread=ABC, context=Context("z80", "x"))
    found = resolved(message_of("more", reply_to=50), replied_run=run, replied_thread=ABC)
    assert (found.thread, found.context) == (ABC, Context("z80", "x"))


def test_thread_from_elsewhere_goes_where_the_chat_is_bound_to() -> None:
    found = resolved(
        message_of("/web @y\ncodex resume abc"), scope=Choices(context=Context("z80", "x"))
    )
    assert (found.thread, found.context) == (ABC, Context("z80", "x"))
    assert found.prompt == "continue"


@pytest.mark.parametrize("text", ["codex resume abc", "`codex resume abc`\n", "/claude"])
def test_thread_that_is_told_nothing_is_told_to_continue(text: str) -> None:
    found = resolved(message_of(text, reply_to=50), replied_thread=ABC, threads=(OF_CODEX,))
    assert found.prompt == "continue"


def test_thread_of_an_engine_that_is_not_here_is_refused() -> None:
    token = ResumeToken(PLUGIN, "abc")
    with pytest.raises(Refused, match="belongs to the engine plugin"):
        resolved(message_of(reply_to=50), replied_thread=token, threads=(thread_at(token, None),))


def test_thread_of_a_project_that_is_gone_is_refused() -> None:
    threads = (thread_at(ABC, Context("old")),)
    with pytest.raises(Refused, match="project old, which is not configured"):
        resolved(message_of(reply_to=50), replied_thread=ABC, threads=threads)


def test_reply_to_a_ctx_line_is_a_new_thread_in_that_context() -> None:
    found = resolved(message_of("more", reply_to=50, reply_text="ctx: WEB @ feat"))
    assert found == Resolved(prompt="more", engine=PI, context=Context("Web", "feat"))


def test_reply_to_a_ctx_line_ignores_directives_and_takes_them_out() -> None:
    found = resolved(
        message_of("/codex /web @y more", reply_to=50, reply_text="ctx: z80 @ feat"),
        CODEX_BY_DEFAULT,
        scope=Choices(engine=PI, context=Context("web", "x")),
    )
    assert (found.engine, found.context, found.prompt) == (CODEX, Context("z80", "feat"), "more")
    assert len(found.notes) == 1
    assert found.notes[0].startswith("/codex /web @y was ignored")


def test_reply_ignores_even_two_of_a_kind() -> None:
    found = resolved(message_of("@alice @bob look", reply_to=50, reply_text="ctx: z80 @ feat"))
    assert (found.context, found.prompt) == (Context("z80", "feat"), "look")


def test_directives_that_ask_for_what_is_so_anyway_need_no_note() -> None:
    found = resolved(
        message_of("/codex @feat more", reply_to=50), replied_thread=ABC, threads=(OF_CODEX,)
    )
    assert (found.prompt, found.notes) == ("more", ())


def test_reply_to_a_project_that_is_not_configured_is_refused() -> None:
    with pytest.raises(Refused, match="project old, which is not configured") as caught:
        resolved(message_of(reply_to=50, reply_text="ctx: old @ feat"))
    assert "takopi init old" in caught.value.way_out


def test_reply_to_anything_else_is_an_ordinary_message() -> None:
    found = resolved(message_of("/codex /z80 @x more", reply_to=50, reply_text="hello"))
    assert (found.engine, found.context, found.prompt) == (CODEX, Context("z80", "x"), "more")


@pytest.mark.parametrize("state", ["queued", "running"])
def test_reply_to_a_run_without_a_thread_waits_for_it(state: RunState) -> None:
    run = run_of(state, engine=CODEX, context=Context("Web", "x"))
    found = resolved(message_of("more", reply_to=50), replied_run=run)
    assert (found.waits_for, found.thread) == (RunId(7), None)
    assert (found.context, found.engine) == (Context("Web", "x"), CODEX)


def test_reply_that_waits_for_a_thread_ignores_directives_as_if_it_were_there() -> None:
    run = run_of(engine=CODEX)
    found = resolved(message_of("/pi /web more", reply_to=50), WITH_DEFAULT, replied_run=run)
    assert (found.engine, found.context, found.prompt) == (CODEX, None, "more")
    assert found.notes


@pytest.mark.parametrize("state", ["done", "error", "cancelled", "interrupted"])
def test_reply_to_a_run_that_ended_without_a_thread_starts_one_in_its_context(
    state: RunState,
) -> None:
    run = run_of(state, context=Context("z80", "x"))
    found = resolved(message_of("more", reply_to=50), replied_run=run)
    assert (found.waits_for, found.thread, found.context) == (None, None, Context("z80", "x"))


def test_own_resume_line_waits_for_nobody() -> None:
    found = resolved(
        message_of("codex resume abc", reply_to=50), replied_run=run_of(), threads=(OF_CODEX,)
    )
    assert (found.thread, found.waits_for) == (ABC, None)


def test_reply_in_a_topic_to_the_message_that_opened_it_is_no_reply() -> None:
    message = message_of("/codex go", topic=50, reply_to=50, reply_text="ctx: z80 @ feat")
    found = resolved(message, replied_run=run_of(), replied_thread=XYZ)
    assert found == Resolved(prompt="go", engine=CODEX)
    assert reply_ref(message) is None
    assert reply_ref(replace(message, reply_to_message_id=51)) is not None


def test_quote_stands_above_the_prompt() -> None:
    message = message_of("why?", reply_to=50, quote="one\n\n two")
    assert resolved(message).prompt == "> one\n>\n>  two\n\nwhy?"
    assert resolved(replace(message, text="")).prompt == "> one\n>\n>  two"


def test_quote_stands_above_the_word_to_continue() -> None:
    message = message_of("codex resume abc", reply_to=50, quote="one")
    assert resolved(message).prompt == "> one\n\ncontinue"


def test_threads_that_a_message_names_are_those_to_look_up() -> None:
    message = message_of("claude --resume xyz", reply_to=50, reply_text="codex resume abc")
    assert named_threads(message, ENGINES) == (XYZ, ABC)
    assert named_threads(replace(message, reply_to_message_id=None), ENGINES) == (XYZ,)
    assert named_threads(message_of(), ENGINES) == ()
