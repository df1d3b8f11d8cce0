"""The faults that takopi is put through, by the names that its promises give them."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

TESTS = Path(__file__).parents[1]

LONG = os.environ.get("TAKOPI_LONG") == "1"
"""The long forms: more rounds, and the real durations."""

FAULTS = {
    "F1": "kill -9 at random moments, 3 updates in flight",
    "F2": "kill -9 after each commit and each HTTP reply in turn",
    "F3": "50 updates sent while down",
    "F4": "the server repeats the last batch",
    "F5": "409 for a minute",
    "F6": "429 of 40 s in one chat",
    "F7": "server accepts and never answers",
    "F8": "502, HTML, cut JSON, closed sockets",
    "F9": "edit or send applied, reply dropped",
    "F10": "400s: not modified, not found, entities, too old, too long",
    "F11": "children that setsid, double-fork, ignore SIGTERM",
    "F12": "an engine silent for 30 s",
    "F13": "2 MB to stdin while 2 MB come on stderr",
    "F14": "a 300 MiB line, bad UTF-8, 10,000 unknown events",
    "F15": "disk full in the state folder",
    "F16": "database or interview file damaged",
    "F17": "bad config at reload",
    "F18": "20 parallel @branch, same and different",
    "F19": "git index.lock held 5 s",
    "F20": "SIGTERM with 5 runs",
    "F21": "SIGSTOP for two minutes",
    "F22": "double, late and foreign taps",
    "F23": "send, tap, crash, restart, redeliver, cancel in any order",
    "S1": "strangers, other chats, edits, channel posts, forged presses",
    "S2": "canary token and canary prompt",
    "S3": "branch names and paths by Hypothesis, symlinks everywhere",
    "S4": "an engine that prints fake ctx, resume, signal and tool lines",
}


def shown_by() -> dict[str, list[str]]:
    """The tests that show each row, relative to the folder of the tests."""
    text = (TESTS / "requirements.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["promises"]


if __name__ == "__main__":
    for name in dict.fromkeys(test for tests in shown_by().values() for test in tests):
        print(f"{TESTS.name}/{name}")
