from __future__ import annotations

import fcntl
import os
import stat
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takopi.config.edit import ConfigEdit, open_edit, split_key, to_toml
from takopi.core.errors import ConfigInvalid, Refused
from tests.config.names import NAMES

COMMENTED = """\
# who I am
bot_token = "1:a"  # from BotFather
chat_id = 5

# my machine is small
[limits]
max_runs = 2 # not more

[projects.a] # the first
path = "/a"
# a group
chat_id = 7
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    file = home / "takopi.toml"
    file.write_text(COMMENTED, encoding="utf-8")
    file.chmod(0o600)
    return file


def opened(path: Path) -> ConfigEdit:
    return open_edit(path, NAMES, environ={})


def test_set_changes_one_value_and_keeps_comments_and_order(path: Path) -> None:
    edit = opened(path)
    edit.set("limits.max_runs", 3)
    edit.set("chat_id", 6)
    edit.save()
    expected = COMMENTED.replace("max_runs = 2", "max_runs = 3").replace(
        "chat_id = 5", "chat_id = 6"
    )
    assert path.read_text(encoding="utf-8") == expected


def test_new_keys_go_where_toml_wants_them(path: Path) -> None:
    edit = opened(path)
    edit.set("default_project", "a")
    edit.set("limits.max_queued", 3)
    edit.set("plugin.env.KEY", "x")
    edit.save()
    values = tomllib.loads(path.read_text(encoding="utf-8"))
    assert values["default_project"] == "a"
    assert values["limits"] == {"max_runs": 2, "max_queued": 3}
    assert values["plugin"] == {"env": {"KEY": "x"}}
    for comment in ("# who I am", "# from BotFather", "# my machine", "# not more", "# a group"):
        assert comment in path.read_text(encoding="utf-8")


def test_get_gives_values_and_tables(path: Path) -> None:
    edit = opened(path)
    assert edit.get("limits.max_runs") == 2
    assert edit.get("projects.a") == {"path": "/a", "chat_id": 7}


@pytest.mark.parametrize("key", ["default_engine", "limits.x.y", "chat_id.x", "nothing.at.all"])
def test_get_and_unset_refuse_what_is_not_set(path: Path, key: str) -> None:
    with pytest.raises(Refused, match="is not set"):
        opened(path).get(key)
    with pytest.raises(Refused, match="is not set"):
        opened(path).unset(key)


def test_unset_takes_out_a_key_or_a_whole_table(path: Path) -> None:
    edit = opened(path)
    edit.unset("chat_id")
    edit.unset("projects.a")
    edit.save()
    values = tomllib.loads(path.read_text(encoding="utf-8"))
    assert "chat_id" not in values
    assert not values.get("projects")
    assert values["limits"] == {"max_runs": 2}


def test_set_through_something_that_is_no_table_is_refused(path: Path) -> None:
    with pytest.raises(Refused, match="chat_id is not a table"):
        opened(path).set("chat_id.x", 1)


@pytest.mark.parametrize(
    ("key", "parts"),
    [
        ("a", ["a"]),
        ("limits.max_runs", ["limits", "max_runs"]),
        ('projects."a.b".path', ["projects", "a.b", "path"]),
    ],
)
def test_dotted_key_is_split_as_toml_does(key: str, parts: list[str]) -> None:
    assert split_key(key) == parts


@pytest.mark.parametrize(
    "key", ["", " ", ".", "a..b", "a b", "a = 1\nb", "[a]\nb", "a.", "a = {} #"]
)
def test_text_that_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(Refused, match="is not a key"):
        split_key(key)


def test_saved_file_is_for_its_owner_alone(path: Path) -> None:
    path.chmod(0o644)
    edit = opened(path)
    edit.set("chat_id", 6)
    edit.save()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_missing_file_and_home_are_made(tmp_path: Path) -> None:
    path = tmp_path / "new" / "takopi.toml"
    edit = opened(path)
    edit.set("chat_id", 6)
    edit.save()
    assert path.read_text(encoding="utf-8") == "chat_id = 6\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_nothing_is_made_before_save(tmp_path: Path) -> None:
    opened(tmp_path / "new" / "takopi.toml").set("chat_id", 6)
    assert list(tmp_path.iterdir()) == []


def test_home_open_to_others_is_not_written_to(path: Path) -> None:
    path.parent.chmod(0o755)
    edit = opened(path)
    edit.set("chat_id", 6)
    with pytest.raises(ConfigInvalid) as caught:
        edit.save()
    assert caught.value.problems[0].way_out == f"chmod 700 {path.parent}"
    assert path.read_text(encoding="utf-8") == COMMENTED


def test_symlinked_file_stays_a_link(path: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    path.rename(real)
    path.symlink_to(real)
    edit = opened(path)
    edit.set("chat_id", 6)
    edit.save()
    assert path.is_symlink()
    assert "chat_id = 6" in real.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("key", "value"),
    [("limits.max_runs", 0), ("nonsense", 1), ("default_project", "b"), ("chat_id", -100)],
)
def test_change_that_brings_in_a_problem_writes_nothing(
    path: Path, key: str, value: object
) -> None:
    edit = opened(path)
    edit.set(key, value)
    with pytest.raises(ConfigInvalid) as caught:
        edit.save()
    assert [problem.key for problem in caught.value.problems] == [key]
    assert path.read_text(encoding="utf-8") == COMMENTED


def test_unset_that_brings_in_a_problem_writes_nothing(path: Path) -> None:
    edit = opened(path)
    edit.unset("projects.a.path")
    with pytest.raises(ConfigInvalid):
        edit.save()
    assert path.read_text(encoding="utf-8") == COMMENTED


def test_broken_file_can_be_mended_one_problem_at_a_time(path: Path) -> None:
    path.write_text("chat_id = 'x'\nsession_mode = 'y'\n", encoding="utf-8")
    edit = opened(path)
    edit.set("chat_id", 5)
    edit.save()
    assert path.read_text(encoding="utf-8") == "chat_id = 5\nsession_mode = 'y'\n"


def test_broken_file_cannot_be_made_worse(path: Path) -> None:
    path.write_text("chat_id = 'x'\n", encoding="utf-8")
    edit = opened(path)
    edit.set("session_mode", "y")
    with pytest.raises(ConfigInvalid) as caught:
        edit.save()
    assert [problem.key for problem in caught.value.problems] == ["session_mode"]


def test_file_that_is_no_toml_is_not_edited(path: Path) -> None:
    path.write_text("chat_id = \n", encoding="utf-8")
    with pytest.raises(ConfigInvalid, match="line 1, column 11"):
        opened(path)


def test_edit_of_somebody_else_is_not_overwritten(path: Path) -> None:
    edit = opened(path)
    edit.set("chat_id", 6)
    path.write_text(COMMENTED + "worktree_base = 'dev'\n", encoding="utf-8")
    with pytest.raises(Refused, match="was changed by somebody else"):
        edit.save()
    assert path.read_text(encoding="utf-8") == COMMENTED + "worktree_base = 'dev'\n"


def test_file_that_appears_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "home" / "takopi.toml"
    edit = opened(path)
    edit.set("chat_id", 6)
    path.parent.mkdir(mode=0o700)
    path.write_text("chat_id = 7\n", encoding="utf-8")
    with pytest.raises(Refused, match="was changed by somebody else"):
        edit.save()
    assert path.read_text(encoding="utf-8") == "chat_id = 7\n"


def test_two_takopis_do_not_write_at_the_same_moment(path: Path) -> None:
    edit = opened(path)
    edit.set("chat_id", 6)
    other = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(Refused, match="another takopi is writing"):
            edit.save()
    finally:
        os.close(other)
    edit.save()
    assert "chat_id = 6" in path.read_text(encoding="utf-8")


def test_project_is_added_with_its_own_table(path: Path) -> None:
    edit = opened(path)
    assert edit.put_project("b", {"path": "/b", "worktree_base": None}) == "b"
    edit.save()
    assert path.read_text(encoding="utf-8") == COMMENTED + '\n[projects.b]\npath = "/b"\n'


def test_project_is_updated_and_keeps_what_is_not_named(path: Path) -> None:
    edit = opened(path)
    edit.put_project("a", {"path": "/b", "worktree_base": "dev"})
    edit.put_project("a", {"worktree_base": None})
    edit.save()
    assert path.read_text(encoding="utf-8") == COMMENTED.replace('"/a"', '"/b"')


def test_project_that_differs_in_case_is_the_same_project(path: Path) -> None:
    edit = opened(path)
    assert edit.put_project("A", {"path": "/b"}) == "a"
    edit.save()
    assert path.read_text(encoding="utf-8") == COMMENTED.replace('"/a"', '"/b"')


@pytest.mark.parametrize(
    "text",
    [
        "projects = { a = { path = '/a' } }\n",
        "projects.a.path = '/a'\nchat_id = 5\n",
        "[projects.a]\npath = '/a'\n[limits]\nmax_runs = 2\n[projects.c]\npath = '/c'\n",
        "[projects]\n[projects.a]\npath = '/a'\n",
        "[projects.a]\npath = '/a'",
        "# nothing but a comment",
        "[projects.a]\r\npath = '/a'\r\n",
        "",
    ],
)
def test_project_is_added_however_the_file_is_written(path: Path, text: str) -> None:
    path.write_bytes(text.encode())
    before = tomllib.loads(text)
    edit = opened(path)
    edit.put_project("b", {"path": "/b"})
    edit.set("default_project", "b")
    edit.save()
    after = tomllib.loads(path.read_bytes().decode())
    assert after.pop("default_project") == "b"
    assert after["projects"].pop("b") == {"path": "/b"}
    assert after == before or not before


_leaves = st.integers(-5, 5) | st.booleans() | st.text(max_size=4)
_names = st.sampled_from(["a", "b", "c d", "e.f", ""])
_files = st.recursive(
    st.dictionaries(_names, _leaves, max_size=3),
    lambda inner: st.dictionaries(
        _names, inner | _leaves | st.lists(_leaves, max_size=2), max_size=3
    ),
    max_leaves=4,
)


@given(_files, st.lists(_names, min_size=1, max_size=3), _leaves)
def test_edit_says_what_was_meant_or_is_refused(
    values: dict[str, object], parts: list[str], value: object
) -> None:
    text = "".join(f"{to_toml(name)} = {to_toml(inner)}\n" for name, inner in values.items())
    edit = ConfigEdit(Path("/nowhere"), text.encode(), NAMES, environ={})
    assert edit.values == values
    key = ".".join(to_toml(part) for part in parts)
    try:
        edit.set(key, value)
    except Refused:
        assert edit.values == values
        return
    assert edit.get(key) == value
