from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takopi.files.names import MAX_BYTES, numbered, safe_name

HOSTILE = st.one_of(
    st.text(),
    st.text(alphabet="./\\-~ \0\n\r\t:*?\"<>|`$&;!'\u202e\u200b😀é", max_size=40),
    st.sampled_from(["..", "../..", "con", "NUL.txt", "aux.", "", ".", " ", "-rf", ".git", "/"]),
    st.text(min_size=250, max_size=400).map(lambda text: f"{text}.tar.gz"),
)


@given(HOSTILE)
@settings(max_examples=500)
def test_any_name_becomes_a_plain_file_in_its_folder(name: str) -> None:
    safe = safe_name(name)
    assert safe
    assert safe not in {".", ".."}
    assert not set(safe) & set("/\\\0\n\r\t:*?\"<>|`$&;!'\u202e\u200b")
    assert safe[0] not in ".-~ "
    assert safe[-1] not in ". "
    assert safe.isprintable()
    assert len(safe.encode()) <= MAX_BYTES
    assert safe_name(safe) == safe


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("photo.jpg", "photo.jpg"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\ada\\a b.txt", "a b.txt"),
        ("..", "file"),
        ("", "file"),
        (".bashrc", "bashrc"),
        ("-rf", "rf"),
        ("a\0b\nc.txt", "abc.txt"),
        ("CON", "file-CON"),
        ("nul.txt", "file-nul.txt"),
        ("日記😀.md", "日記😀.md"),
        ("cod\u202egpj.exe", "codgpj.exe"),
        ("$(rm -rf ~).txt", "_(rm -rf ~).txt"),
        ("archive.tar.gz", "archive.tar.gz"),
        ("x" * 300 + ".pdf", "x" * 116 + ".pdf"),
        ("😀" * 100 + ".png", "😀" * 29 + ".png"),
    ],
)
def test_names_keep_what_is_harmless(name: str, safe: str) -> None:
    assert safe_name(name) == safe


def test_numbers_stand_before_the_ending() -> None:
    assert list(islice(numbered("a.txt"), 3)) == ["a.txt", "a-2.txt", "a-3.txt"]
    assert list(islice(numbered("Makefile"), 2)) == ["Makefile", "Makefile-2"]
