"""What each word does: the other half of the table of words."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

from takopi.engines.demo.child import asks, faults, texts
from takopi.engines.demo.child.files import NotAllowed, change_file
from takopi.engines.demo.child.memory import quote
from takopi.engines.demo.child.turn import Failed, StepInHand, Turn
from takopi.engines.demo.child.where import branch_name, folder_name
from takopi.engines.demo.child.words import WORDS, Step, seconds

MAX_STEPS = 10_000
MAX_ANSWER_CHARS = 1_000_000
OUTPUT_BYTES = 4000
MAX_UPDATES = 20
ALONE = Step("write", ("approved.txt", "You approved this."))
"""What `ask approval` asks for when nothing follows it."""


def follow(turn: Turn, steps: list[Step]) -> None:
    """Do what the words of the prompt say, in order; without any, give a friendly answer."""
    if steps and turn.memory.rounds:
        turn.memory.owe(0, "")
    if not steps and not call_again(turn):
        greet(turn)
    for index, step in enumerate(steps):
        if step.name == "ask approval":
            turn.must_ask = True
            if steps[index + 1 : index + 2] and steps[index + 1].name in GUARDED:
                continue
            step = ALONE  # ruff: ignore[redefined-loop-name] it stands for what was not said
        DEEDS[step.name](turn, step)


def greet(turn: Turn) -> None:
    """Say that it was understood, where this is, and what can be said next."""
    branch = branch_name()
    where = f"`{folder_name()}`" + (f" on branch `{branch}`" if branch else "")
    memory = turn.memory
    turn.say(f"You said: “{memory.last}”")
    turn.say(f"I am the demo engine, at work in {where}.")
    if memory.turns > 1:
        said = f"before that you said: “{memory.before}”"
        turn.say(f"This is turn {memory.turns} of this conversation; {said}")
    turn.say(
        "Try `write hello.txt: hi`, `run ls`, `ask approval`, `ask question`, `propose plan` or"
        " `steps 5 every 500ms`, alone or with `then` between them. `help` lists every word."
    )


def give_help(turn: Turn, _step: Step) -> None:
    turn.say("I am the demo engine. Say one of these, or several with `then` between them:")
    turn.say("\n".join(f"- `{word.usage}`: {word.what}" for word in WORDS))


def write(turn: Turn, step: Step) -> None:
    path, text = step.args
    append = step.name == "append"
    hand = turn.begin("file_change", f"{step.name} {path}")
    preview = "\n".join(f"+{line}" for line in text.splitlines())
    if not _permitted(turn, hand, step.name, target=path, preview=preview):
        return
    try:
        change_file(path, text.rstrip("\n") + "\n", append=append)
    except (NotAllowed, OSError) as error:
        reason = _explain(error)
        hand.end(ok=False, detail=reason)
        turn.say(f"I cannot {step.name} `{path}`: {reason}.")
        return
    hand.end(ok=True, detail=preview)
    turn.say(f"I {'added to' if append else 'wrote'} `{path}`.")


def run(turn: Turn, step: Step) -> None:
    import shlex

    command = step.args[0]
    hand = turn.begin("command", command)
    if not _permitted(turn, hand, "run", target=command, preview=command):
        return
    try:
        argv = [word.encode("utf-8", "replace") for word in shlex.split(command)]
        code, output = _run(turn, hand, argv)
    except (OSError, ValueError) as error:
        reason = _explain(error)
        hand.end(ok=False, detail=reason)
        turn.say(f"I cannot run `{command}`: {reason}.")
        return
    hand.end(ok=code == 0, detail=output)
    turn.say(f"`{command}` ended with {code}" + (":" if output else "."))
    if output:
        turn.say(texts.fenced(output))


def remember(turn: Turn, step: Step) -> None:
    turn.memory.note(step.args[0])
    turn.say(f"I will remember: {quote(step.args[0])}")


def recall(turn: Turn, _step: Step) -> None:
    notes = turn.memory.notes
    turn.say("I remember:" if notes else "You have not asked me to remember anything.")
    if notes:
        turn.say("\n".join(f"- {note}" for note in notes))
    if turn.memory.turns > 1:
        turn.say(f"This conversation began with: “{turn.memory.first}”")


def recall_first(turn: Turn, _step: Step) -> None:
    turn.say(f"You first asked: “{turn.memory.first}”")


def show_system(turn: Turn, _step: Step) -> None:
    turn.say(texts.fenced(turn.system) if turn.system else "There is no system text.")


def say_verbatim(turn: Turn, step: Step) -> None:
    turn.say_verbatim(step.args[0])


def call_tool(turn: Turn, step: Step) -> None:
    name, arguments = step.args
    turn.tool_calls.append(_call(name, arguments))


def call_in_rounds(turn: Turn, step: Step) -> None:
    rounds, name, arguments = step.args
    turn.memory.owe(int(rounds), _call(name, arguments))
    if not call_again(turn):
        turn.say("In no rounds there are no calls.")


def call_again(turn: Turn) -> bool:
    """Make the call that is owed, if there is one; False: there is not."""
    memory = turn.memory
    if memory.rounds <= 0:
        return False
    memory.owe(memory.rounds - 1, memory.call)
    turn.tool_calls.append(memory.call)
    return True


def say_markdown(turn: Turn, _step: Step) -> None:
    turn.say(texts.MARKDOWN)


def say_much(turn: Turn, step: Step) -> None:
    if (chars := int(step.args[0])) > MAX_ANSWER_CHARS:
        raise Failed(f"{chars} characters are too many; {MAX_ANSWER_CHARS} are the most")
    turn.say(texts.long_text(chars))


def say_fake_footer(turn: Turn, _step: Step) -> None:
    turn.say(texts.FAKE_FOOTER)


def think(turn: Turn, step: Step) -> None:
    turn.wire.pause(seconds(step.args[0]))
    turn.say(f"I was silent for {step.args[0]}.")


def take_steps(turn: Turn, step: Step) -> None:
    if (count := int(step.args[0])) > MAX_STEPS:
        raise Failed(f"{count} steps are too many; {MAX_STEPS} are the most")
    pause_s = seconds(step.args[1]) if len(step.args) > 1 else 0
    for number in range(1, count + 1):
        hand = turn.begin("tool", f"step {number} of {count}")
        turn.wire.pause(pause_s)
        hand.end(ok=True)
    turn.say(f"I took {count} steps.")


def take_sample_steps(turn: Turn, _step: Step) -> None:
    turn.do("note", "Let me see what there is")
    turn.do("command", "git status --short", detail=" M octopus.py")
    turn.do("command", "pytest -q", ok=False, detail="1 failed, 7 passed")
    turn.do("tool", "read octopus.py")
    turn.do("file_change", "edit octopus.py", detail="-arms = 7\n+arms = 8")
    turn.do("web_search", "how many arms has an octopus", ok=None)
    hand = turn.begin("subagent", "count the arms")
    hand.update("counting, 5 so far")
    hand.end(ok=True, detail="8 arms")
    turn.do("warning", "The sea is rough today", ok=None)
    turn.say("I took one step of every kind; nothing was changed.")


def tell_late_start(turn: Turn, step: Step) -> None:
    turn.say(f"I was silent for {step.args[0]} before my first line.")


def tell_no_thread(turn: Turn, _step: Step) -> None:
    turn.say("I did not say which thread this is, and will not remember it.")


GUARDED = frozenset({"write", "append", "run"})
DEEDS: dict[str, Callable[[Turn, Step], None]] = {
    "help": give_help,
    "write": write,
    "append": write,
    "run": run,
    "remember": remember,
    "what do you remember": recall,
    "what did I ask first": recall_first,
    "show system": show_system,
    "ask question": asks.ask_questions,
    "ask several": asks.ask_questions,
    "ask two": asks.ask_questions,
    "ask text": asks.ask_questions,
    "ask briefly": asks.ask_briefly,
    "propose plan": asks.propose_plan,
    "say": say_verbatim,
    "signal": say_verbatim,
    "tool call": call_tool,
    "tool rounds": call_in_rounds,
    "markdown": say_markdown,
    "long answer": say_much,
    "fake footer": say_fake_footer,
    "think": think,
    "sleep": think,
    "slow start": tell_late_start,
    "steps": take_steps,
    "sample steps": take_sample_steps,
    "flood": faults.flood,
    "fail": faults.fail,
    "rate limit": faults.limit_rate,
    "crash": faults.crash,
    "hang": faults.hang,
    "stubborn": faults.turn_stubborn,
    "fork": faults.fork,
    "noise": faults.make_noise,
    "garbage": faults.write_garbage,
    "big line": faults.write_big_line,
    "nothread": tell_no_thread,
}


def _call(name: str, arguments: str) -> str:
    return f'{{"name": {json.dumps(name)}, "arguments": {arguments}}}'


def _permitted(turn: Turn, hand: StepInHand, tool: str, *, target: str, preview: str) -> bool:
    allowed, reason = asks.may(turn, tool, target=target, preview=preview)
    if not allowed:
        hand.end(ok=False, detail=f"denied: {reason}" if reason else "denied")
        turn.say(f"I did not {tool} `{target}`, because you said no" + _because(reason))
    return allowed


def _because(reason: str) -> str:
    return f": {reason}" if reason else "."


def _run(turn: Turn, hand: StepInHand, argv: list[bytes]) -> tuple[int, str]:
    import subprocess

    read_end, write_end = os.pipe()
    try:
        try:
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=write_end, stderr=write_end
            )
        finally:
            os.close(write_end)
        try:
            output = _follow_output(turn, hand, read_end)
        except BaseException:
            process.kill()
            process.wait()
            raise
        return process.wait(), output
    finally:
        os.close(read_end)


def _follow_output(turn: Turn, hand: StepInHand, fd: int) -> str:
    output = bytearray()
    updates = 0
    while True:
        if not turn.wire.wait((fd,), None):
            continue
        if not (chunk := os.read(fd, 65536)):
            return _text(output)
        output += chunk
        del output[:-OUTPUT_BYTES]
        updates += 1
        if updates <= MAX_UPDATES:
            hand.update(_text(output))


def _explain(error: Exception) -> str:
    # Without the path, which the sentence around it names.
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def _text(output: bytearray) -> str:
    return output.decode("utf-8", "replace").rstrip()
