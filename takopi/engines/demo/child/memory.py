"""What the demo engine remembers of a thread: one small file, replaced whole or not at all."""

from __future__ import annotations

import json
import os

from takopi.engines.demo.child.wire import fields, strings, write_all

QUOTE_CHARS = 200
MAX_NOTES = 50
MAX_FILE_BYTES = 1_000_000


class NoSuchThread(Exception):
    """There is no thread of that id, or its file cannot be read."""


class Memory:
    """One thread: how it began, what was said last, its notes, and what is allowed in it.

    `rounds` is how often it is still to make the tool call `call`. Every change is on disk before
    it is told of; a thread without an id is kept nowhere.
    """

    __slots__ = (
        "allowed",
        "before",
        "call",
        "first",
        "folder",
        "id",
        "last",
        "notes",
        "rounds",
        "turns",
    )

    def __init__(self, folder: str, thread_id: str) -> None:
        self.folder = folder
        self.id = thread_id
        self.turns = 0
        self.first = ""
        self.last = ""
        self.before = ""
        self.notes: list[str] = []
        self.allowed: list[str] = []
        self.rounds = 0
        self.call = ""

    def begin_turn(self, prompt: str) -> None:
        """Count the turn and remember its prompt."""
        self.turns += 1
        self.before, self.last = self.last, quote(prompt)
        self.first = self.first or self.last
        self._save()

    def note(self, text: str) -> None:
        """Keep a note; of too many, the oldest goes."""
        self.notes = [*self.notes, quote(text)][-MAX_NOTES:]
        self._save()

    def allow(self, tool: str) -> None:
        """Remember that this tool needs no approval any more."""
        self.allowed.append(tool)
        self._save()

    def owe(self, rounds: int, call: str) -> None:
        """Remember a tool call that is to be made so many times more."""
        self.rounds, self.call = rounds, call
        self._save()

    def _save(self) -> None:
        if not self.id:
            return
        known = {name: getattr(self, name) for name in ("id", "turns", "first", "last")}
        known |= {"notes": self.notes, "allowed": self.allowed}
        known |= {"rounds": self.rounds, "call": self.call}
        data = json.dumps(known, ensure_ascii=False, indent=1).encode("utf-8", "replace")
        path = _path(self.folder, self.id)
        # One process a thread, so the temporary name is nobody else's; a leftover is replaced.
        fresh = f"{path}.new"
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        try:
            write_all(fd, data)
        finally:
            os.close(fd)
        os.replace(fresh, path)  # ruff: ignore[os-replace] pathlib is too heavy for us


def new_memory(folder: str) -> Memory:
    """A thread that there was not before."""
    os.makedirs(folder, mode=0o700, exist_ok=True)  # ruff: ignore[os-makedirs] as above
    return Memory(folder, os.urandom(6).hex())


def load_memory(folder: str, thread_id: str) -> Memory:
    """The thread of that id, or `NoSuchThread`."""
    # The id becomes a file name: nothing but what `new_memory` gives is one.
    if len(thread_id) != 12 or not set(thread_id) <= set("0123456789abcdef"):
        raise NoSuchThread(thread_id)
    try:
        # ruff: ignore[builtin-open] pathlib is too heavy for us
        with open(_path(folder, thread_id), "rb") as file:
            known = fields(json.loads(file.read(MAX_FILE_BYTES)))
    except (OSError, ValueError, RecursionError) as error:
        raise NoSuchThread(thread_id) from error
    turns, first, last = known.get("turns"), known.get("first"), known.get("last")
    if not (isinstance(turns, int) and isinstance(first, str) and isinstance(last, str)):
        raise NoSuchThread(thread_id)
    memory = Memory(folder, thread_id)
    memory.turns, memory.first, memory.last = turns, first, last
    memory.notes, memory.allowed = strings(known.get("notes")), strings(known.get("allowed"))
    rounds, call = known.get("rounds"), known.get("call")
    if isinstance(rounds, int) and isinstance(call, str):
        memory.rounds, memory.call = rounds, call
    return memory


def quote(text: str) -> str:
    """`text` on one line, short enough to be repeated."""
    line = " ".join(text[: QUOTE_CHARS * 8].split())
    return line if len(line) <= QUOTE_CHARS else line[: QUOTE_CHARS - 1].rstrip() + "…"


def _path(folder: str, thread_id: str) -> str:
    return f"{folder}/{thread_id}.json"
