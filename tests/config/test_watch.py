from __future__ import annotations

import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing
from trio.testing import wait_all_tasks_blocked

from takopi.config.load import load
from takopi.config.loaded import Config
from takopi.config.watch import watch
from takopi.core.errors import Problem
from takopi.kit.atomic import replace_file
from tests.config.names import NAMES

TICK_S = 0.02
DEADLINE_S = 30


class Watched:
    """A config file under watch, and what the watch has said so far."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._loads = trio.Semaphore(0)
        self._send, self.said = trio.open_memory_channel[Config | tuple[Problem, ...]](100)

    def load(self) -> Config:
        return load(self.path, NAMES, environ={})

    async def next_config(self) -> Config:
        said = await self.said.receive()
        assert isinstance(said, Config), said
        return said

    async def next_problems(self) -> list[str]:
        said = await self.said.receive()
        assert isinstance(said, tuple), said
        return [f"{problem.key}: {problem.what}" for problem in said]

    async def was_read(self) -> None:
        """Wait until the watch has read the file once more."""
        await self._loads.acquire()

    @property
    def unseen_reads(self) -> int:
        return self._loads.value

    @asynccontextmanager
    async def running(self, current: Config) -> AsyncGenerator[None]:
        with trio.fail_after(DEADLINE_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch, current)
                try:
                    yield
                finally:
                    nursery.cancel_scope.cancel()

    async def _watch(self, current: Config) -> None:
        token = trio.lowlevel.current_trio_token()

        def load_and_tell() -> Config:
            token.run_sync_soon(self._loads.release)
            return self.load()

        await watch(
            self.path,
            load_and_tell,
            current=current,
            on_change=self._send.send,
            on_problem=self._send.send,
            every_s=TICK_S,
        )


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    path = home / "takopi.toml"
    replace_file(path, b"chat_id = 1\n")
    return Watched(path)


async def test_good_change_is_handed_over(watched: Watched) -> None:
    async with watched.running(watched.load()):
        replace_file(watched.path, b"chat_id = 2\n")
        assert (await watched.next_config()).chat_id == 2


async def test_change_in_place_is_handed_over(watched: Watched) -> None:
    async with watched.running(watched.load()):
        watched.path.write_text("chat_id = 2\n", encoding="utf-8")
        assert (await watched.next_config()).chat_id == 2


async def test_change_before_the_watch_began_is_not_missed(watched: Watched) -> None:
    current = watched.load()
    replace_file(watched.path, b"chat_id = 2\n")
    async with watched.running(current):
        assert (await watched.next_config()).chat_id == 2


async def test_file_that_stays_the_same_is_not_read_again(watched: Watched) -> None:
    async with watched.running(watched.load()):
        await watched.was_read()
        await trio.sleep(TICK_S * 10)
        assert watched.unseen_reads == 0


async def test_return_to_the_old_config_after_a_problem_is_told(watched: Watched) -> None:
    async with watched.running(watched.load()):
        replace_file(watched.path, b"chat_id = 'x'\n")
        await watched.next_problems()
        replace_file(watched.path, b"chat_id = 1\n")
        assert (await watched.next_config()).chat_id == 1


async def test_chmod_that_mends_the_mode_is_seen(watched: Watched) -> None:
    async with watched.running(watched.load()):
        watched.path.chmod(0o644)
        (problem,) = await watched.next_problems()
        assert "0644" in problem
        watched.path.chmod(0o600)
        await watched.next_config()
        watched.path.parent.chmod(0o755)
        (problem,) = await watched.next_problems()
        assert "0755" in problem
        watched.path.parent.chmod(0o700)
        await watched.next_config()


async def test_symlinked_file_is_watched_through_the_link(watched: Watched, tmp_path: Path) -> None:
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    replace_file(first, b"chat_id = 1\n")
    replace_file(second, b"chat_id = 3\n")
    watched.path.unlink()
    watched.path.symlink_to(first)
    async with watched.running(watched.load()):
        replace_file(first, b"chat_id = 2\n")
        assert (await watched.next_config()).chat_id == 2
        watched.path.unlink()
        watched.path.symlink_to(second)
        assert (await watched.next_config()).chat_id == 3


class Told:
    """What a watch said about a file that is read as plain text."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.reads = 0

    async def change(self, text: str) -> None:
        await trio.lowlevel.checkpoint()
        self.texts.append(text)

    async def problem(self, problems: tuple[Problem, ...]) -> None:
        await trio.lowlevel.checkpoint()
        raise AssertionError(problems)


async def asleep() -> None:
    """Wait until the only task with a deadline is asleep, and no thread is at work for it."""
    while trio.lowlevel.current_statistics().seconds_to_next_deadline == math.inf:
        await wait_all_tasks_blocked()


class Stepped:
    """A config file under watch, looked at only when the test says so."""

    def __init__(self, path: Path, clock: trio.testing.MockClock, *, nursery: trio.Nursery) -> None:
        self.path = path
        self._clock = clock
        self._said: list[str] = []
        nursery.start_soon(self._watch, self._load())

    async def after(self, data: bytes | None) -> list[str]:
        """What the watch says once the file has this content, or is gone."""
        if data is None:
            self.path.unlink()
        else:
            replace_file(self.path, data)
        # Seen to have changed, seen to have kept still and judged, seen to be known.
        for _ in range(3):
            await asleep()
            self._clock.jump(1)
            await wait_all_tasks_blocked()
        await asleep()
        said, self._said = self._said, []
        return said

    def _load(self) -> Config:
        return load(self.path, NAMES, environ={})

    async def _watch(self, current: Config) -> None:
        await watch(
            self.path,
            self._load,
            current=current,
            on_change=self._note_config,
            on_problem=self._note_problems,
            every_s=1,
        )

    async def _note_config(self, config: Config) -> None:
        await trio.lowlevel.checkpoint()
        self._said.append(f"chat {config.chat_id}")

    async def _note_problems(self, problems: tuple[Problem, ...]) -> None:
        await trio.lowlevel.checkpoint()
        self._said += [f"problem {problem.key}" for problem in problems]


async def test_change_that_means_nothing_is_not_handed_over(
    watched: Watched, mock_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    stepped = Stepped(watched.path, mock_clock, nursery=nursery)
    assert await stepped.after(b"chat_id = 1 # still\n") == []
    assert await stepped.after(b"chat_id = 2\n") == ["chat 2"]


async def test_bad_change_is_reported_once_and_the_next_good_one_handed_over(
    watched: Watched, mock_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    stepped = Stepped(watched.path, mock_clock, nursery=nursery)
    assert await stepped.after(b"chat_id = 'x'\n") == ["problem chat_id"]
    assert await stepped.after(b"chat_id = 2\n") == ["chat 2"]


async def test_same_problem_after_another_edit_is_not_reported_again(
    watched: Watched, mock_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    stepped = Stepped(watched.path, mock_clock, nursery=nursery)
    assert await stepped.after(b"chat_id = 'x'\n") == ["problem chat_id"]
    assert await stepped.after(b"chat_id = 'xy'\n") == []
    assert await stepped.after(b"session_mode = 'x'\n") == ["problem session_mode"]


async def test_removed_file_is_reported_once_and_its_return_seen(
    watched: Watched, mock_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    stepped = Stepped(watched.path, mock_clock, nursery=nursery)
    assert await stepped.after(None) == ["problem "]
    assert await stepped.after(b"chat_id = 2\n") == ["chat 2"]


async def test_file_is_judged_only_when_it_has_kept_still(
    mock_clock: trio.testing.MockClock, tmp_path: Path
) -> None:
    path = tmp_path / "takopi.toml"
    path.write_text("", encoding="utf-8")
    told = Told()

    def read() -> str:
        told.reads += 1
        return path.read_text(encoding="utf-8")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(
            lambda: watch(
                path, read, current="", on_change=told.change, on_problem=told.problem, every_s=1
            )
        )
        for size in range(1, 6):
            await asleep()
            path.write_text("x" * size, encoding="utf-8")
            mock_clock.jump(1)
            await wait_all_tasks_blocked()
        await asleep()
        assert told.reads == 0
        mock_clock.jump(1)
        await wait_all_tasks_blocked()
        await asleep()
        assert told.texts == ["xxxxx"]
        nursery.cancel_scope.cancel()


async def test_file_that_changes_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "takopi.toml"
    path.write_text("half", encoding="utf-8")
    told = Told()
    done = trio.Event()

    def read() -> str:
        told.reads += 1
        text = path.read_text(encoding="utf-8")
        if told.reads == 1:
            path.write_text("half and half", encoding="utf-8")
        return text

    async def on_change(text: str) -> None:
        await told.change(text)
        done.set()

    with trio.fail_after(DEADLINE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                lambda: watch(
                    path,
                    read,
                    current="",
                    on_change=on_change,
                    on_problem=told.problem,
                    every_s=TICK_S,
                )
            )
            await done.wait()
            nursery.cancel_scope.cancel()
    assert told.texts == ["half and half"]
