"""What the scripted model does with each CLI, case by case, in that CLI's own tools."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.model.script import Call, Fail, Hang, Recall, Rule, Say, Script

# opencode has every thread named by the model.
NAMES_THREAD = Rule(".", Say("A thread"), system="You are a title generator")


@dataclass(frozen=True, slots=True)
class Case:
    """A prompt, what the model does when it reads it, and the answer that must come of it."""

    prompt: str
    rules: tuple[Rule, ...]
    answer: str


def script_of(*cases: Case) -> Script:
    return (NAMES_THREAD, *(rule for case in cases for rule in case.rules))


def run_command(engine: str, command: str) -> Call:
    """A call of the engine's shell tool."""
    match engine:
        case "claude":
            arguments = {"command": command, "description": "Run a command"}
            return Call("Bash", arguments, text="I will run a command.")
        case "codex":
            return Call("exec_command", {"cmd": command}, text="I will run a command.")
        case "opencode":
            arguments = {"command": command, "description": "Run a command"}
            return Call("bash", arguments, text="I will run a command.")
        case _:
            return Call("bash", {"command": command}, text="I will run a command.")


def write_file(engine: str, path: Path, content: str) -> Call:
    """A call of the engine's tool for files. `content` is one line."""
    match engine:
        case "claude":
            return Call("Write", {"file_path": str(path), "content": content})
        case "codex":
            patch = f"*** Begin Patch\n*** Add File: {path}\n+{content}\n*** End Patch\n"
            return Call("apply_patch", patch)
        case "opencode":
            return Call("write", {"filePath": str(path), "content": content})
        case _:
            return Call("write", {"path": str(path), "content": content})


PLAIN = Case(
    prompt="PLAIN: greet me",
    rules=(Rule("PLAIN", Say("Hello from the scripted model."), role="user"),),
    answer="Hello from the scripted model.",
)

SLOW = Case(
    prompt="SLOW: greet me at your leisure",
    rules=(Rule("SLOW", Say("One word after another.", pause_s=0.05), role="user"),),
    answer="One word after another.",
)

REMEMBER = Case(
    prompt="REMEMBER: the code word is kelp-7261",
    rules=(Rule("REMEMBER", Say("I will keep it in mind."), role="user"),),
    answer="I will keep it in mind.",
)

# The prompt does not have the word: it can only come from the thread that REMEMBER began.
RECALL = Case(
    prompt="RECALL: which code word did I give you?",
    rules=(Rule("RECALL", Recall(r"code word is (\S+)", "It was {}.", role="user"), role="user"),),
    answer="It was kelp-7261.",
)

API_ERROR = Case(
    prompt="REFUSED: ask for too much",
    rules=(Rule("REFUSED", Fail(400, "the scripted model refuses this"), role="user"),),
    answer="",
)

FLAKY = Case(
    prompt="FLAKY: try until it works",
    rules=(
        Rule("FLAKY", Fail(500, "the scripted model stumbled"), role="user", times=1),
        Rule("FLAKY", Say("It works now."), role="user"),
    ),
    answer="It works now.",
)

HANG = Case(
    prompt="HANG: take forever",
    rules=(Rule("HANG", Hang("Let me think"), role="user"),),
    answer="",
)


def command(engine: str) -> Case:
    """A command whose output is nowhere in the prompt or the call: only a shell can make it."""
    return Case(
        prompt="COMMAND: run it and tell me what it said",
        rules=(
            Rule("COMMAND", run_command(engine, "echo tako-$((40 + 2))"), role="user"),
            Rule(r"tako-\d+", Recall(r"(tako-\d+)", "It said {}.", role="tool"), role="tool"),
        ),
        answer="It said tako-42.",
    )


def failing_command(engine: str) -> Case:
    return Case(
        prompt="FAILING: run it and tell me what it said",
        rules=(
            Rule("FAILING", run_command(engine, "echo no-luck; exit 3"), role="user"),
            Rule("no-luck", Say("It failed."), role="tool"),
        ),
        answer="It failed.",
    )


def write(engine: str, path: Path) -> Case:
    """`path` gets the one line `eight arms`."""
    return Case(
        prompt="WRITE: put it into a file",
        rules=(
            Rule("WRITE", write_file(engine, path, "eight arms"), role="user"),
            Rule(".", Say("The tool has answered."), role="tool"),
        ),
        answer="The tool has answered.",
    )


def write_twice(engine: str, first: Path, second: Path) -> Case:
    """Two files, one after the other: an approval for the thread covers the second."""
    return Case(
        prompt="WRITE TWICE: put it into two files",
        rules=(
            Rule("WRITE TWICE", write_file(engine, first, "eight arms"), role="user"),
            Rule(".", write_file(engine, second, "three hearts"), role="tool", times=1),
            Rule(".", Say("Both tools have answered."), role="tool"),
        ),
        answer="Both tools have answered.",
    )


# claude alone asks a person.

QUESTION = "Which sea?"

ASK = Case(
    prompt="ASK: find out which sea I mean",
    rules=(
        Rule(
            "ASK",
            Call(
                "AskUserQuestion",
                {
                    "questions": [
                        {
                            "question": QUESTION,
                            "header": "Sea",
                            "multiSelect": False,
                            "options": [
                                {"label": "Aegean", "description": "The warm one"},
                                {"label": "Baltic", "description": "The cold one"},
                            ],
                        }
                    ]
                },
            ),
            role="user",
        ),
        Rule(
            ".",
            Recall(r"(Aegean|Baltic)", "You chose {}.", "You chose nothing.", role="tool"),
            role="tool",
        ),
    ),
    answer="You chose Baltic.",
)

EXIT_PLAN_MODE = Call("ExitPlanMode", {}, kept_back=True)

_AFTER_PLAN = (
    Rule("(?i)user has approved", Say("I may begin."), role="tool"),
    Rule(".", Say("I will think again."), role="tool"),
)

# In plan mode claude names a file for the plan, and shows what the model has put there.
PLAN = Case(
    prompt="PROPOSE: a plan, please",
    rules=(
        Rule(
            "PROPOSE",
            Call(
                "Write",
                {
                    "file_path": Recall(r"(/\S+/plans/\S+\.md)", role="system"),
                    "content": "1. Swim.\n2. Rest.\n",
                },
            ),
            role="user",
        ),
        Rule("File created", EXIT_PLAN_MODE, role="tool", times=1),
        *_AFTER_PLAN,
    ),
    answer="I may begin.",
)

PLAN_UNWRITTEN = Case(
    prompt="PROPOSE: a plan, please",
    rules=(Rule("PROPOSE", EXIT_PLAN_MODE, role="user"), *_AFTER_PLAN),
    answer="I may begin.",
)
