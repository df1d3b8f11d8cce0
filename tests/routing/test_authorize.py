from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takopi.routing.authorize import Envelope, Gate, Strangers
from tests.routing.given import config_of

PRIVATE = config_of("chat_id = 111")
GROUP = config_of("chat_id = -100\nallowed_user_ids = [1, 2]\nadmin_user_ids = [2, 3]")
BOTH = config_of(
    """
    chat_id = 111
    allowed_user_ids = [1]
    [projects.z80]
    path = "/dev/z80"
    chat_id = -200
    [projects.web]
    path = "/dev/web"
    """
)
ANONYMOUS_ADMIN, CHANNEL_BOT, SERVICE = 1087968824, 136817688, 777000


@pytest.mark.parametrize(
    ("sender", "chat", "allowed"),
    [(111, 111, True), (1, 111, False), (111, -100, False), (1, 1, False)],
)
def test_private_chat_lets_in_the_person_it_is_with(sender: int, chat: int, allowed: bool) -> None:
    assert Gate(PRIVATE).allows(Envelope(sender, chat)) == allowed


@pytest.mark.parametrize(
    ("sender", "allowed"), [(1, True), (2, True), (3, True), (4, False), (-100, False)]
)
def test_group_lets_in_those_who_are_named(sender: int, allowed: bool) -> None:
    assert Gate(GROUP).allows(Envelope(sender, -100)) == allowed


@pytest.mark.parametrize(("sender", "chat"), [(1, -101), (1, 1), (2, 2), (1, 100)])
def test_those_who_are_named_are_strangers_in_other_chats(sender: int, chat: int) -> None:
    assert not Gate(GROUP).allows(Envelope(sender, chat))


@pytest.mark.parametrize(
    ("sender", "chat", "allowed"),
    [(111, 111, True), (1, -200, True), (111, -200, False), (1, 111, False), (1, -201, False)],
)
def test_chat_of_a_project_is_allowed_beside_the_main_one(
    sender: int, chat: int, allowed: bool
) -> None:
    assert Gate(BOTH).allows(Envelope(sender, chat)) == allowed


@pytest.mark.parametrize("sender", [None, ANONYMOUS_ADMIN, CHANNEL_BOT, SERVICE])
def test_nobody_in_particular_is_never_let_in(sender: int | None) -> None:
    ids = f"[1, {ANONYMOUS_ADMIN}, {CHANNEL_BOT}, {SERVICE}]"
    config = config_of(f"chat_id = -100\nallowed_user_ids = {ids}\nadmin_user_ids = {ids}")
    assert not Gate(config).allows(Envelope(sender, -100))
    assert not Gate(config).is_admin(Envelope(sender, -100))


def test_what_names_no_chat_is_not_let_in() -> None:
    assert not Gate(PRIVATE).allows(Envelope(111, None))


@given(st.none() | st.integers(), st.none() | st.integers())
def test_config_without_a_chat_lets_nobody_in(sender: int | None, chat: int | None) -> None:
    assert not Gate(config_of("allowed_user_ids = [1]")).allows(Envelope(sender, chat))


@given(st.none() | st.integers(-300, 300), st.none() | st.integers(-300, 300))
def test_only_what_is_configured_is_let_in(sender: int | None, chat: int | None) -> None:
    assert Gate(BOTH).allows(Envelope(sender, chat)) == ((sender, chat) in {(111, 111), (1, -200)})


def test_admins_of_a_group_are_those_who_are_named_so() -> None:
    gate = Gate(GROUP)
    assert [gate.is_admin(Envelope(user, -100)) for user in (1, 2, 3, 4)] == [
        False,
        True,
        True,
        False,
    ]


def test_person_of_a_private_chat_is_its_admin_and_strangers_are_not() -> None:
    assert Gate(PRIVATE).is_admin(Envelope(111, 111))
    assert not Gate(PRIVATE).is_admin(Envelope(5, 5))
    assert not Gate(GROUP).is_admin(Envelope(2, -101))


def test_stranger_is_new_once_in_each_chat() -> None:
    strangers = Strangers()
    assert strangers.is_new(Envelope(5, 1))
    assert not strangers.is_new(Envelope(5, 1))
    assert strangers.is_new(Envelope(5, 2))
    assert strangers.is_new(Envelope(None, 1))
    assert not strangers.is_new(Envelope(None, 1))


def test_memory_of_strangers_is_bounded_and_forgets_the_one_not_seen_for_longest() -> None:
    strangers = Strangers(capacity=2)
    assert all(strangers.is_new(Envelope(user, 1)) for user in (5, 6))
    assert not strangers.is_new(Envelope(5, 1))
    assert strangers.is_new(Envelope(7, 1))
    assert not strangers.is_new(Envelope(5, 1))
    assert strangers.is_new(Envelope(6, 1))
