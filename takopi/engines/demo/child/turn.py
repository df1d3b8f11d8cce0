"""One turn of the demo engine: what it was asked, what it has said so far, and how it ends."""

from __future__ import annotations

from takopi.engines.demo.child.memory import Memory
from takopi.engines.demo.child.wire import Wire


class Failed(Exception):
    """The turn ends with this error."""


class Turn:
    """What every word works with.

    `say` adds a paragraph to the answer. Where anything is said verbatim, that alone is the answer.
    """

    def __init__(self, wire: Wire, memory: Memory, *, prompt: str, system: str) -> None:
        self.wire = wire
        self.memory = memory
        self.prompt = prompt
        self.system = system
        self.must_ask = False
        self.tool_calls: list[str] = []
        self._paragraphs: list[str] = []
        self._verbatim: list[str] = []
        self._steps = 0
        self._asks = 0

    def say(self, paragraph: str) -> None:
        """Add to the answer."""
        self._paragraphs.append(paragraph)

    def say_verbatim(self, text: str) -> None:
        """Answer with this and nothing around it."""
        self._verbatim.append(text)

    def answer(self) -> str:
        """The answer as it stands."""
        verbatim = list(self._verbatim)
        if self.tool_calls:
            verbatim.append(f'{{"tool_calls": [{", ".join(self.tool_calls)}]}}')
        return "\n\n".join(verbatim or self._paragraphs)

    def begin(self, kind: str, title: str) -> StepInHand:
        """Begin a step that others can see."""
        self._steps += 1
        step = StepInHand(self.wire, f"step-{self._steps}", kind, title)
        step.show("started")
        return step

    def do(self, kind: str, title: str, *, ok: bool | None = True, detail: str = "") -> None:
        """Take a step that is over at once."""
        self._steps += 1
        step = StepInHand(self.wire, f"step-{self._steps}", kind, title)
        step.show("completed", ok=ok, detail=detail)

    def next_ask_id(self) -> str:
        """A name for an ask, unlike any other of this turn."""
        self._asks += 1
        return f"ask-{self._asks}"


class StepInHand:
    """A step that has begun."""

    __slots__ = ("_id", "_kind", "_title", "_wire")

    def __init__(self, wire: Wire, step_id: str, kind: str, title: str) -> None:
        self._wire = wire
        self._id = step_id
        self._kind = kind
        self._title = title

    def update(self, detail: str) -> None:
        """Show how far it is."""
        self.show("updated", detail=detail)

    def end(self, *, ok: bool, detail: str = "") -> None:
        """Show how it ended."""
        self.show("completed", ok=ok, detail=detail)

    def show(self, phase: str, *, ok: bool | None = None, detail: str = "") -> None:
        """Say the line of this step."""
        self._wire.say(
            "step",
            id=self._id,
            kind=self._kind,
            title=self._title,
            phase=phase,
            ok=ok,
            detail=detail,
        )
