from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from pathlib import Path

import pytest
import trio

from takopi.kit.cwd import relativize_command, relativize_path, run_cwd

BASE = Path("/srv/z80")


def in_run(cwd: Path, ask: Callable[[str], str], text: str) -> str:
    """What is said inside a run that works in `cwd`."""

    def work() -> str:
        run_cwd.set(cwd)
        return ask(text)

    return copy_context().run(work)


@pytest.mark.parametrize(
    ("path", "relative"),
    [
        ("/srv/z80/src/a.c", "src/a.c"),
        ("/srv/z80//src", "src"),
        ("/srv/z80", "."),
        ("/srv/z80/", "."),
        ("/srv/z80-old/a.c", "/srv/z80-old/a.c"),
        ("/srv", "/srv"),
        ("/elsewhere/srv/z80/a.c", "/elsewhere/srv/z80/a.c"),
        ("src/a.c", "src/a.c"),
        ("", ""),
    ],
)
def test_path_below_the_base_is_seen_from_there(path: str, relative: str) -> None:
    assert relativize_path(path, BASE) == relative


@pytest.mark.parametrize(
    ("command", "relative"),
    [
        ("cat /srv/z80/src/a.c", "cat src/a.c"),
        ("cd /srv/z80 && make", "cd . && make"),
        ("ls /srv/z80/", "ls ."),
        ("diff '/srv/z80/a' \"/srv/z80/b\"", "diff 'a' \"b\""),
        ("make DESTDIR=/srv/z80/out", "make DESTDIR=out"),
        ("PATH=/bin:/srv/z80/bin x", "PATH=/bin:bin x"),
        ("cat </srv/z80/a >/srv/z80/b", "cat <a >b"),
        ("/srv/z80/run.sh", "run.sh"),
        ("rm /srv/z80/-rf /srv/z80/~", "rm ./-rf ./~"),
        ("cat /srv/z80-old/a", "cat /srv/z80-old/a"),
        ("cat /mnt/srv/z80/a", "cat /mnt/srv/z80/a"),
        ("open file:///srv/z80/a", "open file:///srv/z80/a"),
        ("make", "make"),
    ],
)
def test_paths_in_a_command_are_seen_from_the_base(command: str, relative: str) -> None:
    assert relativize_command(command, BASE) == relative


def test_base_may_have_characters_that_mean_something_to_a_pattern() -> None:
    assert relativize_command("cat /a+(b)/c /aab/c", Path("/a+(b)")) == "cat c /aab/c"


def test_root_as_base_changes_nothing() -> None:
    assert relativize_path("/etc/passwd", Path("/")) == "/etc/passwd"
    assert relativize_command("cat /etc/passwd", Path("/")) == "cat /etc/passwd"


def test_folder_of_the_run_is_the_base_where_none_is_given() -> None:
    assert in_run(BASE, relativize_path, "/srv/z80/a.c") == "a.c"
    assert in_run(BASE, relativize_command, "cat /srv/z80/a.c") == "cat a.c"


def test_base_that_is_given_comes_before_the_folder_of_the_run() -> None:
    assert in_run(BASE, lambda text: relativize_path(text, Path("/srv")), "/srv/z80/a") == "z80/a"


def test_outside_of_a_run_nothing_changes() -> None:
    assert relativize_path("/srv/z80/a.c") == "/srv/z80/a.c"
    assert relativize_command("cat /srv/z80/a.c") == "cat /srv/z80/a.c"


async def test_runs_side_by_side_each_have_their_own_folder() -> None:
    said: dict[str, str] = {}
    both_set = trio.Event()

    async def work(name: str) -> None:
        run_cwd.set(Path("/srv", name))
        if len(said) == 0:
            said[name] = ""
            await both_set.wait()
        else:
            both_set.set()
        said[name] = relativize_path(f"/srv/{name}/file")

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(work, "one")
            nursery.start_soon(work, "two")
    assert said == {"one": "file", "two": "file"}
    assert run_cwd.get() is None
