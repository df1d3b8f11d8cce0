from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from takopi import api
from takopi.api import (
    ConfigInvalid,
    IncomingMessage,
    MessageRef,
    Problem,
    Scope,
    TakopiError,
    Unreachable,
)
from takopi.core import errors


def test_incoming_message_needs_its_first_seven_fields_and_defaults_the_rest() -> None:
    message = IncomingMessage(
        transport="telegram",
        chat_id=1,
        message_id=2,
        text="hi",
        reply_to_message_id=None,
        reply_to_text=None,
        sender_id=3,
    )
    required = [
        field.name for field in dataclasses.fields(message) if field.default is dataclasses.MISSING
    ]
    assert required == [
        "transport",
        "chat_id",
        "message_id",
        "text",
        "reply_to_message_id",
        "reply_to_text",
        "sender_id",
    ]
    assert message.raw is None
    assert message.ref == MessageRef("telegram", 1, 2)
    assert message.scope == Scope("telegram", 1)


def test_topic_belongs_to_its_chat() -> None:
    topic = Scope("telegram", 1, topic_id=7)
    assert topic.chat == Scope("telegram", 1)
    assert topic.chat.chat == topic.chat


def test_data_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Scope("telegram", 1).chat_id = 2  # pyright: ignore[reportAttributeAccessIssue]


def test_every_error_is_in_the_drawn_tree_and_in_the_api() -> None:
    drawn = errors.__doc__ or ""
    classes = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, TakopiError)
    ]
    for kind in classes:
        assert kind.__name__ in drawn
        assert kind.__name__ in api.__all__


def test_errors_carry_facts_and_an_exit_code() -> None:
    invalid = ConfigInvalid((Problem("limits.max_runs", "too small"), Problem("", "no file")))
    assert str(invalid) == "limits.max_runs: too small; no file"
    assert invalid.exit_code == 78
    assert Unreachable("no reply", maybe_applied=True).maybe_applied


def test_the_vocabulary_needs_neither_trio_nor_any_other_package() -> None:
    program = (
        "import sys, takopi.core.errors, takopi.core.messages, takopi.core.outgoing,"
        " takopi.core.ports;"
        "print([name for name in ('trio', 'msgspec', 'httpx2', 'sqlite3') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\n"
