"""The half of a dialect that talks back, for CLIs that read a prompt to its end and ask nothing."""

from __future__ import annotations

from takopi.core.events import Answer, Ask
from takopi.core.ports import EngineJob


class OneWay:
    """stdin is closed after the opening: there are no answers and no polite interrupt."""

    two_way = False

    @staticmethod
    def answer(ask: Ask, answer: Answer) -> bytes:
        del ask, answer
        return b""

    @staticmethod
    def interrupt() -> bytes:
        return b""


def prompt_after_system(job: EngineJob) -> bytes:
    """The opening for a CLI that has no other place for the system text."""
    return "\n\n".join(text for text in (job.system, job.prompt) if text).encode()
