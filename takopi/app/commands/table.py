"""The commands of the chat by name: what the menu, the help and the config's rules are made of."""

from __future__ import annotations

DESCRIPTIONS: dict[str, str] = {
    "help": "what can be typed",
    "status": "how takopi is",
    "plan": "ask what is unclear about a task, then start it",
    "session": "work in turns: a plan, your approval, a report",
    "preview": "show what a message would be sent as",
    "runs": "the last runs",
    "cancel": "stop a run; as a reply, that one",
    "new": "begin a new conversation here",
    "ctx": "show, set or clear the project of this chat",
    "topic": "make a topic for a project and a branch",
    "agent": "choose the engine of this chat",
    "model": "choose the model of this chat",
    "trigger": "in groups: answer all messages, or only those to me",
    "worktrees": "list the worktrees of a project",
    "file": "send a file of the project, as in /file get PATH",
    "draft": "put messages together before they run",
    "attach": "send the prompts of this chat to a tmux window",
    "detach": "send them there no more",
    "screen": "show that window",
}
"""In the order in which they are shown."""

HIDDEN = frozenset({"start"})
"""Commands that a chat sends by itself."""

NAMES = frozenset(DESCRIPTIONS) | HIDDEN
