"""What the scripted model does with each CLI, case by case, in that CLI's own tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.model.script import Call, Fail, Hang, Recall, Rule, Say, Script

# opencode has every thread named by the model.
NAMES_THREAD = Rule(".", Say("A thread"), system="You are a title generator")


@dataclass(frozen=True, slots=True)
class Traits:
    """In what one CLI differs from the others. `table` is its table in the config for a free hand.

    `other_model` is a name for the config, and what the model's API is then asked for.
    `shows_steps_begin`, `shows_retries`: what its lines tell while it works. `goes_anywhere`:
    a thread can be resumed in another folder. `tells_share`: of a resumed thread, what this run
    used. `names_model`: which model it uses, if nobody chose one. `knows_models`: it refuses a
    model that it does not know, without asking the API.
    """

    unknown_thread: str
    other_model: tuple[str, str]
    table: Mapping[str, object] = field(default_factory=dict[str, object])
    shows_steps_begin: bool = True
    shows_retries: bool = True
    goes_anywhere: bool = True
    tells_share: bool = True
    names_model: bool = True
    knows_models: bool = False


TRAITS: Mapping[str, Traits] = {
    "claude": Traits(
        unknown_thread="00000000-0000-4000-8000-000000000000",
        other_model=("claude-sonnet-4-5", "claude-sonnet-4-5"),
        table={"allowed_tools": ("Bash", "Write")},
    ),
    "codex": Traits(
        unknown_thread="00000000-0000-7000-8000-000000000000",
        other_model=("gpt-5.5", "gpt-5.5"),
        tells_share=False,
        names_model=False,
    ),
    "opencode": Traits(
        unknown_thread="ses_doesnotexist00000000000000",
        other_model=("scripted/other", "other"),
        shows_steps_begin=False,
        shows_retries=False,
        goes_anywhere=False,
        names_model=False,
        knows_models=True,
    ),
    "pi": Traits(
        unknown_thread="00000000-0000-7000-8000-000000000000",
        other_model=("scripted/other", "other"),
        goes_anywhere=False,
        knows_models=True,
    ),
}


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

BROKEN = Case(
    prompt="BROKEN: try until you give up",
    rules=(Rule("BROKEN", Fail(500, "the scripted model is ill"), role="user"),),
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


def where(engine: str) -> Case:
    """The folder that commands run in; its name is the answer."""
    return Case(
        prompt="WHERE: do your commands run?",
        rules=(
            Rule("WHERE", run_command(engine, "echo in:$(pwd):"), role="user"),
            Rule("in:", Recall(r"in:(/[^:]+):", "{}", role="tool"), role="tool"),
        ),
        answer="",
    )


def endless_command(engine: str, seconds: str) -> Case:
    """A command that outlasts every test; `seconds` marks its process."""
    return Case(
        prompt="ENDLESS: run it and wait",
        # claude refuses a plain sleep.
        rules=(
            Rule(
                "ENDLESS", run_command(engine, f"timeout {seconds} tail -f /dev/null"), role="user"
            ),
            # A CLI that outlives its command by a moment still tells the model of its end.
            Rule("", Hang("It was stopped"), role="tool"),
        ),
        answer="",
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

ECHO = Rule(".", Recall(r"(?s)(.+)", "The tool said: {}", role="tool"), role="tool")


def command_twice(first: str, second: str) -> Case:
    """Two commands of claude, one after the other; the answer is what the second came to."""
    return Case(
        prompt="TWICE: run two commands",
        rules=(
            Rule("TWICE", run_command("claude", first), role="user"),
            Rule(".", run_command("claude", second), role="tool", times=1),
            ECHO,
        ),
        answer="",
    )


def ask(*, several: bool = False) -> Case:
    """One question of two choices; the answer is what claude made of the person's."""
    question = {
        "question": "Which sea?",
        "header": "Sea",
        "multiSelect": several,
        "options": [
            {"label": "Aegean", "description": "The warm one"},
            {"label": "Baltic", "description": "The cold one"},
        ],
    }
    return Case(
        prompt="ASK: find out which sea I mean",
        rules=(Rule("ASK", Call("AskUserQuestion", {"questions": [question]}), role="user"), ECHO),
        answer="",
    )


EXIT_PLAN_MODE = Call("ExitPlanMode", {}, kept_back=True)

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
        ECHO,
    ),
    answer="",
)

PLAN_UNWRITTEN = Case(
    prompt="PROPOSE: a plan, please",
    rules=(Rule("PROPOSE", EXIT_PLAN_MODE, role="user"), ECHO),
    answer="",
)
