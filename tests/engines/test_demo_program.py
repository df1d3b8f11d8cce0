"""The demo engine's program by itself: its pipes, its arguments, and what was recorded of it."""

from __future__ import annotations

import json
import re
import sys
from functools import partial
from pathlib import Path
from subprocess import PIPE
from typing import Any, cast

import pytest
import trio

from takopi.core.events import Started
from takopi.core.ids import ResumeToken
from takopi.core.ports import EngineJob
from takopi.engines.demo.spec import PROGRAM
from takopi.engines.demo.translate import DEMO, DemoDialect
from takopi.engines.spec import Finished
from tests.engines.samples import sample_paths
from tests.kit.processes import MARK, alive, new_mark


@pytest.mark.parametrize("prompt", ["hang", "ask question", "run sleep 300", "think 5min"])
async def test_polite_word_ends_it_at_once_without_a_result(
    tmp_path: Path, prompt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = new_mark()
    monkeypatch.setenv(MARK, mark)
    lines_before = 2 if prompt.startswith("run") else 1
    code, lines = await talk(
        tmp_path, [said("prompt", text=prompt), said("interrupt")], wait=lines_before
    )
    assert code == 130
    assert "result" not in {line["type"] for line in lines}
    assert alive(mark) == []


async def test_stubborn_one_does_not_hear_the_polite_word(tmp_path: Path) -> None:
    answer = said("answer", id="ask-1", verdict="allow", replies=[["still here"]])
    prompt = said("prompt", text="stubborn, ask text")
    code, lines = await talk(tmp_path, [prompt, said("interrupt") + b"\n" + answer], wait=3)
    assert code == 0
    assert "still here" in lines[-1]["answer"]


@pytest.mark.parametrize("argv", [[], ["--threads"], ["--threads=x", "--wrong"], ["hello"]])
async def test_wrong_arguments_are_named(tmp_path: Path, argv: list[str]) -> None:
    with trio.fail_after(60):
        done = await trio.run_process(
            [sys.executable, "-I", "-S", PROGRAM, *argv],
            cwd=tmp_path,
            capture_stderr=True,
            check=False,
        )
    assert done.returncode == 2
    assert re.fullmatch(rb"demo: .*--threads.*\n", done.stderr)


async def test_stdin_that_ends_before_an_answer_is_an_error(tmp_path: Path) -> None:
    code, lines = await talk(tmp_path, [said("prompt", text="ask question")], hang_up=True)
    assert (code, [line["type"] for line in lines]) == (1, ["thread", "ask"])


async def test_lines_on_stdin_that_mean_nothing_are_passed_over(tmp_path: Path) -> None:
    answer = said("answer", id="ask-1", verdict="deny", reason=7, replies="x")
    sent = [b"x", b"[]", said("answer"), said("prompt", text="ask text"), said("answer"), answer]
    code, lines = await talk(tmp_path, sent)
    assert code == 0
    assert lines[-1]["answer"] == "You did not answer: 7"


def test_thread_and_result_count_once() -> None:
    dialect = DemoDialect(EngineJob("", Path("/")))
    lines = [said("thread", id="one"), said("thread", id="two"), said("unheard-of")]
    lines += [said("result", ok=True, answer="first"), said("result", ok=False, error="second")]
    heard = [type(event) for line in lines for event in dialect.read(line)]
    assert heard == [Started, Finished]
    completed = dialect.end(0, "")
    assert completed.resume == ResumeToken(DEMO, "one")
    assert (completed.ok, completed.answer) == (True, "first")


RECORDED = {
    path.stem: [cast("dict[str, Any]", json.loads(line)) for line in path.read_bytes().splitlines()]
    for path in sample_paths("demo")
    if not path.with_name(path.name + ".cmd").exists()
}
"""Every recording but those that resume a thread, which is not there any more."""


@pytest.mark.parametrize("name", RECORDED)
async def test_program_still_says_what_was_recorded(tmp_path: Path, name: str) -> None:
    entries = RECORDED[name]
    heard = [entry for entry in entries if entry["_dir"] == "<stdout"]
    sent = [bare(entry) for entry in entries if entry["_dir"] == ">stdin"]
    wait = 1 if sent[-1]["type"] == "interrupt" else 0
    code, lines = await talk(tmp_path, [json.dumps(line).encode() for line in sent], wait=wait)
    assert code == entries[-1]["rc"]
    recorded = [bare(entry) for entry in heard]
    for line in (*lines, *recorded):
        if line["type"] == "thread":
            line["id"] = "any"
    assert lines == recorded


def bare(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key not in {"_dir", "_t"}}


def said(kind: str, **fields: object) -> bytes:
    return json.dumps({"type": kind, **fields}).encode()


async def talk(
    tmp_path: Path, sent: list[bytes], *, wait: int = 0, hang_up: bool = False
) -> tuple[int | None, list[dict[str, Any]]]:
    """What the program says to these lines; the last waits until it has said `wait` lines."""
    folder = tmp_path / "project"
    folder.mkdir(exist_ok=True)
    heard = bytearray()
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            start = partial(
                trio.run_process,
                [sys.executable, "-I", "-S", str(PROGRAM), f"--threads={tmp_path / 'threads'}"],
                stdin=PIPE,
                stdout=PIPE,
                capture_stderr=True,
                check=False,
                cwd=folder,
            )
            process = cast("trio.Process", await nursery.start(start))
            assert process.stdin is not None
            assert process.stdout is not None
            later = sent[-1:] if wait else []
            for line in sent[: len(sent) - len(later)]:
                await process.stdin.send_all(line + b"\n")
            while later and heard.count(b"\n") < wait:
                heard += await process.stdout.receive_some()
            for line in later:
                await process.stdin.send_all(line + b"\n")
            if hang_up:
                await process.stdin.aclose()
            async for chunk in process.stdout:
                heard += chunk
            await process.stdin.aclose()
    return process.returncode, [json.loads(line) for line in heard.splitlines()]
