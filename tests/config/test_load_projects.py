from __future__ import annotations

import pytest

from takopi.core.errors import Problem
from tests.config.names import keys, parsed, problems


@pytest.mark.parametrize(
    "path", ["''", "'  '", "1", "'a/b'", "'~nobody-of-that-name/x'", '"a\\u0000"']
)
def test_project_path_must_be_an_absolute_path(path: str) -> None:
    assert keys(f"projects.a.path = {path}") == ["projects.a.path"]


def test_project_without_a_path_is_a_problem() -> None:
    assert problems("[projects.a]") == [Problem("projects.a.path", "is missing")]


def test_worktrees_dir_is_relative_to_the_project_unless_absolute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    config = parsed(
        """
        projects.a = { path = "/a" }
        projects.b = { path = "/b", worktrees_dir = "trees/of/b" }
        projects.c = { path = "/c", worktrees_dir = "/trees" }
        projects.d = { path = "/d", worktrees_dir = "~/trees" }
        """
    )
    assert [str(project.worktrees_dir) for project in config.projects.values()] == [
        "/a/.worktrees",
        "/b/trees/of/b",
        "/trees",
        "/home/ada/trees",
    ]


@pytest.mark.parametrize("folder", ["''", "' '", '"a\\u0000"', "'~nobody-of-that-name/x'"])
def test_worktrees_dir_must_be_the_name_of_a_folder(folder: str) -> None:
    text = f"projects.a = {{ path = '/a', worktrees_dir = {folder} }}"
    assert keys(text) == ["projects.a.worktrees_dir"]


@pytest.mark.parametrize("base", ["--upload-pack=x", "a b", ""])
def test_worktree_base_must_be_the_name_of_a_branch(base: str) -> None:
    text = f"projects.a = {{ path = '/a', worktree_base = '{base}' }}"
    assert keys(text) == ["projects.a.worktree_base"]


def test_default_project_must_be_configured() -> None:
    text = "default_project = 'b'\n[projects.a]\npath = '/a'\n"
    assert problems(text) == [
        Problem("default_project", 'no project "b"', "run `takopi init b` in its folder")
    ]


def test_nearest_project_is_offered_for_a_misspelled_default() -> None:
    text = "default_project = 'takpi'\n[projects.takopi]\npath = '/a'\n"
    assert problems(text)[0].way_out == 'did you mean "takopi"?'


def test_default_project_is_found_and_spelled_as_the_alias_is() -> None:
    config = parsed("default_project = 'z80'\n[projects.Z80]\npath = '/a'\n")
    assert config.default_project == "Z80"


def test_project_is_looked_up_in_any_case() -> None:
    config = parsed("[projects.Z80]\npath = '/a'\n")
    assert config.project("z80") == config.project("Z80") == config.projects["Z80"]
    assert config.project("z8") is None


def test_default_project_is_not_blamed_when_its_table_is_broken() -> None:
    assert keys("default_project = 'a'\n[projects.a]\npath = 1\n") == ["projects.a.path"]
    assert keys("default_project = 'a'\nprojects = 1\n") == ["projects"]


@pytest.mark.parametrize("alias", ["claude", "Claude", "CODEX", "plugin", "cancel", "Cancel"])
def test_alias_must_not_be_an_engine_or_a_command(alias: str) -> None:
    assert keys(f"[projects.{alias}]\npath = '/a'\n") == [f"projects.{alias}"]


@pytest.mark.parametrize("alias", ["", " ", "a b", "a\\tb", "a.b", "a/b", "-a", "ä", "a" * 33])
def test_alias_must_be_usable_as_a_command(alias: str) -> None:
    assert len(problems(f'[projects."{alias}"]\npath = "/a"\n')) == 1


@pytest.mark.parametrize("alias", ["a", "Z80", "_x", "a-b_c", "7", "a" * 32])
def test_sane_aliases_are_accepted(alias: str) -> None:
    assert parsed(f"[projects.{alias}]\npath = '/a'\n").project(alias)


def test_aliases_equal_but_for_case_are_a_problem() -> None:
    found = problems("[projects.Foo]\npath = '/a'\n[projects.foo]\npath = '/b'\n")
    assert [(problem.key, problem.what) for problem in found] == [
        ("projects.foo", "is the same alias as Foo, as case does not matter")
    ]


def test_default_engines_must_be_available() -> None:
    text = "default_engine = 'pi'\nprojects.a = { path = '/a', default_engine = 'Claude' }"
    assert problems(text) == [
        Problem("default_engine", 'no engine "pi"', "use one of claude, codex, plugin"),
        Problem("projects.a.default_engine", 'no engine "Claude"', 'did you mean "claude"?'),
    ]


def test_chat_of_two_projects_is_a_problem() -> None:
    text = "projects.a = { path = '/a', chat_id = 5 }\nprojects.b = { path = '/b', chat_id = 5 }"
    assert keys(text) == ["projects.b.chat_id"]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("chat_id = -100", "chat_id"),
        ("projects.a = { path = '/a', chat_id = -100 }", "projects.a.chat_id"),
    ],
)
def test_group_needs_allowed_users(text: str, key: str) -> None:
    assert keys(text) == [key]
    assert keys(f"allowed_user_ids = [5]\n{text}") == []


def test_group_is_not_blamed_when_the_allowed_users_are_broken() -> None:
    assert keys("chat_id = -100\nallowed_user_ids = ['x']") == ["allowed_user_ids"]


def test_token_and_chat_are_required_only_to_run_with_telegram() -> None:
    assert keys("") == []
    assert keys("", to_run=True) == ["bot_token", "chat_id"]
    assert keys("transports = ['web']", to_run=True) == []
    assert keys("bot_token = '1:a'\nchat_id = 5", to_run=True) == []


def test_broken_token_and_chat_are_not_reported_as_missing_too() -> None:
    assert keys("bot_token = 'x'\nchat_id = 'x'", to_run=True) == ["chat_id", "bot_token"]
