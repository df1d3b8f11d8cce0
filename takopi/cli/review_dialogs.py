"""The dialogs over the checklist: a text to look at, a line or a text to change, a question.

Each answers with None, or False, when it is left with Escape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Generic, TypeVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static, TextArea

T = TypeVar("T")


class Dialog(ModalScreen[T], Generic[T]):
    """A box in the middle of the terminal, as large as what is in it and never larger."""

    DEFAULT_CSS = """
    Dialog { align: center middle; }
    Dialog > Vertical {
        width: 90%; max-width: 110; height: auto; max-height: 95%;
        border: round $primary; background: $surface; padding: 0 1;
    }
    Dialog VerticalScroll { height: auto; max-height: 60vh; margin-bottom: 1; }
    Dialog TextArea { height: auto; min-height: 5; max-height: 60vh; }
    Dialog Static { height: auto; width: 1fr; }
    Dialog .fault { color: $error; }
    Dialog Horizontal { height: auto; }
    Dialog.-low > Vertical { border: none; max-height: 100%; }
    Dialog.-low VerticalScroll { max-height: 25vh; margin-bottom: 0; }
    Dialog.-low TextArea { min-height: 1; max-height: 40vh; }
    """


class Look(Dialog[bool]):
    """A text to look at; True if the person wants to change it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("e", "change", "edit"),
        ("c,escape,q,enter", "leave", "close"),
    ]

    def __init__(self, title: str, body: Text, *, may_change: bool) -> None:
        super().__init__()
        self._title, self._body, self._may_change = title, body, may_change

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Text(self._title, "bold"))
            with VerticalScroll():
                yield Static(self._body)
            yield Static(Text("(e)dit or (c)lose \u203a" if self._may_change else "(c)lose \u203a"))

    def action_change(self) -> None:
        if self._may_change:
            self.dismiss(True)

    def action_leave(self) -> None:
        self.dismiss(False)


class AskLine(Dialog[str | None]):
    """A line to change, taken with Enter; `fault` says what is wrong with one, None if nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape", "leave", "leave")]

    def __init__(
        self, message: Text, question: str, *, value: str, fault: Callable[[str], str | None]
    ) -> None:
        super().__init__()
        self._message, self._question, self._value, self._fault = message, question, value, fault

    def compose(self) -> ComposeResult:
        with Vertical():
            with VerticalScroll():
                yield Static(self._message)
            yield Static(Text(self._question))
            yield Input(self._value, select_on_focus=False, compact=True)
            yield Static(classes="fault", markup=False)

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        value = event.value.strip() or self._value
        if fault := self._fault(value):
            self.query_one(".fault", Static).update(fault)
        else:
            self.dismiss(value)

    def action_leave(self) -> None:
        self.dismiss(None)


class AskText(Dialog[str | None]):
    """A text of several lines to change."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape", "leave", "leave")]

    def __init__(self, value: str) -> None:
        super().__init__()
        self._value = value

    def compose(self) -> ComposeResult:
        with Vertical():
            yield TextArea(self._value)
            yield Static(Text("[tab] to the buttons, [esc] to leave it as it was"))
            with Horizontal():
                yield Button("Save", id="save", compact=True)
                yield Button("Discard", id="discard", compact=True)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        saved = event.button.id == "save"
        self.dismiss(self.query_one(TextArea).text if saved else None)

    def action_leave(self) -> None:
        self.dismiss(None)


class Finished(Dialog[bool]):
    """Waits until the person has saved what is open in the editor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("y", "finish", "yes"),
        ("n", "wait", "no"),
        ("escape", "leave", "leave"),
    ]

    def __init__(self, message: str, question: str) -> None:
        super().__init__()
        self._message, self._question = message, question

    def compose(self) -> ComposeResult:
        with Vertical():
            if self._message:
                yield Static(Text(f"{self._message}\n"))
            yield Static(Text(self._question))
            yield Static(markup=False, id="hint")

    def action_finish(self) -> None:
        self.dismiss(True)

    def action_wait(self) -> None:
        hint = "Save it, then press y. Esc leaves the action as it was."
        self.query_one("#hint", Static).update(hint)

    def action_leave(self) -> None:
        self.dismiss(False)
