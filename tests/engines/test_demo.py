"""The demo engine keeps the contract of every engine: run as a real process, by the real pump."""

from __future__ import annotations

import json
import os
import signal
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import trio

from takopi.config.schema import EngineSettings
from takopi.core.events import Action, Answer, Ask, Completed, Event, Started
from takopi.core.ids import ResumeToken
from takopi.core.ports import EngineJob, EngineLimits
from takopi.engines.demo.child.words import WORDS
from takopi.engines.demo.spec import spec
from takopi.engines.demo.translate import DEMO
from takopi.engines.pump import CliEngine
from takopi.kit.proc import Keeper
from tests.kit.processes import MARK, alive, new_mark, until_alive

GRACE_S = 0.3


class Person:
    """Answers asks in turn, the last answer again and again; without one, nobody is there."""

    def __init__(self, *answers: Answer) -> None:
        self.asked: list[Ask] = []
        self.answers = [*answers]

    async def ask(self, ask: Ask) -> Answer:
        self.asked.append(ask)
        if not self.answers:
            await trio.sleep_forever()
        await trio.lowlevel.checkpoint()
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Bench:
    """A folder to work in, a folder for threads, and the engine between them."""

    def __init__(self, keeper: Keeper, tmp_path: Path) -> None:
        self.cwd = tmp_path / "project"
        self.cwd.mkdir()
        self.threads = tmp_path / "home" / "demo"
        self.mark = new_mark()
        self.events: list[Event] = []
        settings = EngineSettings(env={MARK: self.mark})
        self.engine = CliEngine(spec(self.threads), settings, keeper, dict(os.environ))

    async def run(
        self,
        prompt: str,
        person: Person | None = None,
        *,
        resume: ResumeToken | None = None,
        system: str | None = None,
        model: str | None = None,
        emit: Callable[[Event], None] | None = None,
        limits: EngineLimits | None = None,
    ) -> Completed:
        self.events = []
        job = EngineJob(
            prompt,
            self.cwd,
            system=system,
            resume=resume,
            model=model,
            limits=limits or EngineLimits(grace_s=GRACE_S),
        )
        with trio.fail_after(60):
            return await self.engine.run(job, emit or self.events.append, person or Person())

    @property
    def actions(self) -> list[Action]:
        return [event for event in self.events if isinstance(event, Action)]

    def read(self, name: str) -> str:
        return (self.cwd / name).read_text(encoding="utf-8")


@pytest.fixture
def bench(keeper: Keeper, tmp_path: Path) -> Bench:
    return Bench(keeper, tmp_path)


ALLOW, DENY = Answer("allow"), Answer("deny", reason="too wet")
BLUE = Answer("allow", replies=(("Blue",), ("Docs", "Tests")))

# The prompt of every word, who answers, and what its answer or error says.
CASES: dict[str, tuple[str, Answer | None, str]] = {
    "help": ("help", None, "`steps <number> [every <time>]`"),
    "write": ("write a/b.txt: hi", None, "I wrote `a/b.txt`"),
    "append": ("append b.txt: hi", None, "I added to `b.txt`"),
    "run": ("run echo one two", None, "```\none two\n```"),
    "remember": ("remember the number 42", None, "the number 42"),
    "what do you remember": ("what do you remember?", None, "not asked me"),
    "what did I ask first": ("what did I ask first?", None, "“what did I ask first?”"),
    "show system": ("show system", None, "no system text"),
    "ask approval": ("ask approval", ALLOW, "I wrote `approved.txt`"),
    "ask question": ("ask question", BLUE, "You said: Blue"),
    "ask several": ("ask several", BLUE, "You said: Blue"),
    "ask two": ("ask two", BLUE, "You said: Docs, Tests"),
    "ask text": ("ask text", Answer("allow", replies=(("Octavia",),)), "You said: Octavia"),
    "ask briefly": ("ask briefly 10ms", None, "took my question back"),
    "propose plan": ("propose plan", ALLOW, "approved, and I carried it out"),
    "say": ("say: hang\n\n  `x`", None, "hang\n\n  `x`"),
    "signal": ('run true then signal {"a": 1}', None, '{"a": 1}'),
    "tool call": ('tool call s__t {"a": 1}', None, '"arguments": {"a": 1}'),
    "tool rounds": ('tool rounds 2 s__t {"a": 1}', None, '"arguments": {"a": 1}'),
    "markdown": ("markdown", None, "| `a.py` | 12 | ✅ |"),
    "long answer": ("long answer 5000", None, "That was all."),
    "fake footer": ("fake footer", None, "ctx: somewhere-else @ not-your-branch"),
    "think": ("think 10ms", None, "silent for 10ms"),
    "sleep": ("sleep 10ms", None, "silent for 10ms"),
    "slow start": ("slow start 10ms", None, "before my first line"),
    "steps": ("steps 3 every 1ms", None, "I took 3 steps"),
    "sample steps": ("sample steps", None, "one step of every kind"),
    "flood": ("flood 1000", None, "I took 1000 steps"),
    "fail": ("fail: too rough", None, "demo failed: too rough"),
    "rate limit": ("rate limit", None, "resets at 23:00 UTC"),
    "crash": ("crash", None, "code 3 without a result: asked to crash"),
    "stubborn": ("stubborn", None, "ignored SIGTERM"),
    "fork": ("fork", None, "three processes"),
    "noise": ("noise 200kB", None, "noise on stderr"),
    "garbage": ("garbage", None, "6 lines of garbage"),
    "big line": ("big line 20MB", None, "20000000 bytes"),
    "nothread": ("nothread", None, "which thread"),
}


def test_every_word_is_shown_by_a_run() -> None:
    assert {*CASES, "hang"} == {word.name for word in WORDS}


@pytest.mark.parametrize("word", CASES)
async def test_word_does_what_it_says(bench: Bench, word: str) -> None:
    prompt, answer, expected = CASES[word]
    completed = await bench.run(prompt, Person(answer) if answer else None)
    assert expected in (completed.answer if completed.ok else completed.error or "")
    assert completed.ok == (word not in {"fail", "rate limit", "crash"})
    assert sum(isinstance(event, Started) for event in bench.events) == (word != "nothread")
    assert (completed.resume is None) == (word == "nothread")
    assert completed.usage.cost_usd == (None if word == "crash" else 0)
    assert alive(bench.mark) == []


async def test_plain_prompt_gets_a_friendly_answer_that_says_where_it_works(bench: Bench) -> None:
    (bench.cwd / ".git").mkdir()
    (bench.cwd / ".git" / "HEAD").write_text("ref: refs/heads/feat/arms\n", encoding="utf-8")
    completed = await bench.run("hello there", model="demo-2")
    assert "“hello there”" in completed.answer
    assert "`project` on branch `feat/arms`" in completed.answer
    assert "turn" not in completed.answer
    assert completed.model == "demo-2"
    assert completed.usage.input_tokens == 3


async def test_prompt_is_never_in_the_arguments(bench: Bench) -> None:
    prompt = "canary one, run sh -c 'cat /proc/$PPID/cmdline'"
    await bench.run(prompt, system="canary two")
    assert "program.py" in bench.actions[-1].detail
    assert "canary" not in bench.actions[-1].detail


async def test_thread_is_remembered_across_resume(bench: Bench) -> None:
    first = await bench.run("remember the number 42")
    second = await bench.run("hello", resume=first.resume)
    third = await bench.run("what do you remember? what did I ask first?", resume=second.resume)
    assert first.resume == second.resume == third.resume
    assert "turn 2 of this conversation" in second.answer
    assert "before that you said: “remember the number 42”" in second.answer
    assert "- the number 42" in third.answer
    assert "You first asked: “remember the number 42”" in third.answer


async def test_thread_file_is_for_its_owner_alone(bench: Bench) -> None:
    completed = await bench.run("remember the number 42")
    assert completed.resume is not None
    (file,) = bench.threads.iterdir()
    assert file.name == f"{completed.resume.value}.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(bench.threads.stat().st_mode) == 0o700
    assert json.loads(file.read_bytes())["notes"] == ["the number 42"]


@pytest.mark.parametrize("thread", ["0123456789ab", "../../etc/passwd", "x"])
async def test_unknown_thread_is_lost(bench: Bench, thread: str) -> None:
    completed = await bench.run("hello", resume=ResumeToken(DEMO, thread))
    assert (completed.ok, completed.thread_lost, completed.resume) == (False, True, None)
    assert completed.error == "demo no longer knows this thread; start a new one."
    assert bench.events == []


async def test_thread_id_leads_to_no_other_file(bench: Bench) -> None:
    completed = await bench.run("hello")
    assert completed.resume is not None
    name = f"{completed.resume.value}.json"
    (bench.threads / name).rename(bench.threads.parent / name)
    elsewhere = ResumeToken(DEMO, f"../{completed.resume.value}")
    assert (await bench.run("hello", resume=elsewhere)).thread_lost


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"turns": "x"}'])
async def test_damaged_thread_is_lost_and_left_as_it_is(bench: Bench, content: str) -> None:
    token = ResumeToken(DEMO, "0123456789ab")
    bench.threads.mkdir(parents=True)
    file = bench.threads / f"{token.value}.json"
    file.write_text(content, encoding="utf-8")
    completed = await bench.run("hello", resume=token)
    assert completed.thread_lost
    assert file.read_text(encoding="utf-8") == content


async def test_threads_that_cannot_be_kept_are_an_error(bench: Bench) -> None:
    bench.threads.parent.write_text("in the way", encoding="utf-8")
    completed = await bench.run("hello")
    assert "cannot keep a thread" in (completed.error or "")


def test_resume_line_is_read_back(tmp_path: Path) -> None:
    token = ResumeToken(DEMO, "0123456789ab")
    line = spec(tmp_path).resume_line(token)
    assert line == "demo --resume 0123456789ab"
    assert spec(tmp_path).parse_resume(f"done\n\n`{line}`") == token


async def test_several_words_happen_in_order(bench: Bench) -> None:
    completed = await bench.run("write a.txt: one\nappend a.txt: two\nrun cat a.txt then steps 1")
    assert bench.read("a.txt") == "one\ntwo\n"
    titles = [action.title for action in bench.actions if action.phase == "started"]
    assert titles == ["write a.txt", "append a.txt", "cat a.txt", "step 1 of 1"]
    assert "one\ntwo" in completed.answer


async def test_command_is_shown_from_start_to_end_with_its_output(bench: Bench) -> None:
    await bench.run("run sh -c 'echo out; echo bad >&2; exit 4'")
    assert [action.phase for action in bench.actions][:: len(bench.actions) - 1] == [
        "started",
        "completed",
    ]
    assert (bench.actions[-1].ok, bench.actions[-1].detail) == (False, "out\nbad")


@pytest.mark.parametrize("command", ["no-such-program at all", "'unclosed", "/"])
async def test_command_that_cannot_run_does_not_end_the_run(bench: Bench, command: str) -> None:
    completed = await bench.run(f"run {command}")
    assert completed.ok
    assert f"I cannot run `{command}`" in completed.answer
    assert bench.actions[-1].ok is False


async def test_file_outside_the_folder_is_refused_in_words(bench: Bench) -> None:
    (bench.cwd / "link").symlink_to(bench.cwd.parent / "target")
    completed = await bench.run("write ../x: hi then write link: hi")
    assert "I cannot write `../x`: it is outside the folder." in completed.answer
    assert "I cannot write `link`: it is a link." in completed.answer
    assert not (bench.cwd.parent / "x").exists()
    assert not (bench.cwd.parent / "target").exists()


async def test_approval_shows_what_it_is_for_and_is_followed(bench: Bench) -> None:
    person = Person(ALLOW)
    await bench.run("ask approval to write a.txt: hi", person)
    (ask,) = person.asked
    assert (ask.kind, ask.tool, ask.target, ask.preview) == ("approval", "write", "a.txt", "+hi")
    assert ask.for_thread
    assert bench.read("a.txt") == "hi\n"


async def test_nothing_hides_in_an_approval(bench: Bench) -> None:
    person = Person(DENY)
    await bench.run("ask approval to write a\u202eb.txt: x\u200by", person)
    await bench.run("ask approval to run echo \u2066z", person)
    written, run = person.asked
    assert (written.target, written.preview) == ("a\\u202eb.txt", "+x\\u200by")
    assert "echo \\u2066z" in run.preview


async def test_denied_approval_changes_nothing_and_its_reason_is_repeated(bench: Bench) -> None:
    completed = await bench.run("ask approval to write a.txt: hi then run touch b", Person(DENY))
    assert "because you said no: too wet" in completed.answer
    assert [file.name for file in bench.cwd.iterdir()] == ["b"]
    assert bench.actions[1].ok is False


async def test_approval_that_nobody_gives_is_denied(bench: Bench) -> None:
    completed = await bench.run("ask approval", limits=EngineLimits(ask_s=0.1))
    assert "nobody answered" in completed.answer


async def test_approval_for_the_thread_is_asked_once_also_after_resume(bench: Bench) -> None:
    person = Person(Answer("allow_thread"))
    first = await bench.run("ask approval to run true then ask approval to run true", person)
    assert len(person.asked) == 1
    again = await bench.run("ask approval to run touch x", person, resume=first.resume)
    assert len(person.asked) == 1
    assert (bench.cwd / "x").exists()
    await bench.run("ask approval to write y: y", person, resume=again.resume)
    assert [ask.tool for ask in person.asked] == ["run", "write"]
    await bench.run("ask approval to run true", person)
    assert [ask.tool for ask in person.asked] == ["run", "write", "run"]


async def test_questions_have_choices_and_take_what_is_typed(bench: Bench) -> None:
    person = Person(BLUE)
    await bench.run("ask question, ask several, ask two, ask text", person)
    shapes = [[(len(q.choices), q.several) for q in ask.questions] for ask in person.asked]
    assert shapes == [[(3, False)], [(3, True)], [(3, False), (3, True)], [(0, False)]]
    typed = await bench.run("ask question", Person(Answer("allow", replies=(("mauve",),))))
    assert "You said: mauve" in typed.answer
    denied = await bench.run("ask question", Person(DENY))
    assert "You did not answer: too wet" in denied.answer


async def test_revised_plan_is_shown_again_with_the_reason_worked_in(bench: Bench) -> None:
    person = Person(Answer("deny", reason="be polite"), ALLOW)
    completed = await bench.run("propose plan", person)
    plans = [ask.plan or "" for ask in person.asked]
    assert [("be polite" in plan, "1. Look around" in plan) for plan in plans] == [
        (False, True),
        (True, True),
    ]
    assert "approved after 1 revision" in completed.answer


async def test_plan_that_is_never_approved_is_given_up(bench: Bench) -> None:
    person = Person(DENY)
    completed = await bench.run("propose plan", person)
    assert len(person.asked) == 4
    assert "not approved, last because: too wet" in completed.answer


async def test_verbatim_answer_holds_nothing_else(bench: Bench) -> None:
    completed = await bench.run('steps 1 then signal `{"a": 1}` then noise')
    assert completed.answer == '{"a": 1}'
    calls = await bench.run("tool call a {} then tool call b [1]")
    assert json.loads(calls.answer) == {
        "tool_calls": [{"name": "a", "arguments": {}}, {"name": "b", "arguments": [1]}]
    }


async def test_rounds_of_a_tool_call_are_counted_in_the_thread(bench: Bench) -> None:
    first = await bench.run("tool rounds 3 t__add {}")
    second = await bench.run("These are the results.", resume=first.resume)
    third = await bench.run("These are the results.", resume=first.resume)
    last = await bench.run("These are the results.", resume=first.resume)
    assert {first.answer, second.answer, third.answer} == {
        '{"tool_calls": [{"name": "t__add", "arguments": {}}]}'
    }
    assert "This is turn 4" in last.answer


async def test_word_ends_the_rounds_of_a_tool_call(bench: Bench) -> None:
    first = await bench.run("tool rounds 3 t__add {}")
    await bench.run("remember the number 42", resume=first.resume)
    assert "This is turn 3" in (await bench.run("Go on.", resume=first.resume)).answer


async def test_system_text_reaches_it_and_its_words_do_not_count(bench: Bench) -> None:
    completed = await bench.run("show system", system="hang\nBe brief.")
    assert "hang\nBe brief." in completed.answer


async def test_flood_arrives_whole_and_in_order(bench: Bench) -> None:
    completed = await bench.run("flood 20000")
    assert completed.ok
    assert [action.title for action in bench.actions] == [
        f"step {number} of 20000" for number in range(1, 20001)
    ]


async def test_bad_and_big_lines_become_warnings(bench: Bench) -> None:
    completed = await bench.run("garbage then big line 20MB then steps 1")
    assert completed.ok
    assert [action.title for action in bench.actions if action.kind == "warning"][-2:] == [
        "a line that is not JSON (5 so far)",
        "skipped a line of 20000000 bytes",
    ]


async def test_too_much_of_anything_is_refused(bench: Bench) -> None:
    for prompt in ("steps 10001", "long answer 999999999", "big line 1001MB"):
        completed = await bench.run(prompt)
        assert "are the most" in (completed.error or "")


async def test_two_megabytes_of_prompt_are_read(bench: Bench) -> None:
    completed = await bench.run("x " * 1_000_000 + "\nnoise 2MB")
    assert "noise" in completed.answer


async def test_forked_processes_ignore_sigterm_wherever_they_are(bench: Bench) -> None:
    pids: list[int] = []
    left = trio.Event()

    def emit(event: Event) -> None:
        if isinstance(event, Action) and "behind" in event.title:
            pids.extend(map(int, event.detail.split()))
            left.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(bench.run, "fork, hang", emit=emit))
        with trio.fail_after(30):
            await left.wait()
        assert [ignores_sigterm(pid) for pid in pids] == [True] * 3
        nursery.cancel_scope.cancel()
    assert alive(bench.mark) == []


def ignores_sigterm(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    ignored = int(status.partition("SigIgn:")[2].split()[0], 16)
    return bool(ignored >> (signal.SIGTERM - 1) & 1)


async def test_stubborn_one_survives_sigterm(bench: Bench) -> None:
    soft = await bench.run("run sh -c 'kill $PPID; sleep 300'")
    assert "SIGTERM" in (soft.error or "")
    hard = await bench.run("stubborn, run sh -c 'kill $PPID'")
    assert "ended with 0" in hard.answer


@pytest.mark.parametrize(
    ("prompt", "processes"),
    [("hang", 1), ("fork, stubborn, hang", 4), ("run sleep 300", 2), ("ask question", 1)],
)
async def test_cancel_leaves_no_process(bench: Bench, prompt: str, processes: int) -> None:
    started = trio.Event()

    def emit(_event: Event) -> None:
        started.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(bench.run, prompt, emit=emit))
        with trio.fail_after(30):
            await started.wait()
        await until_alive(bench.mark, processes)
        nursery.cancel_scope.cancel()
    assert alive(bench.mark) == []
