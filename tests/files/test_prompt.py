from __future__ import annotations

import pytest

from takopi.files.prompt import HEADING, read_force, reworded, with_files

LIST = f"{HEADING}\n- up/a.txt\n- up/b.txt"


def test_files_stand_below_the_prompt_once_each() -> None:
    paths = ["up/a.txt", "up/b.txt", "up/a.txt"]
    assert with_files("look", paths) == f"look\n\n{LIST}"
    assert with_files("", paths) == LIST
    assert with_files("look", []) == "look"


@pytest.mark.parametrize("old", [f"look\n\n{LIST}", LIST, f"{HEADING} is my text\n\n{LIST}"])
def test_other_words_keep_the_files(old: str) -> None:
    assert reworded(old, "--force see") == f"see\n\n{LIST}"
    assert reworded(old, "") == LIST


def test_prompt_without_files_is_just_replaced() -> None:
    assert reworded("look", "see") == "see"


@pytest.mark.parametrize(
    ("prompt", "found"),
    [
        ("--force", (True, "")),
        ("--force fix it", (True, "fix it")),
        ("--forceful", (False, "--forceful")),
        ("fix --force", (False, "fix --force")),
    ],
)
def test_force_counts_in_front_only(prompt: str, found: tuple[bool, str]) -> None:
    assert read_force(prompt) == found
