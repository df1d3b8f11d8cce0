"""What a run has done so far, from its events: constant time for each, bounded memory for all."""

from __future__ import annotations

from takopi.core.events import Action, Event, Started
from takopi.core.outgoing import Text
from takopi.present.compose import code, join, plain
from takopi.present.wording import one_line

SHOWN_ACTIONS = 6
SHOWN_WARNINGS = 2
TITLE_CHARS = 80
DETAIL_CHARS = 80

# An action that is heard of again after this many others counts as a new one.
_REMEMBERED = 1024

_CODE_KINDS = frozenset({"command", "file_change", "tool"})


class Progress:
    """Reduces the events of one run to what its card shows.

    `steps` counts what the engine did; what it said and warned of is shown, but is no step.
    """

    __slots__ = ("_actions", "_seen", "_warnings", "changed_files", "model", "steps")

    def __init__(self) -> None:
        self.steps = 0
        self.changed_files = False
        self.model: str | None = None
        self._seen: dict[str, None] = {}
        self._actions: dict[str, Action] = {}
        self._warnings: dict[str, Action] = {}

    def add(self, event: Event) -> None:
        """Take in one event. The same action again replaces what was known of it."""
        if isinstance(event, Started):
            self.model = event.model or self.model
            return
        if event.kind == "warning":
            # One that ended well, like a call that was tried again, is none any more.
            if event.ok:
                self._warnings.pop(event.id, None)
            else:
                _keep(self._warnings, event, SHOWN_WARNINGS)
            return
        if event.id not in self._seen:
            self._seen[event.id] = None
            if len(self._seen) > _REMEMBERED:
                del self._seen[next(iter(self._seen))]
            self.steps += event.kind != "note"
        if event.kind == "file_change" and event.phase == "completed" and event.ok is not False:
            self.changed_files = True
        _keep(self._actions, event, SHOWN_ACTIONS)

    def lines(self) -> tuple[Text, ...]:
        """The last actions, the newest at the end, and below them what the engine warned of."""
        return tuple(map(_show, (*self._actions.values(), *self._warnings.values())))


def _keep(shown: dict[str, Action], action: Action, count: int) -> None:
    # An action that is shown stays in its place.
    shown[action.id] = action
    if len(shown) > count:
        del shown[next(iter(shown))]


def _show(action: Action) -> Text:
    title = one_line(action.title, TITLE_CHARS) or action.kind
    shown = code(title) if action.kind in _CODE_KINDS else plain(title)
    detail = ""
    if action.kind != "note" and (action.phase == "updated" or action.ok is False):
        # What a subagent does just now, or why something failed.
        detail = one_line(action.detail, DETAIL_CHARS)
    return join([_sign(action), shown, f": {detail}" if detail else ""])


def _sign(action: Action) -> str:
    if action.kind == "note":
        return ""
    if action.phase == "started":
        return "▸ "
    if action.phase == "updated":
        return "↻ "
    if action.ok is False:
        return "✗ "
    return "warning: " if action.kind == "warning" else "✓ "
