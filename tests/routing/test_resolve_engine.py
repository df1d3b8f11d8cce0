from __future__ import annotations

from dataclasses import replace

import pytest

from takopi.core.context import Context
from takopi.core.errors import Refused
from takopi.store.scopes import Choices
from tests.routing.given import (
    CLAUDE,
    CODEX,
    CODEX_BY_DEFAULT,
    PI,
    PLUGIN,
    config_of,
    message_of,
    resolved,
)

PLAIN = config_of("")


def test_global_default_comes_before_the_fallback() -> None:
    assert resolved(message_of(), CODEX_BY_DEFAULT).engine == CODEX


def test_default_of_the_project_comes_before_the_global_one() -> None:
    assert resolved(message_of("/web go"), CODEX_BY_DEFAULT).engine == PI


def test_choice_of_the_scope_comes_before_the_default_of_the_project() -> None:
    scope = Choices(engine=CLAUDE)
    assert resolved(message_of("/web go"), CODEX_BY_DEFAULT, scope=scope).engine == CLAUDE


def test_directive_comes_before_the_choice_of_the_scope() -> None:
    assert resolved(message_of("/codex go"), scope=Choices(engine=PI)).engine == CODEX


def test_no_engine_at_all_is_refused() -> None:
    with pytest.raises(Refused, match="no engine is installed"):
        resolved(message_of(), fallback_engine=None)


def test_choice_that_is_not_here_any_more_is_refused() -> None:
    with pytest.raises(Refused, match="plugin") as caught:
        resolved(message_of(), scope=Choices(engine=PLUGIN))
    assert "/agent" in caught.value.way_out


def test_default_that_is_not_here_is_refused() -> None:
    with pytest.raises(Refused, match="default engine plugin"):
        resolved(message_of(), replace(PLAIN, default_engine="plugin"))


def test_model_of_the_scope_goes_to_the_engine_of_the_scope_only() -> None:
    scope = Choices(engine=CODEX, model="big")
    assert resolved(message_of(), scope=scope).model == "big"
    assert resolved(message_of("/claude go"), scope=scope).model is None


def test_model_without_a_choice_of_engine_goes_to_the_default_one() -> None:
    scope = Choices(model="big")
    assert resolved(message_of(), CODEX_BY_DEFAULT, scope=scope).model == "big"
    assert resolved(message_of("/pi go"), CODEX_BY_DEFAULT, scope=scope).model is None
    assert resolved(message_of("/web go"), CODEX_BY_DEFAULT, scope=scope).model is None
    scope = Choices(model="big", context=Context("web"))
    assert resolved(message_of(), CODEX_BY_DEFAULT, scope=scope).model == "big"
