from __future__ import annotations

import hashlib

from takopi.drafts.master import SYSTEM, demo_merge, message


def test_system_prompt_is_the_one_that_was_asked_for_byte_for_byte() -> None:
    digest = hashlib.sha256(SYSTEM.encode()).hexdigest()
    assert digest == "8c6ee60f586d60c0a78e6ff1efa36bd1ec75e4d296cfb4d49a36bfe61067b43e"


def test_message_has_the_previous_state_and_the_new_input() -> None:
    assert message("# Plan", "more") == "Previous state:\n# Plan\n\nNew input:\nmore"


def test_demo_puts_inputs_one_below_the_other() -> None:
    assert demo_merge(demo_merge("", "one"), "two\nlines\n") == "- one\n- two\n  lines"
