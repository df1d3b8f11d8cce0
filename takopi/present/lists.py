"""What takopi says of itself: its runs, its worktrees, its state, and how to use it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from takopi.core.outgoing import Text
from takopi.present.compose import Piece, bold, code, join, prose, stack
from takopi.present.numbers import ago, duration, size
from takopi.present.wording import one_line

PROMPT_CHARS = 80
NAME_CHARS = 100
LISTED_WORKTREES = 20


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run in a list; `context` is what its ctx line says, such as `z80 @ feat/x`."""

    number: int
    status: str
    engine: str
    prompt: str
    age_s: float
    context: str = ""


@dataclass(frozen=True, slots=True)
class WorktreeLine:
    """One worktree in a list; None where git or the disk did not tell."""

    branch: str
    ahead: int | None = None
    behind: int | None = None
    dirty: bool = False
    disk_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class EngineLine:
    """One engine: what is wrong with it, if anything, and whether it asks before it acts."""

    id: str
    asks: bool
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Condition:
    """How the daemon is. `polled_s` is how long ago the chat was last heard of; None: never.

    `polls` is False where a chat has no server that could be asked.
    """

    version: str
    up_s: float
    engines: Sequence[EngineLine]
    running: int
    queued: int
    max_runs: int
    polled_s: float | None = None
    polls: bool = True
    mcp: Sequence[str] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class CommandLine:
    """One command that can be typed, without its slash."""

    name: str
    description: str


def runs_list(runs: Sequence[RunLine]) -> Text:
    """The runs, in the order they are given."""
    if not runs:
        return prose("No runs yet. Send a message to start one.")
    return stack([bold("Last runs"), *map(_run, runs)], "\n\n")


def worktrees_list(project: str, worktrees: Sequence[WorktreeLine]) -> Text:
    """The worktrees of a project; the first of them where there are many."""
    if not worktrees:
        return prose(
            f"{project} has no worktrees. Begin a message with `/{project} @branch` to make one."
        )
    left_out = len(worktrees) - LISTED_WORKTREES
    return stack([
        bold(f"Worktrees of {project}"),
        *map(_worktree, worktrees[:LISTED_WORKTREES]),
        f"and {left_out} more" if left_out > 0 else "",
    ])


def status(condition: Condition) -> Text:
    """How the daemon is, and what its engines do without asking."""
    runs = f"{condition.running} of {condition.max_runs} working, {condition.queued} queued"
    polled = "never" if condition.polled_s is None else f"{duration(condition.polled_s)} ago"
    return stack(
        [
            bold(f"takopi {condition.version} · up {duration(condition.up_s)}"),
            stack([
                f"runs: {runs}",
                f"last poll: {polled}" if condition.polls else "",
                f"MCP servers: {', '.join(condition.mcp)}" if condition.mcp else "",
            ]),
            stack([bold("Engines"), *map(_engine, condition.engines)]),
            stack(prose(one_line(note, 300)) for note in condition.notes),
        ],
        "\n\n",
    )


def help_text(
    commands: Sequence[CommandLine], *, engines: Sequence[str], projects: Sequence[str]
) -> Text:
    """How to start, and every command, engine and project."""
    return stack(
        [
            prose(
                "Send a message and an agent starts to work. Reply to its answer to go on.\n"
                "Begin with an engine, a project or a branch to choose:"
                " `/claude /project @branch fix the tests`"
            ),
            stack([bold("Commands"), *(f"/{c.name} {c.description}" for c in commands)]),
            stack([bold("Engines"), " ".join(f"/{name}" for name in engines)]) if engines else "",
            stack([bold("Projects"), " ".join(f"/{name}" for name in projects)])
            if projects
            else prose("No projects yet. `takopi init` in a repository adds one."),
        ],
        "\n\n",
    )


def _run(run: RunLine) -> Text:
    facts = [
        str(run.number),
        run.status,
        run.engine,
        one_line(run.context, NAME_CHARS),
        ago(run.age_s),
    ]
    return stack([" · ".join(filter(None, facts)), one_line(run.prompt, PROMPT_CHARS)])


def _worktree(worktree: WorktreeLine) -> Piece:
    moved = [
        f"{number} {way}"
        for number, way in ((worktree.ahead, "ahead"), (worktree.behind, "behind"))
        if number
    ]
    facts = [
        ", ".join(moved),
        "changed" if worktree.dirty else "",
        "" if worktree.disk_bytes is None else size(worktree.disk_bytes),
    ]
    return join([code(one_line(worktree.branch, NAME_CHARS)), *(f" · {f}" for f in facts if f)])


def _engine(engine: EngineLine) -> Piece:
    if engine.problem:
        return prose(f"✗ {engine.id}: {engine.problem}")
    manner = "asks you before it acts" if engine.asks else "follows its own permission settings"
    return f"✓ {engine.id}: {manner}"
