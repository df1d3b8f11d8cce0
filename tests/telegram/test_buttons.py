from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from takopi.core.ids import RunId, Scope
from takopi.core.messages import Press
from takopi.telegram.buttons import Codec, Registry


@dataclass(frozen=True, slots=True)
class RunPress:
    act: Literal["cancel", "retry"]
    run_id: RunId


@dataclass(frozen=True, slots=True)
class PickPress:
    row: int
    value: str


@dataclass(frozen=True, slots=True)
class BarePress:
    pass


@dataclass(frozen=True, slots=True)
class TwoPress:
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class OddPress:
    when: float


RUNS = Codec("rn", RunPress)
PICKS = Codec("pk", PickPress)


def pressed(data: str) -> Press:
    return Press("1", Scope("telegram", 5), message_id=7, sender_id=5, data=data)


def test_a_press_comes_back_as_it_went_out() -> None:
    press = RunPress("cancel", RunId(17))

    assert RUNS.encode(press) == "rn:cancel:17"
    assert RUNS.decode("rn:cancel:17") == press


def test_a_press_without_fields_is_its_prefix() -> None:
    codec = Codec("wt", BarePress)

    assert codec.encode(BarePress()) == "wt"
    assert codec.decode("wt") == BarePress()
    assert codec.decode("wt:") is None


def test_only_the_last_field_may_hold_a_colon() -> None:
    assert PICKS.encode(PickPress(1, "a:b:")) == "pk:1:a:b:"
    assert PICKS.decode("pk:1:a:b:") == PickPress(1, "a:b:")

    with pytest.raises(ValueError, match="does not survive"):
        Codec("in", TwoPress).encode(TwoPress("a:b", "c"))


@pytest.mark.parametrize(
    "data",
    [
        "",
        "rn",
        "rn:cancel",
        "rn:cancel:",
        "rn:cancel:x",
        "rn:cancel:017",
        "rn:cancel:+17",
        "rn:cancel:-0",
        "rn:cancel: 17",
        "rn:cancel:\uff11\uff17",
        "rn:cancel:17:1",
        "rn:drop:17",
        "RN:cancel:17",
        "ak:cancel:17",
    ],
)
def test_forged_data_is_nothing(data: str) -> None:
    assert RUNS.decode(data) is None


@given(st.text() | st.text().map("pk:{}".format) | st.text("0123456789-:").map("pk:{}".format))
def test_what_decodes_at_all_is_exactly_what_was_encoded(data: str) -> None:
    press = PICKS.decode(data)
    if press is not None and len(data.encode()) <= 64:
        assert PICKS.encode(press) == data


def test_data_of_more_than_64_bytes_is_refused_before_telegram_does() -> None:
    fits = "é" * 29
    assert len(PICKS.encode(PickPress(1, fits + "x")).encode()) == 64
    with pytest.raises(ValueError, match="over 64 bytes"):
        PICKS.encode(PickPress(1, fits + "xy"))


def test_a_word_that_is_not_among_the_fields_own_is_refused() -> None:
    with pytest.raises(ValueError, match="does not survive"):
        RUNS.encode(RunPress("drop", RunId(1)))  # pyright: ignore[reportArgumentType] on purpose


def test_a_field_that_no_button_can_carry_is_refused_at_start() -> None:
    with pytest.raises(TypeError, match="cannot carry when"):
        Codec("in", OddPress)


async def test_a_press_reaches_the_feature_of_its_prefix_and_no_other() -> None:
    heard: list[object] = []

    async def on_run(press: Press, what: RunPress) -> None:
        heard.append((press.data, what))
        await trio.lowlevel.checkpoint()

    async def on_pick(_press: Press, what: PickPress) -> None:
        heard.append(what)
        await trio.lowlevel.checkpoint()

    registry = Registry()
    registry.add(RUNS, on_run)
    registry.add(PICKS, on_pick)

    handle = registry.route(pressed("rn:retry:3"))
    assert handle is not None
    await handle()
    assert heard == [("rn:retry:3", RunPress("retry", RunId(3)))]
    assert registry.route(pressed("rn:forged")) is None
    assert registry.route(pressed("dr:x")) is None
    assert registry.route(pressed("")) is None


def test_a_prefix_belongs_to_one_feature() -> None:
    async def ignore(_press: Press, _what: object) -> None:
        await trio.lowlevel.checkpoint()

    registry = Registry()
    registry.add(RUNS, ignore)
    with pytest.raises(ValueError, match="rn:"):
        registry.add(Codec("rn", PickPress), ignore)
