"""Every word the demo engine knows, in one table, and how a prompt is read by it.

A word counts where a clause begins: at the beginning of the prompt or of a line, after punctuation,
after `then`, `and`, `please` or `now`, or right after another word. Inside a code fence or a quote
none counts. What comes of a prompt is the list of its words, in order.
"""

from __future__ import annotations

import re

MAX_STEPS = 100
"""How many words of one prompt are followed; it bounds the work that a prompt can ask for."""

_PLACES = {
    "<number>": r"(\d{1,9})",
    "<time>": r"(\d{1,9}(?:\.\d{1,3})?\s*(?:ms|s|min))",
    "<size>": r"(\d{1,9}(?:\.\d{1,3})?\s*[kM]?B)",
    "<path>": r"(`[^`\n]+`|[^\s:`]+)",
    "<name>": r"([\w.:-]+)",
}
_TAILS = ("<text>", "<json>", "<verbatim>", "<rest>")
_OPENING_MARKS = "([{\"'“*_`"
_CLAUSE_ENDS = frozenset(".,;:!?)]}\"'”*_-—•")
_CONJUNCTIONS = frozenset({"then", "and", "please", "now"})
_LINKS = frozenset({"to", "for"})


class Word:
    """One word: how it is written, with its places and its tail, and what it does."""

    __slots__ = ("name", "tail", "usage", "what")

    def __init__(self, usage: str, what: str) -> None:
        self.usage = usage
        self.what = what
        self.name = usage.partition("<")[0].partition("[")[0].rstrip(" :")
        self.tail = next((tail for tail in _TAILS if usage.endswith(tail)), "")

    def head(self) -> re.Pattern[str]:
        """What is written before the tail. Compiled on demand: most prompts hold few words."""
        head = self.usage.removesuffix(self.tail).rstrip()
        end = "" if head.endswith(":") else r"(?![\w-])"
        head = head.replace(":", r"\s*:").replace(" [", r"(?:\s+").replace("]", ")?")
        head = head.replace(" ", r"\s+")
        for place, pattern in _PLACES.items():
            head = head.replace(place, pattern)
        return re.compile(head + end, re.IGNORECASE)


class Step:  # ruff: ignore[class-as-data-structure] dataclasses are too heavy to import here
    """One word as it stands in a prompt: its places in order, the tail last."""

    __slots__ = ("args", "name")

    def __init__(self, name: str, args: tuple[str, ...]) -> None:
        self.name = name
        self.args = args


WORDS = (
    Word("help", "Lists every word."),
    Word("write <path>: <text>", "Writes a file inside its folder."),
    Word("append <path>: <text>", "Adds lines to the end of a file inside its folder."),
    Word("run <text>", "Runs a program, without a shell, and shows what it prints."),
    Word("remember <text>", "Keeps a note in the thread."),
    Word("what do you remember", "Tells the notes of the thread, and how it began."),
    Word("what did I ask first", "Repeats the first prompt of the thread."),
    Word("show system", "Answers with the system text that came with the prompt."),
    Word("ask approval", "Asks before the `run`, `write` or `append` after it; alone, to write."),
    Word("ask question", "Asks one question with three choices."),
    Word("ask several", "Asks one question where several choices may be taken."),
    Word("ask two", "Asks two questions at once."),
    Word("ask text", "Asks for a text."),
    Word("ask briefly <time>", "Asks a question and takes it back after that time."),
    Word("propose plan", "Shows a plan for approval; a revision is worked in and asked again."),
    Word("say: <rest>", "Answers with all the rest of the prompt, to the letter."),
    Word("signal <verbatim>", "Answers with JSON, a `code span` or a fence, to the letter."),
    Word("tool call <name> <json>", "Answers with a call of that tool; several become one list."),
    Word("tool rounds <number> <name> <json>", "Calls that tool, and again after each result."),
    Word("markdown", "Answers with one of everything that markdown has."),
    Word("long answer <number>", "Answers with at least that many characters."),
    Word("fake footer", "Answers with a context and resume line of somebody else."),
    Word("think <time>", "Is silent for that time."),
    Word("sleep <time>", "Is silent for that time."),
    Word("slow start <time>", "Is silent for that time before its first line."),
    Word("steps <number> [every <time>]", "Takes that many steps, one after the other."),
    Word("sample steps", "Takes one step of every kind."),
    Word("flood <number>", "Takes that many steps as fast as it can."),
    Word("fail: <text>", "Ends with that error."),
    Word("rate limit", "Warns of a limit with the time of its reset, and ends with that error."),
    Word("crash", "Ends with code 3, words on stderr and no result."),
    Word("hang", "Does nothing until it is stopped."),
    Word("stubborn", "Ignores SIGTERM and the polite word from here on."),
    Word("fork", "Leaves three processes behind that ignore SIGTERM."),
    Word("noise [<size>]", "Writes to stderr."),
    Word("garbage", "Writes lines to stdout that are not of its language."),
    Word("big line <size>", "Writes one line of that size to stdout."),
    Word("nothread", "Never says which thread it is in, and keeps none."),
)


def read_words(prompt: str) -> list[Step]:
    """The words of a prompt, in order."""
    return _Reader(prompt).read()


def seconds(time: str) -> float:
    """`100ms`, `3s` or `2min` in seconds."""
    number = float(time.rstrip("mins "))
    return number / 1000 if time.endswith("ms") else number * 60 if time.endswith("n") else number


def size_bytes(size: str) -> int:
    """`500B`, `64kB` or `20MB` in bytes."""
    factor = {"kb": 1000, "mb": 1_000_000}.get(size[-2:].lower(), 1)
    return int(float(size.rstrip("kKmMbB ")) * factor)


class _Reader:
    def __init__(self, prompt: str) -> None:
        self.prompt = prompt
        self.fence = _fence_pattern(prompt)
        self.masked = _mask(prompt, self.fence)
        lowered = self.masked.lower()
        # Only what can be there is compiled: that is most of what a start would cost.
        present = [word for word in WORDS if word.name.split()[0].lower() in lowered]
        self.heads = [(word, word.head()) for word in present]

    def read(self) -> list[Step]:
        steps: list[Step] = []
        at = 0
        while len(steps) < MAX_STEPS and (found := self.next_step(at, is_first=not steps)):
            step, at = found
            steps.append(step)
        return steps

    def next_step(self, at: int, *, is_first: bool) -> tuple[Step, int] | None:
        best: tuple[Step, int] | None = None
        best_start = len(self.prompt)
        for word, head in self.heads:
            for match in head.finditer(self.masked, at):
                if match.start() >= best_start:
                    break
                if not _begins_clause(self.masked, match.start(), after=at, is_first=is_first):
                    continue
                places = tuple(place.strip("`") for place in match.groups() if place)
                if not word.tail:
                    best, best_start = (Step(word.name, places), match.end()), match.start()
                elif tail := self.read_tail(word.tail, match.end()):
                    value, end = tail
                    best, best_start = (Step(word.name, (*places, value)), end), match.start()
                else:
                    continue
                break
        return best

    def read_tail(self, kind: str, at: int) -> tuple[str, int] | None:
        """The tail that begins at `at` and its end, or None where there is no such tail."""
        at = self.skip(" \t", at)
        if kind == "<rest>":
            rest = self.prompt[at:].strip()
            return (rest, len(self.prompt)) if rest else None
        if kind == "<json>":
            return self.read_json(at)
        fence = self.fence.match(self.prompt, self.skip(" \t\r\n", at)) if self.fence else None
        if kind == "<verbatim>":
            if fence:
                return fence[0], fence.end()
            return self.read_span(at) or self.read_json(at)
        if fence:
            return fence["body"], fence.end()
        return self.read_span(at) or self.read_line(at)

    def read_json(self, at: int) -> tuple[str, int] | None:
        import json

        try:
            _, end = json.JSONDecoder().raw_decode(self.prompt, at)
        except (ValueError, RecursionError):
            return None
        return self.prompt[at:end], end

    def read_span(self, at: int) -> tuple[str, int] | None:
        line_end = self.line_end(at)
        close = self.prompt.find("`", at + 1, line_end)
        if self.prompt[at : at + 1] != "`" or close <= at + 1:
            return None
        return self.prompt[at + 1 : close], close + 1

    def read_line(self, at: int) -> tuple[str, int] | None:
        end = self.line_end(at)
        for then in re.finditer(r"\sthen\s+", self.masked[at:end], re.IGNORECASE):
            if any(head.match(self.masked, at + then.end()) for _, head in self.heads):
                end = at + then.start()
                return (self.prompt[at:end].rstrip(" ,"), end) if end > at else None
        line = self.prompt[at:end].strip()
        return (line, end) if line else None

    def skip(self, blanks: str, at: int) -> int:
        while at < len(self.prompt) and self.prompt[at] in blanks:
            at += 1
        return at

    def line_end(self, at: int) -> int:
        end = self.prompt.find("\n", at)
        return len(self.prompt) if end < 0 else end


def _fence_pattern(prompt: str) -> re.Pattern[str] | None:
    if "```" not in prompt and "~~~" not in prompt:
        return None
    # A fence that is never closed goes to the end.
    opening = r"(?P<mark>`{3,}|~{3,})[^\n`]*\n"
    return re.compile(rf"(?ms){opening}(?P<body>.*?)(?:^[ \t]*(?P=mark)[`~]*[ \t]*$|\Z)")


def _mask(prompt: str, fence: re.Pattern[str] | None) -> str:
    """`prompt` with blanks for what is quoted in it, so that all else keeps its place."""
    masked = fence.sub(_blank, prompt) if fence else prompt
    return re.sub(r"(?m)^[ \t]*>[^\n]*", _blank, masked) if ">" in masked else masked


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _begins_clause(text: str, index: int, *, after: int, is_first: bool) -> bool:
    if index > 0 and not (text[index - 1].isspace() or text[index - 1] in _OPENING_MARKS):
        return False
    before = text[max(after, index - 16) : index].rstrip(_OPENING_MARKS)
    gap = before.rstrip()
    if not gap or gap[-1] in _CLAUSE_ENDS or "\n" in before[len(gap) :]:
        return True
    if not is_first and index - after < 16 and gap.strip().lower() in _LINKS:
        return True
    return gap.split()[-1].lower() in _CONJUNCTIONS
