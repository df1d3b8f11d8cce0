"""Carries out one action: files are replaced whole, and nothing of a command is left behind."""

from __future__ import annotations

import difflib
import re
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import trio

from takopi.config.environ import child_environ
from takopi.core.errors import ChildLost, TakopiError
from takopi.kit.atomic import replace_file
from takopi.kit.exchange import exchange as converse
from takopi.kit.exchange import feed_bytes
from takopi.kit.proc import Command, Keeper
from takopi.turns.layout import FILE_MODE
from takopi.turns.outcome import Outcome
from takopi.turns.paths import normal, path_fault
from takopi.turns.plan import Action, Chat, Conclude, Create, Edit, Execute, Invoke, Research
from takopi.turns.render import fence
from takopi.turns.swaps import exchange
from takopi.turns.validate import query_fault

USUAL_TIMEOUT_S = 60.0
HEAD_BYTES = TAIL_BYTES = 16 * 1024
"""How much of the start and of the end of an output a report keeps."""

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What actions are carried out with. A command of an action gets none of the `secrets`."""

    root: Path
    keeper: Keeper
    environ: Mapping[str, str]
    secrets: tuple[str, ...] = ()
    grace_s: float = 2.0
    research_command: tuple[str, ...] = ()


async def perform(action: Action, bench: Bench) -> Outcome:
    """Do what an action says; whatever goes wrong is its outcome."""
    begun = time.monotonic()
    try:
        outcome = await _do(action, bench)
    except (OSError, TakopiError) as error:
        outcome = Outcome(status="FAILURE", reason=_words(error))
    return Outcome(
        status=outcome.status,
        reason=outcome.reason,
        details=outcome.details,
        duration_s=round(time.monotonic() - begun, 3),
    )


async def _do(action: Action, bench: Bench) -> Outcome:
    match action:
        case Create():
            return await trio.to_thread.run_sync(_create, bench.root, action)
        case Edit():
            return await trio.to_thread.run_sync(_edit, bench.root, action)
        case Execute():
            return await _execute(action, bench)
        case Research():
            return await _research(action, bench)
        case Chat() | Invoke() | Conclude():
            return Outcome(status="SUCCESS", details=action.text)
        case _:
            return Outcome(status="SUCCESS")


def _create(root: Path, action: Create) -> Outcome:
    if fault := path_fault(root, action.path):
        return Outcome(status="FAILURE", reason=f"the path {fault}")
    path = root / action.path
    if path.exists() or path.is_symlink():
        return Outcome(status="FAILURE", reason="the file exists already")
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, action.content.encode("utf-8", "surrogatepass"), mode=FILE_MODE)
    return Outcome(status="SUCCESS", details=_diff(action.path, "", action.content))


def _edit(root: Path, action: Edit) -> Outcome:
    if fault := path_fault(root, action.path):
        return Outcome(status="FAILURE", reason=f"the path {fault}")
    path = root / action.path
    try:
        before = path.read_bytes().decode()
    except UnicodeDecodeError:
        return Outcome(status="FAILURE", reason="the file is not text")
    after, faults = exchange(before, action.swaps)
    if faults:
        return Outcome(status="FAILURE", reason=faults[0])
    replace_file(path, after.encode(), mode=stat.S_IMODE(path.stat().st_mode))
    return Outcome(status="SUCCESS", details=_diff(action.path, before, after))


def _diff(path: str, before: str, after: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(keepends=True),
        after.splitlines(keepends=True),
        f"a/{path}" if before else "/dev/null",
        f"b/{path}",
    )
    text = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
    return fence(_shortened(text.encode("utf-8", "replace")), "diff")


async def _execute(action: Execute, bench: Bench) -> Outcome:
    if normal(action.cwd) != "." and (fault := path_fault(bench.root, action.cwd)):
        return Outcome(status="FAILURE", reason=f"the folder {fault}")
    # Both outputs in one pipe keep the order in which they were written.
    argv = ["sh", "-c", 'exec sh -c "$1" 2>&1', "sh", action.command]
    limit_s = action.timeout_s or USUAL_TIMEOUT_S
    return await _run(argv, bench, cwd=bench.root / action.cwd, env=action.env, limit_s=limit_s)


async def _research(action: Research, bench: Bench) -> Outcome:
    if not bench.research_command:
        return Outcome(status="FAILURE", reason="no sessions.research_command is configured")
    if fault := query_fault(action.queries):
        return Outcome(status="FAILURE", reason=fault)
    parts: list[str] = []
    for query in action.queries:
        argv = [*bench.research_command, query]
        limit_s = USUAL_TIMEOUT_S
        outcome = await _run(argv, bench, cwd=bench.root, env={}, limit_s=limit_s)
        parts.append(outcome.details)
        if outcome.status != "SUCCESS":
            return Outcome(status=outcome.status, reason=outcome.reason, details="\n\n".join(parts))
    return Outcome(status="SUCCESS", details="\n\n".join(parts))


async def _run(
    argv: list[str], bench: Bench, *, cwd: Path, env: Mapping[str, str], limit_s: float
) -> Outcome:
    head, tail, total = bytearray(), bytearray(), 0

    async def read(stdout: trio.abc.ReceiveStream) -> None:
        nonlocal total
        async for chunk in stdout:
            total += len(chunk)
            room = HEAD_BYTES - len(head)
            head.extend(chunk[: max(room, 0)])
            tail.extend(chunk[max(room, 0) :])
            del tail[:-TAIL_BYTES]

    environ = child_environ(bench.environ, secrets=bench.secrets, cwd=cwd, extra=env)
    code: int | None = None
    with trio.move_on_after(limit_s):
        try:
            ending = await converse(
                bench.keeper,
                Command(argv, cwd, environ),
                feed=feed_bytes(b""),
                read=read,
                grace_s=bench.grace_s,
            )
            code = ending.code
        except ChildLost as error:
            return Outcome(status="FAILURE", reason=error.what)
    missing = total - len(head) - len(tail)
    cut = f"\n… {missing} bytes left out …\n".encode() if missing else b""
    shown = fence(_plain(bytes(head) + cut + bytes(tail)), "text")
    if code is None:
        reason = f"it was stopped after {limit_s:g} s"
        return Outcome(status="FAILURE", reason=reason, details=shown)
    details = f"- **Exit Code:** {code}\n\n{shown}"
    if code:
        return Outcome(status="FAILURE", reason=f"exit code {code}", details=details)
    return Outcome(status="SUCCESS", details=details)


def _shortened(data: bytes) -> str:
    limit = HEAD_BYTES + TAIL_BYTES
    if len(data) <= limit:
        return data.decode()
    cut = f"\n… {len(data) - limit} bytes left out …\n".encode()
    return (data[:HEAD_BYTES] + cut + data[-TAIL_BYTES:]).decode("utf-8", "replace")


def _plain(data: bytes) -> str:
    """An output without what a terminal would obey."""
    text = _ANSI.sub("", data.decode("utf-8", "replace")).replace("\r\n", "\n")
    return "".join(char for char in text if char.isprintable() or char in "\n\t")


def _words(error: OSError | TakopiError) -> str:
    if isinstance(error, TakopiError):
        return error.what
    return (error.strerror or str(error)).lower()
