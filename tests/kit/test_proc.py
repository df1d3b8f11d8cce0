"""F11: nothing of a child is left after its end, its cancel, or its owner's death."""

from __future__ import annotations

import errno
import os
import signal
import stat
import sys
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.testing

from takopi.core.errors import CannotStart, ChildLost
from takopi.kit.proc import Command, Keeper, open_keeper
from tests.kit.processes import STUBBORN, alive, marked, new_mark, shell, until_alive, until_gone

GRACE_S = 0.3
ROOT = Path(__file__).parent.parent.parent


async def read_all(stream: trio.abc.ReceiveStream) -> bytes:
    return b"".join([bytes(chunk) async for chunk in stream])


async def test_child_speaks_on_three_streams_and_says_how_it_ended(keeper: Keeper) -> None:
    script = "cat; echo oops >&2; exit 3"
    async with keeper.child(shell(script, new_mark()), grace_s=GRACE_S) as child:
        await child.stdin.send_all(b"hello")
        await child.stdin.aclose()
        assert await read_all(child.stdout) == b"hello"
        assert await read_all(child.stderr) == b"oops\n"
        assert await child.wait() == 3


async def test_child_ended_by_a_signal_has_a_negative_code(keeper: Keeper) -> None:
    async with keeper.child(shell("kill -9 $$", new_mark()), grace_s=GRACE_S) as child:
        assert await child.wait() == -signal.SIGKILL


async def test_several_tasks_may_wait_for_the_same_child(keeper: Keeper) -> None:
    codes: list[int] = []
    async with keeper.child(shell("read line; exit 3", new_mark()), grace_s=GRACE_S) as child:

        async def wait() -> None:
            codes.append(await child.wait())

        async with trio.open_nursery() as nursery:
            for waiter in (wait, wait, child.wait_cleared):
                nursery.start_soon(waiter)
            await trio.testing.wait_all_tasks_blocked()
            await child.stdin.send_all(b"end\n")
    assert codes == [3, 3]


async def test_child_gets_exactly_the_environment_and_folder_it_was_given(
    keeper: Keeper, tmp_path: Path
) -> None:
    environ = {"PATH": os.environ["PATH"], "ONLY": "a=b\nc"}
    command = Command(["env", "--null"], tmp_path, environ)
    async with keeper.child(command, grace_s=GRACE_S) as child:
        said = await read_all(child.stdout)
    found = dict(item.split("=", 1) for item in said.decode().split("\0")[:-1])
    assert found == environ
    async with keeper.child(Command(["pwd"], tmp_path, marked("x")), grace_s=GRACE_S) as child:
        assert await read_all(child.stdout) == f"{tmp_path}\n".encode()


async def test_child_starts_with_default_signals_and_no_inherited_descriptor(
    keeper: Keeper,
) -> None:
    script = "grep -E '^Sig(Ign|Blk)' /proc/self/status; ls /proc/self/fd | wc -l"
    async with keeper.child(shell(script, new_mark()), grace_s=GRACE_S) as child:
        said = (await read_all(child.stdout)).decode().split()
    # 0, 1, 2 and the folder that ls itself has open.
    assert said == ["SigBlk:", "0" * 16, "SigIgn:", "0" * 16, "4"]


@pytest.mark.parametrize("kind", STUBBORN)
async def test_f11_cancel_leaves_no_descendant(keeper: Keeper, kind: str) -> None:
    mark = new_mark()
    async with keeper.child(shell(STUBBORN[kind], mark), grace_s=GRACE_S) as child:
        await until_alive(mark, 3)
    assert child.cleared
    assert alive(mark) == []


@pytest.mark.parametrize("kind", STUBBORN)
async def test_f11_a_child_that_ends_takes_its_descendants_along(keeper: Keeper, kind: str) -> None:
    mark = new_mark()
    script = STUBBORN[kind].removesuffix("sleep 300") + "read line"
    async with keeper.child(shell(script, mark), grace_s=GRACE_S) as child:
        await until_alive(mark, 2)
        await child.stdin.send_all(b"end\n")
        assert await child.wait() == 0
        await child.wait_cleared()
        assert alive(mark) == []


@pytest.mark.parametrize("kind", STUBBORN)
async def test_f11_kill_9_of_the_owner_leaves_no_descendant(kind: str) -> None:
    mark, grace_s = new_mark(), 2.0
    async with trio.open_nursery() as nursery:
        owner = await start_owner(nursery, mark, grace_s=grace_s, script=STUBBORN[kind])
        await until_alive(mark, 3)
        owner.kill()
        await until_gone(mark, within_s=grace_s + 1)


async def test_warden_whose_owner_is_gone_waits_for_the_grace_without_spinning() -> None:
    mark, grace_s, spent_s = new_mark(), 2.0, list[float]()
    async with trio.open_nursery() as nursery:
        owner = await start_owner(nursery, mark, grace_s=grace_s, script=STUBBORN["plain"])
        await until_alive(mark, 3)
        (keeper,) = _children(owner.pid)
        (warden,) = _children(keeper)
        owner.kill()
        with trio.fail_after(30):
            while alive(mark):
                spent_s += _cpu_s(warden)
                await trio.sleep(0.01)
    assert spent_s[-1] < grace_s / 10


def _cpu_s(pid: int) -> list[float]:
    """Processor time of a process so far; nothing once it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return []
    return [(int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")]


async def start_owner(
    nursery: trio.Nursery, mark: str, *, grace_s: float, script: str
) -> trio.Process:
    argv = [sys.executable, "-m", "tests.kit.owner", mark, str(grace_s), script]
    run = partial(trio.run_process, argv, check=False, cwd=ROOT, capture_stdout=True)
    process: object = await nursery.start(run)
    assert isinstance(process, trio.Process)
    return process


async def test_sigterm_comes_first_and_is_enough_for_a_polite_tree(keeper: Keeper) -> None:
    mark = new_mark()
    script = "trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.01; done"
    async with keeper.child(shell(script, mark), grace_s=30) as child:
        assert await child.stdout.receive_some(3) == b"up\n"
        await child.stop()
        assert await read_all(child.stdout) == b"bye\n"
        assert await child.wait() == 7
    assert alive(mark) == []


async def test_sigterm_reaches_descendants_that_left_the_group(keeper: Keeper) -> None:
    mark = new_mark()
    far = "trap 'echo bye; exit' TERM; echo up; while :; do sleep 0.01; done"
    script = f'setsid sh -c "{far}" & trap : TERM; wait; wait'
    async with keeper.child(shell(script, mark), grace_s=60) as child:
        assert await child.stdout.receive_some(3) == b"up\n"
        with trio.fail_after(30):
            await child.stop()
            assert await read_all(child.stdout) == b"bye\n"


async def test_cancel_during_the_start_leaves_nothing(keeper: Keeper) -> None:
    mark = new_mark()
    for patience in range(12):
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_start_forever, keeper, mark)
                for _ in range(patience * 3):
                    await trio.lowlevel.checkpoint()
                scope.cancel()
    assert alive(mark) == []


async def _start_forever(keeper: Keeper, mark: str) -> None:
    async with keeper.child(shell("sleep 300", mark), grace_s=GRACE_S):
        await trio.sleep_forever()


async def test_signals_meant_for_the_owner_end_neither_keeper_nor_warden(keeper: Keeper) -> None:
    async with keeper.child(shell("read line; echo $line", new_mark()), grace_s=GRACE_S) as child:
        assert keeper.pid is not None
        for pid in (keeper.pid, *_children(keeper.pid)):
            for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
                os.kill(pid, signum)
        await child.stdin.send_all(b"still here\n")
        assert await read_all(child.stdout) == b"still here\n"
        assert await child.wait() == 0
    before = keeper.pid
    async with keeper.child(shell("true", new_mark()), grace_s=GRACE_S) as another:
        assert await another.wait() == 0
    assert keeper.pid == before


async def test_child_outlives_a_killed_keeper_and_the_next_start_brings_another() -> None:
    mark, lost = new_mark(), list[str]()
    async with open_keeper(on_lost=lambda: lost.append("lost")) as keeper:
        async with keeper.child(shell("read line; echo $line", mark), grace_s=GRACE_S) as child:
            first = keeper.pid
            assert first is not None
            os.kill(first, signal.SIGKILL)
            async with keeper.child(shell("echo second", new_mark()), grace_s=GRACE_S) as second:
                assert await read_all(second.stdout) == b"second\n"
            await child.stdin.send_all(b"still here\n")
            assert await read_all(child.stdout) == b"still here\n"
            assert await child.wait() == 0
        assert lost == ["lost"]
        assert keeper.pid != first
    assert alive(mark) == []


async def test_start_that_a_dying_keeper_swallowed_is_made_by_the_next() -> None:
    lost: list[str] = []
    said: list[bytes] = []
    async with open_keeper(on_lost=lambda: lost.append("lost")) as keeper:

        async def start() -> None:
            async with keeper.child(shell("echo here", new_mark()), grace_s=GRACE_S) as child:
                said.append(await read_all(child.stdout))

        await start()
        assert keeper.pid is not None
        os.kill(keeper.pid, signal.SIGSTOP)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(start)
            await trio.testing.wait_all_tasks_blocked()
            os.kill(keeper.pid, signal.SIGKILL)
    assert said == [b"here\n", b"here\n"]
    assert lost == ["lost"]


async def test_keeper_and_children_are_out_of_reach_of_the_owners_terminal(keeper: Keeper) -> None:
    async with keeper.child(shell("read line", new_mark()), grace_s=GRACE_S) as child:
        assert keeper.pid is not None
        assert os.getsid(keeper.pid) == keeper.pid
        assert os.getsid(child.pid) == child.pid


async def test_f11_descendants_end_though_keeper_and_owner_are_both_killed() -> None:
    mark = new_mark()
    async with trio.open_nursery() as nursery:
        owner = await start_owner(nursery, mark, grace_s=0.5, script=STUBBORN["double fork"])
        await until_alive(mark, 3)
        keeper = next(pid for pid in _children(owner.pid))
        os.kill(keeper, signal.SIGKILL)
        owner.kill()
        await until_gone(mark, within_s=0.5 + 1)


def _children(parent: int) -> list[int]:
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == parent:
                found.append(int(folder.name))
    return found


async def test_killed_warden_fails_its_child_and_leaves_nothing(keeper: Keeper) -> None:
    mark = new_mark()
    async with keeper.child(shell(STUBBORN["double fork"], mark), grace_s=GRACE_S) as child:
        await until_alive(mark, 3)
        assert keeper.pid is not None
        (warden,) = _children(keeper.pid)
        os.kill(warden, signal.SIGKILL)
        with pytest.raises(ChildLost):
            await child.wait()
    await until_gone(mark, within_s=3)
    async with keeper.child(shell("true", new_mark()), grace_s=GRACE_S) as another:
        assert await another.wait() == 0


async def test_killed_warden_harms_no_other_child(keeper: Keeper) -> None:
    victim, bystander = new_mark(), new_mark()
    async with (
        keeper.child(shell("(setsid sleep 300 &); read line", bystander), grace_s=GRACE_S) as other,
        keeper.child(shell("sleep 300", victim), grace_s=GRACE_S) as child,
    ):
        await until_alive(bystander, 2)
        assert keeper.pid is not None
        newest = max(_children(keeper.pid))
        os.kill(newest, signal.SIGKILL)
        with pytest.raises(ChildLost):
            await child.wait()
        await until_gone(victim, within_s=3)
        assert len(alive(bystander)) == 2
        await other.stdin.send_all(b"end\n")
        assert await other.wait() == 0


@pytest.mark.parametrize(
    ("program", "reason"),
    [("takopi-no-such-program", errno.ENOENT), ("./not-executable", errno.EACCES)],
)
async def test_program_that_cannot_be_started_says_why(
    keeper: Keeper, tmp_path: Path, program: str, reason: int
) -> None:
    (tmp_path / "not-executable").write_text("#!/bin/sh\n")
    with pytest.raises(CannotStart, match=program) as caught:
        async with keeper.child(Command([program], tmp_path, marked("x")), grace_s=GRACE_S):
            pass
    assert caught.value.errno == reason


async def test_broken_interpreter_line_and_foreign_format_say_why(
    keeper: Keeper, tmp_path: Path
) -> None:
    for text in ("#!/no/such/interpreter\n", "just words\n"):
        script = tmp_path / "script"
        script.write_text(text)
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        with pytest.raises(CannotStart) as caught:
            async with keeper.child(Command([str(script)], tmp_path, {}), grace_s=GRACE_S):
                pass
        assert caught.value.errno in {errno.ENOENT, errno.ENOEXEC}


async def test_missing_folder_is_told_apart_from_a_missing_program(
    keeper: Keeper, tmp_path: Path
) -> None:
    command = Command(["true"], tmp_path / "nowhere", marked("x"))
    with pytest.raises(CannotStart, match="cannot enter the folder for true"):
        async with keeper.child(command, grace_s=GRACE_S):
            pass


async def test_command_without_a_program_or_with_a_nul_byte_is_refused(keeper: Keeper) -> None:
    for argv in ([], ["echo", "a\0b"]):
        with pytest.raises(CannotStart):
            async with keeper.child(Command(argv, Path("/"), {}), grace_s=GRACE_S):
                pass


async def test_large_environment_and_many_children_at_once(keeper: Keeper) -> None:
    big = "x" * 100_000

    async def one() -> None:
        env = marked("x", {f"BIG{n}": big for n in range(8)})
        command = Command(["sh", "-c", "echo ${#BIG7}"], Path("/"), env)
        async with keeper.child(command, grace_s=GRACE_S) as child:
            assert await read_all(child.stdout) == b"100000\n"

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(one)


async def test_keeper_process_ends_with_its_owner_block() -> None:
    async with open_keeper(on_lost=lambda: None) as keeper:
        async with keeper.child(shell("true", new_mark()), grace_s=GRACE_S) as child:
            await child.wait()
        pid = keeper.pid
    assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
