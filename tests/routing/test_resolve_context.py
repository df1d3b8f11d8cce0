from __future__ import annotations

import pytest

from takopi.config.loaded import Config
from takopi.core.context import Context
from takopi.core.errors import Refused
from takopi.routing.resolve import Resolved
from takopi.store.scopes import Choices
from tests.routing.given import (
    CLAUDE,
    CODEX,
    PROJECTS,
    WITH_DEFAULT,
    WITH_PROJECTS,
    config_of,
    message_of,
    resolved,
)

PLAIN = config_of("")
GROUP_OF_WEB = config_of(
    'default_project = "z80"\nallowed_user_ids = [1]\n' + PROJECTS + "chat_id = -5\n"
)


def test_message_without_anything_is_a_new_thread_of_the_fallback_engine_in_no_project() -> None:
    assert resolved(message_of("fix tests"), PLAIN) == Resolved(prompt="fix tests", engine=CLAUDE)


def test_directives_choose_engine_project_and_branch() -> None:
    found = resolved(message_of("/codex /z80 @feat/name fix tests"))
    assert found == Resolved(prompt="fix tests", engine=CODEX, context=Context("z80", "feat/name"))


def test_project_is_spelled_as_it_is_configured() -> None:
    assert resolved(message_of("/WEB go")).context == Context("Web")


def test_empty_prompt_of_a_new_thread_stays_empty() -> None:
    assert not resolved(message_of("/codex")).prompt


def test_two_engines_are_refused() -> None:
    with pytest.raises(Refused, match="/codex and /claude"):
        resolved(message_of("/codex /claude go"))


def test_default_project_is_taken_where_nothing_else_names_one() -> None:
    assert resolved(message_of(), WITH_DEFAULT).context == Context("z80")


def test_project_of_the_chat_comes_before_the_default_one() -> None:
    assert resolved(message_of(chat_id=-5), GROUP_OF_WEB).context == Context("Web")
    assert resolved(message_of(chat_id=-6), GROUP_OF_WEB).context == Context("z80")


def test_binding_of_the_chat_comes_before_the_project_of_the_chat_in_a_topic() -> None:
    chat = Choices(context=Context("z80", "dev"))
    found = resolved(message_of(chat_id=-5, topic=9), GROUP_OF_WEB, chat=chat)
    assert found.context == Context("z80", "dev")


def test_binding_of_the_chat_does_not_count_outside_of_topics() -> None:
    chat = Choices(context=Context("z80", "dev"))
    assert resolved(message_of(chat_id=-5), GROUP_OF_WEB, chat=chat).context == Context("Web")


def test_binding_of_the_scope_comes_before_that_of_the_chat() -> None:
    scope, chat = Choices(context=Context("web", "x")), Choices(context=Context("z80", "dev"))
    found = resolved(message_of(topic=9), scope=scope, chat=chat)
    assert found.context == Context("Web", "x")


def test_directive_comes_before_every_binding() -> None:
    scope = Choices(context=Context("web", "x"))
    assert resolved(message_of("/z80 go"), scope=scope).context == Context("z80")


def test_branch_of_the_binding_is_kept_where_its_project_is_named_again() -> None:
    scope = Choices(context=Context("z80", "x"))
    assert resolved(message_of("/Z80 go"), scope=scope).context == Context("z80", "x")


def test_directive_names_another_branch_of_the_bound_project() -> None:
    scope = Choices(context=Context("z80", "x"))
    assert resolved(message_of("@y go"), scope=scope).context == Context("z80", "y")


def test_topic_that_is_bound_without_a_branch_does_not_get_that_of_the_chat() -> None:
    scope, chat = Choices(context=Context("z80")), Choices(context=Context("z80", "dev"))
    assert resolved(message_of(topic=9), scope=scope, chat=chat).context == Context("z80")


def test_branch_goes_with_the_default_project() -> None:
    assert resolved(message_of("@x go"), WITH_DEFAULT).context == Context("z80", "x")


@pytest.mark.parametrize("config", [PLAIN, WITH_PROJECTS])
def test_branch_without_a_project_is_refused_and_says_how_to_add_one(config: Config) -> None:
    with pytest.raises(Refused) as caught:
        resolved(message_of("@x go"), config)
    assert "@x" in caught.value.what
    assert "takopi init" in caught.value.way_out
    assert ("/z80 @x" in caught.value.way_out) == bool(config.projects)


def test_binding_to_a_project_that_is_gone_is_refused_unless_another_one_is_named() -> None:
    scope = Choices(context=Context("old", "x"))
    with pytest.raises(Refused) as caught:
        resolved(message_of(), scope=scope)
    assert "old" in caught.value.what
    assert "/ctx clear" in caught.value.way_out
    assert resolved(message_of("/z80 go"), scope=scope).context == Context("z80")
