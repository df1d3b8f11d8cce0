import gc
import time
import tracemalloc
from collections.abc import Callable

from takopi.core.events import Action, ActionKind, Phase, Started
from takopi.core.ids import EngineId, ResumeToken
from takopi.present.progress import SHOWN_ACTIONS, TITLE_CHARS, Progress


def make_progress(*events: Action | Started) -> Progress:
    progress = Progress()
    for event in events:
        progress.add(event)
    return progress


def step(
    number: int, phase: Phase = "completed", *, ok: bool | None = None, kind: ActionKind = "command"
) -> Action:
    return Action(f"id-{number}", kind, f"step {number}", phase, ok)


def read(progress: Progress) -> list[str]:
    return [line.text for line in progress.lines()]


def test_each_state_has_its_sign() -> None:
    progress = make_progress(
        step(1, "started"),
        step(2, "updated"),
        step(3, "completed", ok=True),
        step(4, "completed", ok=False),
        step(5, "completed"),
    )

    assert read(progress) == ["▸ step 1", "↻ step 2", "✓ step 3", "✗ step 4", "✓ step 5"]


def test_an_action_that_is_heard_of_again_changes_in_its_place() -> None:
    progress = make_progress(
        step(1, "started"), step(2, "started"), step(1, "updated"), step(1, ok=True)
    )

    assert progress.steps == 2
    assert read(progress) == ["✓ step 1", "▸ step 2"]


def test_only_the_last_actions_are_shown_and_all_are_counted() -> None:
    progress = make_progress(*(step(number, ok=True) for number in range(100)))

    assert progress.steps == 100
    assert read(progress) == [f"✓ step {n}" for n in range(100 - SHOWN_ACTIONS, 100)]


def test_an_action_that_ends_after_many_others_is_shown_again_and_counted_once() -> None:
    others = (step(number, ok=True) for number in range(1, 50))
    progress = make_progress(step(0, "started"), *others, step(0, ok=False))

    assert progress.steps == 50
    assert read(progress)[-1] == "✗ step 0"


def test_what_a_subagent_does_now_is_beside_its_name() -> None:
    agent = Action("a", "subagent", "look around", "started")
    now = Action("a", "subagent", "look around", "updated", detail="Read main.py")
    done = Action("a", "subagent", "look around", "completed", ok=True, detail="found it")

    assert read(make_progress(agent, now)) == ["↻ look around: Read main.py"]
    assert read(make_progress(agent, now, done)) == ["✓ look around"]


def test_a_failure_says_why() -> None:
    failed = Action("a", "command", "npm test", ok=False, detail="2 tests\nfailed")

    assert read(make_progress(failed)) == ["✗ npm test: 2 tests failed"]


def test_what_the_engine_said_is_shown_without_a_sign_and_is_no_step() -> None:
    progress = make_progress(Action("n", "note", "I will look."), step(1, "started"))

    assert progress.steps == 1
    assert read(progress) == ["I will look.", "▸ step 1"]


def test_warnings_stay_below_the_actions() -> None:
    limit = Action("limit", "warning", "Close to the weekly limit: 92% used")
    denied = Action("denied", "warning", "Not permitted: Write", ok=False, detail="plan mode")
    progress = make_progress(limit, denied, *(step(number, ok=True) for number in range(20)))

    assert progress.steps == 20
    assert read(progress)[-2:] == [
        "warning: Close to the weekly limit: 92% used",
        "✗ Not permitted: Write: plan mode",
    ]


def test_a_warning_that_ended_well_is_gone() -> None:
    retry = Action("r", "warning", "The API is overloaded: retry 1", "started")
    again = Action("r", "warning", "The API is overloaded: retry 2", "updated")
    over = Action("r", "warning", "The API is overloaded: retry 2", "completed", ok=True)

    assert read(make_progress(retry, again)) == ["↻ The API is overloaded: retry 2"]
    assert read(make_progress(retry, again, over)) == []


def test_titles_are_one_short_line_and_never_empty() -> None:
    progress = make_progress(
        Action("a", "command", "for i in *; do\n  echo $i\ndone" + " x" * 500),
        Action("b", "tool", " \n"),
    )
    long, empty = read(progress)

    assert long.startswith("✓ for i in *; do echo $i done x x")
    assert long.endswith("…")
    assert len(long) <= TITLE_CHARS + 2
    assert empty == "✓ tool"


def test_commands_and_files_are_code_and_words_are_not() -> None:
    progress = make_progress(
        Action("a", "command", "npm test"),
        Action("b", "file_change", "README.md"),
        Action("c", "note", "I will look."),
        Action("d", "web_search", "trio nursery"),
    )

    assert [[mark.kind for mark in line.marks] for line in progress.lines()] == [
        ["code"],
        ["code"],
        [],
        [],
    ]


def test_files_have_changed_once_a_change_ended_well() -> None:
    assert not make_progress(step(1, "started", kind="file_change")).changed_files
    assert not make_progress(step(1, ok=False, kind="file_change")).changed_files
    assert not make_progress(step(1, ok=True, kind="command")).changed_files
    assert make_progress(step(1, ok=True, kind="file_change")).changed_files
    assert make_progress(step(1, ok=None, kind="file_change")).changed_files


def test_the_model_is_the_one_that_was_reported() -> None:
    token = ResumeToken(EngineId("claude"), "abc")

    assert make_progress().model is None
    assert make_progress(Started(token, "opus"), Started(token)).model == "opus"


def test_twenty_thousand_events_cost_little_time_and_no_memory() -> None:
    events = [step(number, phase) for number in range(10_000) for phase in ("started", "completed")]

    def best_of_five_s(work: Callable[[], object]) -> float:
        spent: list[float] = []
        for _ in range(5):
            start = time.process_time()
            work()
            spent.append(time.process_time() - start)
        return min(spent)

    # To put them into a dictionary is the least that anybody could do.
    floor_s = best_of_five_s(lambda: {event.id: event for event in events})
    spent_s = best_of_five_s(lambda: make_progress(*events))
    gc.collect()
    tracemalloc.start()
    progress = Progress()
    for number in range(10_000):
        progress.add(step(number))
    kept_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert progress.steps == 10_000
    assert spent_s < 40 * floor_s
    assert kept_bytes < 256 * 1024
