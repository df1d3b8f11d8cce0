"""One turn of the demo engine from its arguments to its exit code, with one result or none."""

from __future__ import annotations

from takopi.engines.demo.child.deeds import follow
from takopi.engines.demo.child.memory import Memory, NoSuchThread, load_memory, new_memory
from takopi.engines.demo.child.said import what_was_said
from takopi.engines.demo.child.turn import Failed, Turn
from takopi.engines.demo.child.wire import STDERR, STDOUT, HungUp, Interrupted, Wire, write_all
from takopi.engines.demo.child.words import Step, read_words, seconds

VERSION = "demo 1.0"
MODEL = "demo-1"
DONE, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130
OPTIONS = ("--threads", "--resume", "--model")


class Misused(Exception):
    """It was called in a way that it does not know."""


def main(argv: list[str]) -> int:
    """Run one turn, and give the exit code."""
    if argv == ["--version"]:
        write_all(STDOUT, f"{VERSION}\n".encode())
        return DONE
    wire = Wire()
    try:
        return run_turn(wire, read_options(argv))
    except Misused as error:
        write_all(STDERR, f"demo: {error}\n".encode("utf-8", "replace"))
        return MISUSED
    except Interrupted:
        return INTERRUPTED
    except HungUp:
        write_all(STDERR, b"demo: nobody is there to answer\n")
        return FAILED
    except BrokenPipeError:
        return FAILED


def run_turn(wire: Wire, options: dict[str, str]) -> int:
    """From the prompt to the result."""
    opening = wire.hear("prompt") or {}
    prompt, system = str(opening.get("text") or ""), str(opening.get("system") or "")
    steps = read_words(prompt)
    for step in steps:
        if step.name == "slow start":
            wire.pause(seconds(step.args[0]))
    try:
        memory = find_memory(options)
        if any(step.name == "nothread" for step in steps):
            memory.id = ""
        memory.begin_turn(what_was_said(prompt))
    except NoSuchThread as error:
        wire.say("error", code="no_thread", message=f"no such thread: {error}")
        return FAILED
    except OSError as error:
        wire.say("error", code="threads", message=f"cannot keep a thread: {error}")
        return FAILED
    if memory.id:
        wire.say("thread", id=memory.id, model=options.get("--model", MODEL))
    turn = Turn(wire, memory, prompt=prompt, system=system)
    failure = carry_out(turn, steps)
    wire.say("result", ok=not failure, answer=turn.answer(), error=failure, usage=used(turn))
    return FAILED if failure else DONE


def carry_out(turn: Turn, steps: list[Step]) -> str | None:
    """Follow the words; the reason, if that failed."""
    try:
        follow(turn, steps)
    except Failed as error:
        return str(error)
    return None


def find_memory(options: dict[str, str]) -> Memory:
    """The thread to resume, or a new one."""
    if thread_id := options.get("--resume"):
        return load_memory(options["--threads"], thread_id)
    return new_memory(options["--threads"])


def used(turn: Turn) -> dict[str, float]:
    """What this would have cost a model, at four characters a token, and at no price."""
    memory = turn.memory
    cached = tokens(memory.first + "".join(memory.notes)) if memory.turns > 1 else 0
    return {
        "input_tokens": tokens(turn.system) + tokens(turn.prompt) + cached,
        "output_tokens": tokens(turn.answer()),
        "cached_tokens": cached,
        "cost_usd": 0.0,
    }


def tokens(text: str) -> int:
    """About how many tokens a text is."""
    return (len(text) + 3) // 4


def read_options(argv: list[str]) -> dict[str, str]:
    """The options, as `--name value` or `--name=value`."""
    options: dict[str, str] = {}
    words = iter(argv)
    for word in words:
        name, equals, value = word.partition("=")
        if name not in OPTIONS:
            raise Misused(f"unknown argument {word}; there are {', '.join(OPTIONS)}")
        options[name] = value if equals else next(words, "")
        if not options[name]:
            raise Misused(f"{name} needs a value")
    if "--threads" not in options:
        raise Misused("--threads is needed: the folder where threads are kept")
    return options
