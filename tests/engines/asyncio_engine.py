"""A plugin engine as somebody who writes for asyncio would write it; nothing of Trio is in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from takopi.api import (
    Action,
    AnswerPort,
    Ask,
    Completed,
    EngineId,
    EngineJob,
    EnginePlugin,
    EngineSettings,
    Event,
    Question,
    ResumeToken,
    Started,
)

ECHO = EngineId("echo")


class EchoSettings(EngineSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[echo]` in the config."""

    greeting: str = "echo"


class EchoEngine:
    """Repeats the prompt, word by word; words of its own make it ask, wait or fail."""

    def __init__(self, settings: EchoSettings) -> None:
        self.id = ECHO
        self.greeting = settings.greeting
        self.cancelled = 0

    def resume_line(self, token: ResumeToken) -> str:
        return f"echo --again {token.value}"

    def parse_resume(self, text: str) -> ResumeToken | None:
        before, found, value = text.rpartition("echo --again ")
        del before
        return ResumeToken(ECHO, value.split()[0]) if found and value.split() else None

    async def run(
        self, job: EngineJob, emit: Callable[[Event], None], answers: AnswerPort
    ) -> Completed:
        token = job.resume or ResumeToken(ECHO, "e-1")
        emit(Started(token))
        emit(Started(token))  # a plugin may get this wrong
        words: asyncio.Queue[str] = asyncio.Queue()
        for word in job.prompt.split():
            words.put_nowait(word)
        try:
            said = await self._echo(words, emit, answers)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return Completed(ok=True, answer=f"{self.greeting}: {said}", resume=token)

    async def _echo(
        self, words: asyncio.Queue[str], emit: Callable[[Event], None], answers: AnswerPort
    ) -> str:
        said: list[str] = []
        while not words.empty():
            word = await asyncio.wait_for(words.get(), timeout=60)
            if word == "hang":
                emit(Action("hang", "note", "waiting", "started"))
                await asyncio.Event().wait()
            if word == "fail":
                raise RuntimeError("it broke")
            if word == "ask":
                ask = Ask("q", "question", questions=(Question("which?"),))
                answer = await answers.ask(ask)
                word = answer.replies[0][0]
            emit(Action(f"w{len(said)}", "note", word))
            said.append(word)
            await asyncio.sleep(0)
        return " ".join(said)


PLUGIN = EnginePlugin(ECHO, EchoEngine, EchoSettings, flavor="asyncio", asks=True)
