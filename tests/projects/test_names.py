from __future__ import annotations

import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from takopi.core.errors import Refused
from takopi.projects.names import MAX_BYTES, check_branch
from tests.projects.repos import ENVIRON


@pytest.mark.parametrize(
    "name",
    ["main", "feat/name", "a/b/c", "fix-1.2", "überarbeiten", "a@b", "@x", "x.git", "a-", "🐙"],
)
def test_ordinary_names_are_branches(name: str) -> None:
    check_branch(name)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("", "no name"),
        ("/abs", "begins with a /"),
        ("../x", "has a .."),
        ("a/../b", "has a .."),
        ("a/..", "ends with a ."),
        ("-x", "begins with a -"),
        ("--force", "begins with a -"),
        (".git", "has a .git"),
        ("a/.git/hooks", "has a .git"),
        ("a/.GIT", "has a .git"),
        ("a/.b", "begins with a ."),
        ("a.lock/b", "ends with .lock"),
        ("a//b", "empty part"),
        ("a/", "ends with a /"),
        ("a.", "ends with a ."),
        ("a b", "has a space"),
        ("a\u00a0b", "has a space"),
        ("a\nb", "control characters"),
        ("a\x00b", "control characters"),
        ("a\x7fb", "control characters"),
        ("a\x85b", "control characters"),
        ("a:b", "has a :"),
        ("a\\b", "has a \\"),
        ("a@{1}", "git means something else"),
        ("@", "git means something else"),
        ("HEAD", "git means something else"),
        ("\ud800", "not Unicode"),
        ("é" * (MAX_BYTES // 2) + "x", "longer than 200 bytes"),
    ],
)
def test_what_is_no_branch_is_refused_with_the_reason(name: str, fault: str) -> None:
    with pytest.raises(Refused) as caught:
        check_branch(name)
    assert fault in caught.value.what
    assert caught.value.way_out


def test_longest_name_is_a_branch() -> None:
    check_branch("x" * MAX_BYTES)


def test_refusal_of_a_strange_name_is_short_and_printable() -> None:
    with pytest.raises(Refused) as caught:
        check_branch("a\x1b[2J" * 100)
    assert caught.value.what.isprintable()
    assert len(caught.value.what) < 2000


PIECES = st.sampled_from([
    *("a", "B", "é", ".", "..", "/", "-", "@", "{", "@{", "}", ".lock", ".git", "HEAD", "~", "^"),
    *(":", "?", "*", "[", "]", "\\", " ", "\t", "\x01", "\x7f", "refs/heads/", "(", "'", '"', "$"),
])


@given(name=st.lists(PIECES, min_size=1, max_size=6).map("".join))
@settings(max_examples=300, deadline=None)
@example("@{-1}")
@example("a@{u}")
def test_what_passes_is_a_branch_to_git(name: str) -> None:
    try:
        check_branch(name)
    except Refused:
        return
    done = subprocess.run(
        ["git", "check-ref-format", "--branch", name],
        env=ENVIRON,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout.strip()) == (0, name)
