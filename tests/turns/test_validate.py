from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from takopi.turns.plan import (
    Action,
    Conclude,
    Create,
    Edit,
    Execute,
    Invoke,
    Memo,
    Plan,
    Prune,
    Read,
    Research,
    Swap,
)
from takopi.turns.validate import World, validate

CHANGE = (Swap("one", "two"),)


@pytest.fixture
def world(tmp_path: Path) -> World:
    root = tmp_path / "root"
    for name in (".git/config", ".teddy/x", "src/a.py", "b.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("one\nsame\nsame\n", encoding="utf-8")
    (tmp_path / "outside.txt").write_text("one\n", encoding="utf-8")
    (root / "way-out").symlink_to(tmp_path)
    (root / "way-in").symlink_to(root / ".git")
    return World(
        root=root,
        memos=("Known.",),
        turn_context=("src/a.py", "no.py"),
        agents=frozenset({"developer"}),
        has_caller=False,
    )


def errors(world: World, *actions: Action, memos: tuple[Memo, ...] = ()) -> tuple[str, ...]:
    return validate(Plan(title="T", rationale="", memos=memos, actions=actions), world)


CASES: list[tuple[Action, str]] = [
    (Create(path="b.py", content=""), "`CREATE` on `b.py`: the file exists already."),
    (Create(path="b.py/c", content=""), "`CREATE` on `b.py/c`: `b.py` is a file, not a folder."),
    (Edit(path="no.py", swaps=CHANGE), "`EDIT` on `no.py`: the file does not exist."),
    (
        Edit(path="b.py", swaps=CHANGE),
        "`EDIT` on `b.py`: the file is not in the turn's context; READ it in an earlier turn.",
    ),
    (
        Edit(path="src/a.py", swaps=(Swap("none", "x"),)),
        "`EDIT` on `src/a.py`: FIND block did not match.",
    ),
    (
        Edit(path="src/a.py", swaps=(Swap(" one", "x"),)),
        "`EDIT` on `src/a.py`: FIND block did not match. Line 1 differs from it in blanks only.",
    ),
    (
        Edit(path="src/a.py", swaps=(Swap("same", "x"),)),
        "`EDIT` on `src/a.py`: FIND block matches 2 times; it must match once.",
    ),
    (
        Edit(path="src/a.py", swaps=(Swap("one", "one"),)),
        "`EDIT` on `src/a.py`: REPLACE block is the same as the FIND block.",
    ),
    (Prune(path="b.py"), "`PRUNE` on `b.py`: the file is not in the turn's context."),
    (Read(path="no.py"), "`READ` on `no.py`: `no.py` does not exist, or is no file."),
    (
        Read(path="https://x.org"),
        "`READ` on `https://x.org`: it is an address; RESEARCH is for the world outside.",
    ),
    (Invoke(agent="Nobody"), "`INVOKE` on `Nobody`: there is no such agent; there are developer."),
    (Conclude(), "`CONCLUDE` on ``: no agent has invoked this one."),
    (Execute(command="ls", cwd="no"), "`EXECUTE` on `ls`: there is no folder `no`."),
]
MEMOS = [
    (Memo("+", "Known."), "`[+] ADD` of `Known.`: the memo exists already."),
    (Memo("-", "Unknown."), "`[-] REMOVE` of `Unknown.`: there is no such memo."),
    (Memo("-", "known."), "`[-] REMOVE` of `known.`: there is no such memo."),
]
PATHS = {
    "/etc/passwd": "is absolute; plans use paths from the project's root",
    "~/x": "is absolute; plans use paths from the project's root",
    "../outside.txt": "leaves the project",
    "src/../../outside.txt": "leaves the project",
    "way-out/outside.txt": "leaves the project through a symlink",
    ".git/config": "lies in .git/, which plans must not touch",
    "way-in/config": "lies in .git/, which plans must not touch",
    ".teddy/x": "lies in .teddy/, which plans must not touch",
    "": "names no file",
    "././": "names no file",
    "a\nb": "is no path",
    f"src/{'é' * 128}": "has a name that is too long",
}


@pytest.mark.parametrize(("action", "expected"), CASES)
def test_check_that_fails_alone_is_named_alone(world: World, action: Action, expected: str) -> None:
    assert errors(world, action) == (expected,)


@pytest.mark.parametrize(("memo", "expected"), MEMOS)
def test_memo_that_fails_alone_is_named_alone(world: World, memo: Memo, expected: str) -> None:
    assert errors(world, Execute(command="ls"), memos=(memo,)) == (expected,)


@pytest.mark.parametrize("path", PATHS)
def test_path_that_plans_must_not_touch_is_refused_in_every_action(world: World, path: str) -> None:
    for action in (
        Create(path=path, content=""),
        Edit(path=path, swaps=CHANGE),
        Read(path=path),
    ):
        assert errors(world, action) == (f"`{action.kind}` on `{path}`: the path {PATHS[path]}.",)


@pytest.mark.parametrize("path", [path for path in PATHS if path.strip("./")])
def test_folder_and_handoff_that_plans_must_not_touch_are_refused(world: World, path: str) -> None:
    told = PATHS[path]
    assert errors(world, Execute(command="ls", cwd=path)) == (
        f"`EXECUTE` on `ls`: the path {told}.",
    )
    assert errors(world, Invoke(agent="developer", handoff=(path,))) == (
        f"`INVOKE` on `developer`: the path of `{path}` {told}.",
    )


def test_memos_are_added_once_and_removed_only_where_they_are(world: World) -> None:
    memos = (Memo("+", "Known."), Memo("-", "Unknown."), Memo("+", "New."), Memo("-", "New."))
    assert errors(world, Execute(command="ls"), memos=memos) == (
        "`[+] ADD` of `Known.`: the memo exists already.",
        "`[-] REMOVE` of `Unknown.`: there is no such memo.",
    )


def test_all_checks_that_fail_are_named_together(world: World) -> None:
    found = errors(world, *(action for action, _ in CASES), memos=tuple(memo for memo, _ in MEMOS))
    expected = [*(told for _, told in MEMOS), *(told for _, told in CASES)]
    assert [one for one in found if one in expected] == expected


def test_later_action_sees_what_the_earlier_ones_would_do(world: World) -> None:
    new = Create(path="new/c.py", content="one\n")
    edit = Edit(path="new/c.py", swaps=CHANGE)
    assert errors(world, new, edit, Read(path="new/c.py"), Execute(command="ls", cwd="new")) == ()
    assert errors(world, new, new) == ("`CREATE` on `new/c.py`: the file exists already.",)
    again = Edit(path="src/a.py", swaps=CHANGE)
    assert errors(world, again, again) == ("`EDIT` on `src/a.py`: FIND block did not match.",)


def test_only_one_action_hands_over_and_it_is_the_last(world: World) -> None:
    invoke = Invoke(agent="Developer")
    assert errors(world, invoke, Invoke(agent="developer")) == (
        "`INVOKE` on `developer`: a plan has at most one INVOKE or CONCLUDE.",
    )
    assert errors(world, invoke, Execute(command="ls")) == (
        "`INVOKE` on `Developer`: it must be the last action.",
    )


def test_file_is_not_read_and_pruned_in_one_plan(world: World) -> None:
    assert errors(world, Read(path="src/a.py"), Prune(path="./src/a.py")) == (
        "`PRUNE` on `./src/a.py`: the same plan READs it.",
    )


def test_folder_that_an_earlier_action_makes_is_in_the_way_of_a_file(world: World) -> None:
    inside = Create(path="new/c.py", content="")
    assert errors(world, inside, Create(path="new", content="")) == (
        "`CREATE` on `new`: the file exists already.",
    )


def test_link_to_nothing_is_in_the_way_of_a_file(world: World) -> None:
    (world.root / "link").symlink_to("nothing")
    assert errors(world, Create(path="link", content="")) == (
        "`CREATE` on `link`: the file exists already.",
    )


def test_file_is_one_file_by_whatever_link_it_is_named(world: World) -> None:
    (world.root / "link").symlink_to("src")
    world = replace(world, turn_context=("src/a.py", "link/a.py"))
    both = (Edit(path="link/a.py", swaps=CHANGE), Edit(path="src/a.py", swaps=CHANGE))
    assert errors(world, *both) == ("`EDIT` on `src/a.py`: FIND block did not match.",)
    new = Create(path="link/new/b.py", content="")
    assert errors(world, new, Execute(command="ls", cwd="src/new"), Read(path="src/new/b.py")) == ()


@pytest.mark.parametrize("cwd", ["", ".", "./", "././"])
def test_project_itself_is_a_folder_for_commands(world: World, cwd: str) -> None:
    assert errors(world, Execute(command="ls", cwd=cwd)) == ()


def test_queries_are_checked_before_any_is_asked(world: World) -> None:
    assert errors(world, Research(queries=("what is it",) * 10)) == ()
    assert errors(world, Research(queries=("what", "--exec=rm"))) == (
        "`RESEARCH` on `what`: a query begins with `-`, which a program takes for an option.",
    )
    assert errors(world, Research(queries=("what",) * 11)) == (
        "`RESEARCH` on `what`: there are 11 queries; an action has at most 10.",
    )
