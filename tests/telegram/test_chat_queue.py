from __future__ import annotations

from takopi.core.ids import Scope
from takopi.core.outgoing import Button, Card, Outgoing, Text
from takopi.telegram.chat_queue import (
    EDIT_TRIES,
    STORED,
    ChatQueue,
    Direct,
    Edit,
    Removal,
    Step,
)
from takopi.telegram.pace import Window

CHAT = Scope("telegram", 7)
NOW = 1000.0


def card(text: str) -> Card:
    return Card(Text(text))


def open_queue(chat: Scope = CHAT) -> ChatQueue:
    return ChatQueue(chat, Window())


def direct(text: str) -> Direct:
    return Direct(CHAT, Outgoing(card(text)), resume=lambda: None)


def take(queue: ChatQueue, now: float = NOW) -> Step:
    """The next step, which must be due."""
    step, at = queue.next(now)
    assert step is not None
    assert at <= now
    queue.take(step)
    return step


def take_all(queue: ChatQueue, now: float = NOW) -> list[Step]:
    steps: list[Step] = []
    while queue.next(now)[0] is not None:
        steps.append(take(queue, now))
    return steps


def test_new_messages_keep_their_order_and_go_before_removals_and_edits() -> None:
    queue = open_queue()
    one, two = direct("one"), direct("two")
    queue.put_edit(1, card("a"))
    queue.put_removal(2)
    queue.put_direct(one)
    queue.put_stored()
    queue.put_direct(two)

    assert take_all(queue) == [one, STORED, two, Removal(2), Edit(1, card("a"))]


def test_a_newer_edit_takes_the_place_of_one_that_waits() -> None:
    queue = open_queue()
    for text in "abc":
        queue.put_edit(1, card(text))
        queue.put_edit(2, card(text))

    assert take_all(queue) == [Edit(1, card("c")), Edit(2, card("c"))]


def test_a_message_that_is_to_go_is_not_edited_any_more() -> None:
    queue = open_queue()
    queue.put_edit(1, card("a"))
    queue.put_removal(1)
    queue.put_edit(1, card("b"))

    assert take_all(queue) == [Removal(1)]


def test_what_waits_to_be_said_in_a_message_is_said_without_its_buttons() -> None:
    queue = open_queue()
    queue.put_edit(1, Card(Text("a"), ((Button("Go", "x"),),)))
    queue.put_clearing(1)
    queue.put_clearing(2)
    queue.put_removal(3)
    queue.put_clearing(3)

    assert take_all(queue) == [Removal(3), Edit(1, card("a")), Edit(2, None)]


def test_waking_twice_is_one_look_into_the_store() -> None:
    queue = open_queue()
    queue.put_stored()
    queue.put_stored()
    assert take_all(queue) == [STORED]

    queue.put_stored()
    assert take_all(queue) == [STORED]


def test_an_answer_does_not_wait_for_the_pace_that_edits_have_used_up() -> None:
    queue = open_queue()
    went = 0
    queue.put_edit(1, card("x"))
    while queue.next(NOW)[1] <= NOW:
        take(queue)
        queue.spend(NOW)
        went += 1
        queue.put_edit(1, card("x"))

    assert went == 4
    queue.put_stored()
    assert queue.next(NOW) == (STORED, NOW)


def test_edits_go_as_fast_as_the_chat_allows() -> None:
    queue = open_queue(Scope("telegram", -7))
    now, went = NOW, list[float]()
    for _ in range(7):
        queue.put_edit(1, card("x"))
        _step, at = queue.next(now)
        now = max(now, at)
        take(queue, now)
        queue.spend(now)
        went.append(round(now - NOW, 3))

    assert went == [0, 0, 0, 0, 3, 6, 9]


def test_a_pause_holds_back_everything_and_no_longer_than_told() -> None:
    queue = open_queue()
    queue.put_removal(1)
    queue.hold(NOW + 40)
    assert queue.next(NOW) == (Removal(1), NOW + 40)
    queue.hold(NOW + 3)
    assert queue.next(NOW) == (Removal(1), NOW + 40)
    queue.put_stored()
    assert queue.next(NOW + 40) == (STORED, NOW + 40)


def test_edits_go_on_while_a_message_waits_for_its_next_try() -> None:
    queue = open_queue()
    queue.put_stored()
    queue.put_edit(1, card("a"))
    queue.hold_news(NOW + 60)

    assert take(queue) == Edit(1, card("a"))
    assert queue.next(NOW) == (STORED, NOW + 60)


def test_messages_go_on_while_an_edit_waits_for_its_next_try() -> None:
    queue = open_queue()
    queue.put_edit(1, card("a"))
    queue.hold_rest(NOW + 60)
    assert queue.next(NOW)[1] == NOW + 60
    queue.put_stored()

    assert take(queue) is STORED


def test_what_is_tried_again_is_where_it_was() -> None:
    queue = open_queue()
    one, two = direct("one"), direct("two")
    queue.put_direct(one)
    queue.put_direct(two)
    queue.again(take(queue))

    assert take_all(queue) == [one, two]


def test_an_old_edit_does_not_come_back_over_a_newer_one() -> None:
    queue = open_queue()
    queue.put_edit(1, card("old"))
    old = take(queue)
    queue.put_edit(1, card("new"))
    queue.again(old)

    assert take_all(queue) == [Edit(1, card("new"))]


def test_an_edit_of_a_message_that_is_to_go_does_not_come_back() -> None:
    queue = open_queue()
    queue.put_edit(1, card("old"))
    old = take(queue)
    queue.put_removal(1)
    queue.again(old)

    assert take_all(queue) == [Removal(1)]


def test_edits_and_removals_are_given_up_after_some_tries() -> None:
    queue = open_queue()
    queue.again(Edit(1, card("a"), tries=EDIT_TRIES))
    queue.again(Removal(2, tries=EDIT_TRIES))
    queue.again(Edit(3, card("a"), tries=EDIT_TRIES - 1))

    assert take_all(queue) == [Edit(3, card("a"), tries=EDIT_TRIES - 1)]


def test_a_message_can_be_taken_back_before_it_began() -> None:
    queue = open_queue()
    one, two = direct("one"), direct("two")
    queue.put_direct(one)
    queue.put_direct(two)
    queue.withdraw(one)

    assert take_all(queue) == [two]


def test_what_is_forgotten_tells_who_waits_for_it() -> None:
    queue = open_queue()
    one = direct("one")
    queue.put_stored()
    queue.put_direct(one)
    queue.put_edit(1, card("a"))
    queue.put_removal(2)
    queue.hold_news(NOW + 60)

    assert queue.clear() == (one,)
    assert queue.next(NOW)[0] is None
    queue.put_stored()
    assert queue.next(NOW) == (STORED, NOW)


def test_all_chats_share_thirty_a_second() -> None:
    overall = Window()
    went = 0
    for number in range(1, 40):
        queue = ChatQueue(Scope("telegram", number), overall)
        queue.put_stored()
        if queue.next(NOW)[1] <= NOW:
            take(queue)
            queue.spend(NOW)
            went += 1

    assert went == 30
