"""/worktrees: the worktrees of a project, what was changed in them, and their end.

A button names project and branch by a digest, and a press is read against the worktrees that are
there now. The list is the answer: after every press it says what has become of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import trio

from takopi.app.cards import DIFF_BYTES, fitted, send_diff
from takopi.app.commands.choices import look, next_run
from takopi.app.desk import Call, Desk, answer
from takopi.app.pickers import (
    MAX_CHOICES,
    PickPress,
    digest,
    find,
    gone,
    offer,
    pick_button,
    settle,
)
from takopi.app.tap import Tap
from takopi.config.loaded import Project
from takopi.core.context import Context
from takopi.core.errors import Refused
from takopi.core.ids import Scope
from takopi.core.outgoing import Button, Card
from takopi.present.cards import notice, refusal
from takopi.present.compose import prose, stack
from takopi.present.lists import LISTED_WORKTREES, WorktreeLine, worktrees_list
from takopi.present.wording import one_line
from takopi.projects.registry import find_project
from takopi.projects.review import WorktreeInfo
from takopi.runs.deliver import where
from takopi.telegram.buttons import Codec

LIST_S = 30.0
"""How long it may take to look at all worktrees of a project."""

BRANCH_CHARS = 30

WorktreeVerb = Literal["diff", "archive", "force", "keep"]


@dataclass(frozen=True, slots=True)
class WorktreePress:
    """Something to be done with a worktree: `project` and `tree` are digests."""

    what: WorktreeVerb
    project: str
    tree: str


WORKTREE = Codec("wt", WorktreePress)


async def run(desk: Desk, call: Call) -> None:
    """List the worktrees of the project that is named, or else of the one that is worked on."""
    project = await _find_project(desk, call)
    if project is None:
        buttons = [
            pick_button(call, "worktrees", digest(alias), label=alias)
            for alias in list(desk.config.projects)[:MAX_CHOICES]
        ]
        await offer(desk, call, prose("Of which project?"), buttons=buttons)
        return
    trees = await _list(desk, project)
    await answer(desk, call, _list_card(desk, call.scope, project, trees=trees))


async def picked(tap: Tap, pick: PickPress) -> None:
    """List the worktrees of the project that was chosen."""
    config = tap.desk.config
    alias = find(config.projects, pick.value)
    if alias is None:
        gone(tap)
        return
    said = notice(f"Worktrees of {alias}:")
    if await settle(tap, pick, lambda _conn: None, said=said):
        project = config.projects[alias]
        trees = await _list(tap.desk, project)
        await tap.say(_list_card(tap.desk, tap.press.scope, project, trees=trees))


async def pressed(tap: Tap, what: WorktreePress) -> None:
    """Do what a button of the list says."""
    # git takes its time, so what it says goes to the chat.
    tap.answer()
    desk = tap.desk
    alias = find(desk.config.projects, what.project)
    if alias is None:
        tap.clear()
        raise Refused("the project of this list is no longer configured")
    project = desk.config.projects[alias]
    trees = await _list(desk, project)
    tree = next((each for each in trees if digest(each.branch) == what.tree), None)
    if tree is None:
        _redraw(tap, project, trees=trees, note="That worktree is no longer there.")
    elif what.what == "diff":
        await _show_diff(tap, project, tree=tree)
    elif what.what == "keep":
        _redraw(tap, project, trees=trees, note=f"`{tree.branch}` was kept.")
    else:
        await _archive(tap, project, tree=tree, is_confirmed=what.what == "force")


async def _archive(tap: Tap, project: Project, *, tree: WorktreeInfo, is_confirmed: bool) -> None:
    desk, branch = tap.desk, tree.branch
    _check_nobody_works_in(desk, project, tree=tree)
    try:
        await desk.shop.worktrees.archive(project, branch, force=is_confirmed)
    except Refused as error:
        if is_confirmed:
            raise
        buttons = (
            _button("force", "Archive it anyway", project, branch=branch),
            _button("keep", "Keep it", project, branch=branch),
        )
        tap.edit(refusal(error, buttons=(buttons,)))
        return
    trees = await _list(desk, project)
    note = f"The worktree of `{branch}` is archived; the branch is still there."
    _redraw(tap, project, trees=trees, note=note)


async def _show_diff(tap: Tap, project: Project, *, tree: WorktreeInfo) -> None:
    worktrees = tap.desk.shop.worktrees
    try:
        base = await worktrees.find_base(project)
    except Refused:
        base = None
    diff = await worktrees.diff(tree.path, limit_bytes=DIFF_BYTES, base=base)
    await send_diff(tap, where(Context(project.alias, tree.branch), None), diff)


async def _find_project(desk: Desk, call: Call) -> Project | None:
    """The project to be listed; None if it has to be asked for."""
    config = desk.config
    if call.args:
        return find_project(config, call.args.removeprefix("/"))
    if not config.projects:
        raise Refused("there are no projects", way_out="run `takopi init` in a repository")
    here = await look(desk, call.scope)
    try:
        context = next_run(desk, here).context
    except Refused:
        context = None
    if context is not None:
        return config.project(context.project)
    return next(iter(config.projects.values())) if len(config.projects) == 1 else None


async def _list(desk: Desk, project: Project) -> tuple[WorktreeInfo, ...]:
    with trio.move_on_after(LIST_S):
        return await desk.shop.worktrees.list(project)
    raise Refused(
        f"the worktrees of {project.alias} could not be looked at in {LIST_S:g} seconds",
        way_out="try again when the machine is less busy",
    )


def _check_nobody_works_in(desk: Desk, project: Project, *, tree: WorktreeInfo) -> None:
    context = Context(project.alias, tree.branch)
    for live in desk.schedule:
        is_at_work = live.stage != "queued" and live.run.context == context
        if live.cwd == tree.path or is_at_work:
            raise Refused(f"run {live.id} works there", way_out="cancel it first")


def _redraw(tap: Tap, project: Project, *, trees: tuple[WorktreeInfo, ...], note: str) -> None:
    tap.edit(_list_card(tap.desk, tap.press.scope, project, trees=trees, note=note))


def _list_card(
    desk: Desk,
    scope: Scope,
    project: Project,
    *,
    trees: tuple[WorktreeInfo, ...],
    note: str = "",
) -> Card:
    lines = [
        WorktreeLine(each.branch, each.ahead, each.behind, bool(each.dirty), each.disk_bytes)
        for each in trees
    ]
    rows = [_buttons(project, each.branch) for each in trees[:LISTED_WORKTREES]]
    text = stack([prose(note), worktrees_list(project.alias, lines)], "\n\n")
    return fitted(desk, scope, text, buttons=rows)


def _buttons(project: Project, branch: str) -> tuple[Button, ...]:
    name = one_line(branch, BRANCH_CHARS)
    return (
        _button("diff", f"Diff {name}", project, branch=branch),
        _button("archive", f"Archive {name}", project, branch=branch),
    )


def _button(what: WorktreeVerb, label: str, project: Project, *, branch: str) -> Button:
    press = WorktreePress(what, digest(project.alias), digest(branch))
    return Button(label, WORKTREE.encode(press))
