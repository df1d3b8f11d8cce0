from __future__ import annotations

from pathlib import Path

import pytest

from takopi.core.context import Context
from takopi.core.ids import ResumeToken, RunId
from takopi.store.scopes import Choices
from tests.routing.given import (
    ABC,
    CLAUDE,
    CODEX,
    OF_CODEX,
    PLUGIN,
    PROJECTS,
    XYZ,
    config_of,
    message_of,
    resolved,
    run_of,
    thread_at,
)

CHAT_MODE = config_of('session_mode = "chat"\n' + PROJECTS)
OF_CHAT = Choices(thread=ABC)
IN_Z80 = Choices(thread=ABC, context=Context("z80", "feat"))


def test_in_reply_mode_the_thread_of_the_scope_is_not_continued() -> None:
    found = resolved(message_of(), scope=IN_Z80, threads=(OF_CODEX,))
    assert found.thread is None


def test_in_chat_mode_the_thread_of_the_scope_is_continued_where_it_was_held() -> None:
    found = resolved(message_of("more"), CHAT_MODE, scope=IN_Z80, threads=(OF_CODEX,))
    assert (found.thread, found.engine, found.prompt) == (ABC, CODEX, "more")
    assert (found.context, found.cwd_hint) == (Context("z80", "feat"), None)
    assert found.session_cwd == Path("/dev/z80/.worktrees/feat")


@pytest.mark.parametrize("text", ["@other go", "/web go"])
def test_in_chat_mode_another_context_starts_afresh_and_says_so(text: str) -> None:
    found = resolved(message_of(text), CHAT_MODE, scope=IN_Z80, threads=(OF_CODEX,))
    assert found.thread is None
    assert found.notes == ("a new conversation, as the last one here was in z80 @ feat",)


def test_in_chat_mode_another_engine_starts_afresh() -> None:
    found = resolved(message_of("/claude go"), CHAT_MODE, scope=IN_Z80, threads=(OF_CODEX,))
    assert (found.thread, found.engine) == (None, CLAUDE)
    found = resolved(message_of("/codex go"), CHAT_MODE, scope=IN_Z80, threads=(OF_CODEX,))
    assert (found.thread, found.engine) == (ABC, CODEX)


def test_in_chat_mode_a_reply_continues_its_own_thread() -> None:
    threads = (OF_CODEX, thread_at(XYZ, Context("Web"), "/dev/web"))
    found = resolved(
        message_of(reply_to=50), CHAT_MODE, scope=IN_Z80, replied_thread=XYZ, threads=threads
    )
    assert (found.thread, found.context) == (XYZ, Context("Web"))
    assert found.session_cwd is None


def test_in_chat_mode_a_reply_to_a_run_that_never_had_a_thread_starts_afresh() -> None:
    run = run_of("error", context=Context("z80", "feat"))
    found = resolved(
        message_of(reply_to=50), CHAT_MODE, scope=IN_Z80, replied_run=run, threads=(OF_CODEX,)
    )
    assert found.thread is None


def test_in_chat_mode_a_thread_that_is_not_known_any_more_starts_afresh() -> None:
    assert resolved(message_of(), CHAT_MODE, scope=OF_CHAT).thread is None
    token = ResumeToken(PLUGIN, "abc")
    found = resolved(
        message_of(), CHAT_MODE, scope=Choices(thread=token), threads=(thread_at(token, None),)
    )
    assert (found.thread, found.engine) == (None, CLAUDE)


def test_in_chat_mode_a_second_message_waits_for_the_thread_of_the_first() -> None:
    run = run_of("running", engine=CODEX, context=Context("z80", "feat"))
    found = resolved(message_of("more"), CHAT_MODE, scope=IN_Z80, session_run=run)
    assert (found.waits_for, found.thread, found.engine) == (RunId(7), None, CODEX)
    assert resolved(message_of("more"), scope=IN_Z80, session_run=run).waits_for is None


@pytest.mark.parametrize("text", ["@other go", "/pi go"])
def test_in_chat_mode_a_message_for_elsewhere_waits_for_nobody(text: str) -> None:
    run = run_of("running", engine=CODEX, context=Context("z80", "feat"))
    found = resolved(message_of(text), CHAT_MODE, scope=IN_Z80, session_run=run)
    assert found.waits_for is None
