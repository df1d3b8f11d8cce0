from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.cli.command import Takopi
from tests.projects.repos import clone, make_repo, run_git


def project(takopi: Takopi, alias: str) -> dict[str, object]:
    return tomllib.loads(takopi.config_file.read_text(encoding="utf-8"))["projects"][alias]


CONNECTED = "bot_token = '1:a'\nchat_id = 5\n"
"""With these two nothing is left to set up, and a terminal is asked for the project alone."""


@pytest.fixture
def repo(takopi: Takopi) -> Path:
    takopi.cwd = make_repo(takopi.folder / "dev" / "z80")
    return takopi.cwd


def test_project_is_added_with_path_and_worktrees_dir(takopi: Takopi, repo: Path) -> None:
    takopi.install("codex")
    takopi.install("pi")
    outcome = takopi("init", "foo")
    assert outcome.code == 0, outcome.err
    assert project(takopi, "foo") == {
        "path": str(repo),
        "worktrees_dir": ".worktrees",
        "default_engine": "codex",
        "worktree_base": "main",
    }
    assert outcome.out.startswith(f"foo is {repo}\n")


def test_existing_keys_and_comments_are_kept(takopi: Takopi, repo: Path) -> None:
    takopi.write("# mine\nchat_id = 5 # me\n\n[projects.a]\npath = '/a'\n")
    assert takopi("init", "foo").code == 0
    text = takopi.config_file.read_text(encoding="utf-8")
    assert text.startswith("# mine\nchat_id = 5 # me\n\n[projects.a]\npath = '/a'\n")
    assert project(takopi, "foo")["path"] == str(repo)


def test_default_flag_sets_the_default_project(takopi: Takopi, repo: Path) -> None:
    takopi("init", "foo")
    assert "default_project" not in takopi.config_file.read_text(encoding="utf-8")
    takopi("init", "bar", "--default")
    assert takopi("config", "get", "default_project").out == "bar\n"


def test_default_engine_of_the_config_wins_over_what_is_installed(
    takopi: Takopi, repo: Path
) -> None:
    takopi.install("claude")
    takopi.write("default_engine = 'pi'\n")
    takopi("init", "foo")
    assert project(takopi, "foo")["default_engine"] == "pi"


@pytest.mark.parametrize("installed", ["claude", "codex", "opencode", "pi"])
def test_first_installed_engine_is_the_default(takopi: Takopi, repo: Path, installed: str) -> None:
    engines = ["claude", "codex", "opencode", "pi"]
    for engine in engines[engines.index(installed) :]:
        takopi.install(engine)
    takopi("init", "foo")
    assert project(takopi, "foo")["default_engine"] == installed


def test_engine_with_its_own_command_counts_as_installed(takopi: Takopi, repo: Path) -> None:
    takopi.install("my-codex")
    takopi.write("[codex]\ncommand = '~/bin/my-codex'\n[claude]\ncommand = '~nobody-here/x'\n")
    takopi("init", "foo")
    assert project(takopi, "foo")["default_engine"] == "codex"


def test_without_an_engine_none_is_recorded_and_a_hint_given(takopi: Takopi, repo: Path) -> None:
    outcome = takopi("init", "foo")
    assert outcome.code == 0
    assert "default_engine" not in project(takopi, "foo")
    assert "none of claude, codex, opencode, pi is installed" in outcome.err


def test_base_of_a_clone_is_the_default_branch_of_origin(takopi: Takopi) -> None:
    origin = make_repo(takopi.folder / "origin", branch="trunk")
    takopi.cwd = clone(origin, takopi.folder / "clone")
    run_git(takopi.cwd, "switch", "--quiet", "--create", "feat/x")
    takopi("init", "foo")
    assert project(takopi, "foo")["worktree_base"] == "trunk"


def test_base_that_cannot_be_determined_is_left_out(takopi: Takopi) -> None:
    takopi.cwd = make_repo(takopi.folder / "repo", commit=False)
    assert takopi("init", "foo").code == 0
    assert "worktree_base" not in project(takopi, "foo")


def test_folder_below_the_top_is_recorded_as_it_is_with_a_hint(takopi: Takopi, repo: Path) -> None:
    takopi.cwd = repo / "sub"
    takopi.cwd.mkdir()
    outcome = takopi("init", "foo")
    assert project(takopi, "foo")["path"] == str(repo / "sub")
    assert f"inside the repository {repo}" in outcome.err
    exclude = (repo / ".git/info/exclude").read_text(encoding="utf-8")
    assert "/sub/.worktrees/" in exclude.splitlines()


def test_folder_that_is_no_repository_is_recorded_with_a_hint(takopi: Takopi) -> None:
    takopi.cwd = takopi.folder / "plain"
    takopi.cwd.mkdir()
    outcome = takopi("init", "foo")
    assert outcome.code == 0
    assert "no git repository" in outcome.err
    assert project(takopi, "foo") == {"path": str(takopi.cwd), "worktrees_dir": ".worktrees"}


def worktree(takopi: Takopi, repo: Path) -> Path:
    tree = takopi.folder / "tree"
    run_git(repo, "worktree", "add", "--quiet", "-b", "x", str(tree))
    takopi.cwd = tree
    return tree


def test_worktree_records_its_own_path_with_a_hint(takopi: Takopi, repo: Path) -> None:
    tree = worktree(takopi, repo)
    outcome = takopi("init", "foo")
    assert project(takopi, "foo")["path"] == str(tree)
    assert f"`takopi init foo --main --yes` records {repo} instead" in outcome.err


def test_main_flag_records_the_main_checkout(takopi: Takopi, repo: Path) -> None:
    worktree(takopi, repo)
    outcome = takopi("init", "foo", "--main")
    assert project(takopi, "foo")["path"] == str(repo)
    assert project(takopi, "foo")["worktree_base"] == "main"
    assert "worktree, and it was recorded" not in outcome.err


def test_main_flag_below_the_top_records_the_top(takopi: Takopi, repo: Path) -> None:
    takopi.cwd = repo / "sub"
    takopi.cwd.mkdir()
    takopi("init", "foo", "--main")
    assert project(takopi, "foo")["path"] == str(repo)


def test_main_flag_outside_a_repository_is_refused(takopi: Takopi) -> None:
    outcome = takopi("init", "foo", "--main")
    assert outcome.code == 1
    assert not takopi.home.exists()


@pytest.mark.parametrize(
    "alias", ["", " ", "a b", "claude", "CODEX", "demo", "cancel", "Cancel", "a/b", "ä", "x" * 33]
)
def test_invalid_alias_is_refused_and_nothing_written(
    takopi: Takopi, repo: Path, alias: str
) -> None:
    before = (repo / ".git/info/exclude").read_bytes()
    outcome = takopi("init", alias)
    assert outcome.code == 1
    assert outcome.err.startswith("error: ")
    assert not takopi.home.exists()
    assert (repo / ".git/info/exclude").read_bytes() == before


def test_alias_is_asked_for_with_the_name_of_the_folder_as_suggestion(
    takopi: Takopi, repo: Path
) -> None:
    takopi.write(CONNECTED)
    outcome = takopi.on_terminal("init", answers=[("alias of this project [z80]", "\n")])
    assert outcome.code == 0
    assert project(takopi, "z80")["path"] == str(repo)


def test_alias_that_cannot_be_is_asked_for_again(takopi: Takopi, repo: Path) -> None:
    takopi.write(CONNECTED)
    outcome = takopi.on_terminal(
        "init",
        answers=[("alias of this project", "cancel\n"), ("alias of this project", "foo\n")],
    )
    assert outcome.code == 0
    assert "/cancel is a command" in outcome.out
    assert project(takopi, "foo")["path"] == str(repo)


def test_suggestion_is_made_from_a_name_that_is_no_alias(takopi: Takopi) -> None:
    takopi.write(CONNECTED)
    takopi.cwd = make_repo(takopi.folder / "my repo (2)")
    takopi.on_terminal("init", answers=[("[my-repo-2]", "\n")])
    assert project(takopi, "my-repo-2")["path"] == str(takopi.cwd)


def test_alias_cannot_be_asked_for_without_a_terminal(takopi: Takopi, repo: Path) -> None:
    outcome = takopi("init")
    assert outcome.code == 1
    assert "takopi init ALIAS" in outcome.err
    assert not takopi.home.exists()


TAKEN = (
    f"# mine\n{CONNECTED}[projects.Foo]\npath = '/a'\nworktree_base = 'dev'\nchat_id = 7 # ours\n"
)


def test_taken_alias_is_not_overwritten_without_a_terminal(takopi: Takopi, repo: Path) -> None:
    takopi.write(TAKEN)
    outcome = takopi("init", "foo")
    assert outcome.code == 1
    assert "--yes" in outcome.err
    assert takopi.config_file.read_text(encoding="utf-8") == TAKEN


@pytest.mark.parametrize("answer", ["n\n", "\n", "\x03", "\x04"])
def test_taken_alias_is_not_overwritten_without_a_yes(
    takopi: Takopi, repo: Path, answer: str
) -> None:
    takopi.write(TAKEN)
    outcome = takopi.on_terminal("init", "foo", answers=[("Overwrite it? [y/N]", answer)])
    assert outcome.code == 4
    assert ("Foo stays as it is" if "\n" in answer else "stopped") in outcome.out
    assert "error" not in outcome.out
    assert takopi.config_file.read_text(encoding="utf-8") == TAKEN


def test_taken_alias_is_overwritten_after_a_yes(takopi: Takopi, repo: Path) -> None:
    takopi.write(TAKEN)
    outcome = takopi.on_terminal("init", "foo", answers=[("Overwrite it? [y/N]", "y\n")])
    assert outcome.code == 0
    assert project(takopi, "Foo")["path"] == str(repo)


def test_yes_overwrites_what_init_knows_and_keeps_the_rest(takopi: Takopi, repo: Path) -> None:
    takopi.write(TAKEN)
    assert takopi("init", "foo", "--yes", "--default").code == 0
    assert project(takopi, "Foo") == {
        "path": str(repo),
        "worktrees_dir": ".worktrees",
        "worktree_base": "main",
        "chat_id": 7,
    }
    text = takopi.config_file.read_text(encoding="utf-8")
    assert "# mine" in text
    assert "# ours" in text
    assert takopi("config", "get", "default_project").out == "Foo\n"


def test_overwriting_takes_out_a_base_that_no_longer_holds(takopi: Takopi) -> None:
    takopi.write(TAKEN)
    takopi.cwd = takopi.folder / "plain"
    takopi.cwd.mkdir()
    takopi("init", "foo", "--yes")
    assert "worktree_base" not in project(takopi, "Foo")


def test_edit_made_while_the_question_stands_is_not_lost(takopi: Takopi, repo: Path) -> None:
    takopi.write(TAKEN)

    def yes_after_somebody_changed_the_file() -> str:
        takopi.write(TAKEN + "default_engine = 'pi'\n")
        return "y\n"

    answers = [("[y/N]", yes_after_somebody_changed_the_file)]
    outcome = takopi.on_terminal("init", "foo", answers=answers)
    assert outcome.code == 1
    assert "was changed by somebody else" in outcome.out
    assert takopi.config_file.read_text(encoding="utf-8") == TAKEN + "default_engine = 'pi'\n"


def test_worktrees_are_excluded_once_and_in_no_tracked_file(takopi: Takopi, repo: Path) -> None:
    takopi("init", "foo")
    takopi("init", "foo", "--yes")
    lines = (repo / ".git/info/exclude").read_text(encoding="utf-8").splitlines()
    assert lines.count("/.worktrees/") == 1
    assert not run_git(repo, "status", "--porcelain")


def test_exclude_file_is_left_alone_on_demand(takopi: Takopi, repo: Path) -> None:
    before = (repo / ".git/info/exclude").read_bytes()
    takopi("init", "foo", "--no-exclude")
    assert (repo / ".git/info/exclude").read_bytes() == before


def test_exclude_file_that_cannot_be_written_is_a_hint(takopi: Takopi, repo: Path) -> None:
    (repo / ".git/info/exclude").unlink()
    (repo / ".git/info/exclude").mkdir()
    outcome = takopi("init", "foo")
    assert outcome.code == 0
    assert "could not be written" in outcome.err


def test_missing_token_and_chat_are_one_hint_line(takopi: Takopi, repo: Path) -> None:
    takopi.install("pi")
    outcome = takopi("init", "foo")
    assert outcome.code == 0
    (line,) = outcome.err.splitlines()
    assert line.startswith("hint: takopi cannot run without bot_token and chat_id")


def test_nothing_is_missing_when_token_and_chat_are_there(takopi: Takopi, repo: Path) -> None:
    takopi.install("pi")
    takopi.write("chat_id = 5\n")
    outcome = takopi("init", "foo", environ={"TAKOPI_BOT_TOKEN": "1:a"})
    assert not outcome.err


def test_problems_that_were_there_before_do_not_stop_init(takopi: Takopi, repo: Path) -> None:
    takopi.write("session_mode = 'x'\n")
    outcome = takopi("init", "foo")
    assert outcome.code == 0
    assert "`takopi config list` shows them" in outcome.err


def test_file_that_is_no_toml_stops_init(takopi: Takopi, repo: Path) -> None:
    takopi.write("session_mode = \n")
    assert takopi("init", "foo").code == 78
    assert takopi.config_file.read_text(encoding="utf-8") == "session_mode = \n"


def test_missing_git_says_how_to_get_it(takopi: Takopi, repo: Path) -> None:
    takopi.environ["PATH"] = str(takopi.tools)
    outcome = takopi("init", "foo")
    assert outcome.code == 2
    assert "apt-get install git" in outcome.err
    assert not takopi.home.exists()


def test_folder_that_is_gone_is_refused(takopi: Takopi) -> None:
    import subprocess

    from tests.cli.command import BIN

    script = f'mkdir gone && cd gone && rmdir ../gone && "{BIN / "takopi"}" init foo'
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=takopi.folder,
        env=takopi.environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert "this folder is gone" in done.stderr


def test_takopi_without_a_config_names_the_ways_to_begin(takopi: Takopi) -> None:
    outcome = takopi()
    assert outcome.code == 78
    assert outcome.err == (
        f"error: there is no {takopi.config_file}\n"
        "  `takopi init` makes it; `takopi demo` needs none\n"
    )
