"""How the demo engine reads a prompt, what its doc says of it, and which files it may touch."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from takopi.engines.demo.child.deeds import DEEDS
from takopi.engines.demo.child.files import NotAllowed, change_file
from takopi.engines.demo.child.texts import fenced, long_text
from takopi.engines.demo.child.words import MAX_STEPS, WORDS, read_words, seconds, size_bytes

DOC = Path(__file__).parents[2] / "docs" / "reference" / "demo-engine.md"


def read(prompt: str) -> list[tuple[str, ...]]:
    return [(step.name, *step.args) for step in read_words(prompt)]


def test_every_word_has_its_deed_and_every_deed_its_word() -> None:
    # Approval is not a deed of its own: it stands before one.
    assert {word.name for word in WORDS} == {*DEEDS, "ask approval"}


def test_doc_lists_exactly_the_words_of_the_table() -> None:
    rows = re.findall(r"^\| `(.+?)` \| (.+) \|$", DOC.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [(word.usage, word.what) for word in WORDS]


@pytest.mark.parametrize("prompt", re.findall(r"(?ms)^```chat\n(.*?)^```$", DOC.read_text("utf-8")))
def test_every_example_of_the_doc_holds_a_word(prompt: str) -> None:
    assert read(prompt)


@pytest.mark.parametrize(
    ("prompt", "steps"),
    [
        ("hang", [("hang",)]),
        ("Please hang.", [("hang",)]),
        ("stubborn fork hang", [("stubborn",), ("fork",), ("hang",)]),
        ("First, think 3s; steps 2 every 10 ms", [("think", "3s"), ("steps", "2", "10 ms")]),
        ("steps 2", [("steps", "2")]),
        ("**Task:** crash", [("crash",)]),
        ("- noise\n- noise 2MB", [("noise",), ("noise", "2MB")]),
        ("write a/b.txt: one two", [("write", "a/b.txt", "one two")]),
        ("write `a b.txt`: x then run ls -l", [("write", "a b.txt", "x"), ("run", "ls -l")]),
        ("write a: first this, then that", [("write", "a", "first this, then that")]),
        (
            "write a:\n```py\nx = 1\n\nhang\n```\nhang",
            [("write", "a", "x = 1\n\nhang\n"), ("hang",)],
        ),
        ("write a: ```\nx\n```", [("write", "a", "x\n")]),
        ("run `ls -l`, then fail: no luck", [("run", "ls -l"), ("fail", "no luck")]),
        ("ask approval to run ls", [("ask approval",), ("run", "ls")]),
        ("say: hang\n```\nx", [("say", "hang\n```\nx")]),
        ('signal {"a": "hang"} then hang', [("signal", '{"a": "hang"}'), ("hang",)]),
        ('signal ```json\n{"a": 1}\n```', [("signal", '```json\n{"a": 1}\n```')]),
        ('tool call s__t {"a":\n [1]}', [("tool call", "s__t", '{"a":\n [1]}')]),
        ("What did I ask first?", [("what did I ask first",)]),
    ],
)
def test_words_are_read_in_order_with_what_belongs_to_them(
    prompt: str, steps: list[tuple[str, ...]]
) -> None:
    assert read(prompt) == steps


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        "fix the crash that makes us hang",
        "overhang, hang-glider, hello.hang",
        "write a function that adds",
        "signal handling is broken",
        "tool call s__t {broken",
        "think about it",
        "run",
        "say:",
        "see this:\n```\nhang\n```\nand tell me",
        "> hang\nis what they said",
        "~~~\nhang",
    ],
)
def test_prose_and_quotes_hold_no_word(prompt: str) -> None:
    assert read(prompt) == []


def test_prompt_of_many_words_is_followed_up_to_a_bound() -> None:
    assert len(read("noise\n" * 5000)) == MAX_STEPS


@settings(deadline=None)
@given(st.lists(st.sampled_from([*'`~ \n{}":>.,', "```", "hang", "say: ", "signal ", "run "])))
def test_any_prompt_can_be_read(pieces: list[str]) -> None:
    known = {word.name for word in WORDS}
    assert all(step.name in known for step in read_words("".join(pieces)))


def test_times_and_sizes_have_units() -> None:
    assert [seconds(text) for text in ("100ms", "3s", "1.5 s", "2min")] == [0.1, 3, 1.5, 120]
    assert [size_bytes(text) for text in ("5B", "2kB", "1.5 MB")] == [5, 2000, 1_500_000]


def test_long_text_is_long_enough_and_closes_every_fence() -> None:
    text = long_text(12_000)
    assert 12_000 <= len(text) < 13_000
    assert text.count("```") % 2 == 0


def test_fence_is_longer_than_any_inside() -> None:
    assert fenced("```\nx\n```").startswith("````\n")


@pytest.mark.parametrize(
    "path",
    ["../x", "a/../../x", "/tmp/x", ".git/hooks/x", "a/.GIT/x", ".", "a/", "link", "way/x", "fifo"],
)
def test_nothing_outside_the_folder_is_written(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    (outside / "file").write_text("untouched", encoding="utf-8")
    (inside / "link").symlink_to(outside / "file")
    (inside / "way").symlink_to(outside, target_is_directory=True)
    os.mkfifo(inside / "fifo")
    monkeypatch.chdir(inside)
    with pytest.raises((NotAllowed, OSError)):
        change_file(path, "x", append=False)
    assert [file.name for file in outside.iterdir()] == ["file"]
    assert (outside / "file").read_text(encoding="utf-8") == "untouched"
    assert {file.name for file in tmp_path.iterdir()} == {"inside", "outside"}


def test_pipe_in_the_folder_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "fifo")
    reader = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    monkeypatch.chdir(tmp_path)
    try:
        with pytest.raises(NotAllowed):
            change_file("fifo", "x", append=True)
    finally:
        os.close(reader)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.sampled_from(["a", "..", ".", "", "way", "ä b", ".git"]), max_size=5))
def test_no_path_leads_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: list[str]
) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir(exist_ok=True)
    inside.mkdir(exist_ok=True)
    if not (inside / "way").is_symlink():
        (inside / "way").symlink_to(outside, target_is_directory=True)
    monkeypatch.chdir(inside)
    try:
        change_file("/".join([*parts, "x"]), "x", append=True)
    except NotAllowed:
        assert {"..", "way", ".git", ""} & set(parts)
    else:
        assert (inside / Path(*parts) / "x").read_text(encoding="utf-8").startswith("x")
    assert [*outside.iterdir()] == []
    assert {file.name for file in tmp_path.iterdir()} == {"inside", "outside"}
