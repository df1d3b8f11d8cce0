import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takopi.core.errors import ConfigInvalid, Problem, Refused
from takopi.core.events import Action, Ask, Choice, Question, Usage
from takopi.core.outgoing import Button, Card, Mark, Text
from takopi.present.cards import (
    DECISION_UNITS,
    NOTICE_UNITS,
    ask_card,
    decided,
    final_parts,
    fit,
    notice,
    progress_card,
    refusal,
    spent_line,
)
from takopi.present.compose import plain, pre
from takopi.present.footer import footer
from takopi.present.progress import Progress
from takopi.present.units import length
from tests.present.validity import is_valid, markdowns, marked

FOOTER = footer("ctx: z80 @ feat/name", "claude --resume abc")
CANCEL = Button("Cancel", "rn:cancel:1")
ALLOW = ((Button("Allow once", "ak:1:allow"), Button("Deny", "ak:1:deny")),)
QUESTIONS = Ask(
    "1",
    "question",
    questions=(
        Question(
            "Which **auth**?", "Auth", (Choice("JWT", "no state"), Choice("Session")), several=True
        ),
        Question("Which name?", choices=(Choice("takopi"),)),
        Question("Why?"),
    ),
)


def make_progress(*actions: Action) -> Progress:
    progress = Progress()
    for action in actions:
        progress.add(action)
    return progress


def test_a_working_run() -> None:
    progress = make_progress(
        Action("n", "note", "I will look at the tests."),
        Action("a", "command", "npm test", "completed", ok=False, detail="2 failed"),
        Action("b", "file_change", "src/net.py", "completed", ok=True),
        Action("c", "subagent", "look around", "updated", detail="Read README.md"),
    )
    card = progress_card(
        progress,
        engine="claude",
        state="working",
        elapsed_s=12.9,
        max_units=4096,
        notes=["Another run works in this folder."],
        footer=FOOTER,
        buttons=[[CANCEL], []],
    )

    assert card.text.text == (
        "working · claude · 12s · step 3\n"
        "\n"
        "I will look at the tests.\n"
        "✗ npm test: 2 failed\n"
        "✓ src/net.py\n"
        "↻ look around: Read README.md\n"
        "\n"
        "Another run works in this folder.\n"
        "\n"
        "ctx: z80 @ feat/name\n"
        "claude --resume abc"
    )
    assert card.buttons == ((CANCEL,),)
    assert is_valid(card.text)


@pytest.mark.parametrize(
    ("state", "place", "elapsed_s", "header"),
    [
        ("queued", 2, None, "queued · claude · place 2"),
        ("preparing worktree", None, 0, "preparing worktree · claude · 0s"),
        ("waiting for you", None, 3725, "waiting for you · claude · 1h 02m"),
    ],
)
def test_a_run_before_its_first_step(
    state: str, place: int | None, elapsed_s: float | None, header: str
) -> None:
    card = progress_card(
        Progress(), engine="claude", state=state, place=place, elapsed_s=elapsed_s, max_units=4096
    )

    assert card.text.text == header


@settings(deadline=None)
@given(st.lists(st.text(max_size=200), max_size=12), st.integers(80, 1000))
def test_a_progress_card_fits_with_its_header_and_its_footer_whole(
    titles: list[str], max_units: int
) -> None:
    progress = make_progress(
        *(
            Action(str(index), "command", title, ok=False, detail=title)
            for index, title in enumerate(titles)
        )
    )
    card = progress_card(
        progress,
        engine="claude",
        state="working",
        elapsed_s=1,
        max_units=max_units,
        notes=titles,
        footer=FOOTER,
    )

    assert length(card.text.text) <= max_units
    assert card.text.text.startswith("working · claude · 1s")
    assert card.text.text.endswith(FOOTER.text)
    assert is_valid(card.text)


def test_where_room_is_short_the_oldest_actions_go_first() -> None:
    progress = make_progress(*(Action(f"{n}", "command", f"step {n}") for n in range(6)))
    card = progress_card(progress, engine="pi", state="working", max_units=50, notes=["A note."])

    assert card.text.text == "working · pi · step 6\n\n✓ step 4\n✓ step 5\n\nA note."


def test_a_run_that_is_done() -> None:
    (text,) = final_parts(
        "done",
        "**Fixed.** It was `x`.",
        engine="claude",
        elapsed_s=65,
        model="claude-sonnet-4",
        usage=Usage(1234, 340, 5, 0.04),
        footer=FOOTER,
        max_units=4096,
    )

    assert text.text == (
        "done · claude · 1m 05s\n"
        "\n"
        "Fixed. It was x.\n"
        "\n"
        "claude-sonnet-4 · 1.2k in · 340 out · $0.04\n"
        "ctx: z80 @ feat/name\n"
        "claude --resume abc"
    )
    assert marked(text, "bold") == ["Fixed."]
    assert is_valid(text)


def test_a_run_that_failed_says_why_and_keeps_what_was_said() -> None:
    (text,) = final_parts(
        "error",
        "So far so good.",
        engine="codex",
        elapsed_s=3,
        error="codex failed: not logged in. Log in with `codex login`.",
        max_units=4096,
    )

    assert text.text == (
        "error · codex · 3s\n"
        "\n"
        "codex failed: not logged in. Log in with codex login.\n"
        "\n"
        "So far so good."
    )
    assert marked(text, "code") == ["codex login"]


def test_a_cancelled_run_without_words_is_its_status() -> None:
    (text,) = final_parts("cancelled", "", engine="pi", max_units=4096)

    assert text.text == "cancelled · pi"


@pytest.mark.parametrize("answer", ["", " \n ", "```\n```"])
def test_an_empty_answer_is_said_to_be_empty(answer: str) -> None:
    (text,) = final_parts("done", answer, engine="pi", max_units=4096)

    assert text.text == "done · pi\n\nThe engine gave no answer."


@settings(deadline=None)
@given(markdowns, st.integers(200, 400))
def test_every_part_of_an_answer_fits_and_ends_with_the_footer(answer: str, max_units: int) -> None:
    texts = final_parts(
        "done", answer * 10, engine="pi", footer=FOOTER, model="m", max_units=max_units
    )

    assert texts[0].text.startswith("done · pi\n")
    assert all(text.text.endswith(f"\n{FOOTER.text}") for text in texts)
    assert all(length(text.text) <= max_units for text in texts)
    assert all(is_valid(text) for text in texts)
    assert "\n\nm\n" in texts[-1].text


@pytest.mark.parametrize(
    ("model", "usage", "line"),
    [
        (None, Usage(), ""),
        ("opus", Usage(), "opus"),
        (None, Usage(0, 12), "0 in · 12 out"),
        ("gpt", Usage(cost_usd=1.5), "gpt · $1.50"),
    ],
)
def test_only_what_is_reported_is_told(model: str | None, usage: Usage, line: str) -> None:
    assert spent_line(model, usage) == line


def test_an_approval_shows_tool_target_and_diff() -> None:
    ask = Ask("1", "approval", tool="Edit", target="src/a.py", preview="-old\n+new")
    (card,) = ask_card(
        ask,
        engine="claude",
        max_units=4096,
        notes=["Expires in 1h 00m."],
        footer=FOOTER,
        buttons=ALLOW,
    )

    assert card.text.text == (
        "claude wants to use Edit\n"
        "src/a.py\n"
        "-old\n"
        "+new\n"
        "\n"
        "Expires in 1h 00m.\n"
        "ctx: z80 @ feat/name\n"
        "claude --resume abc"
    )
    assert marked(card.text, "pre") == ["-old\n+new"]
    assert card.buttons == ALLOW


def test_a_command_is_not_shown_twice() -> None:
    command = "cd a &&\n  git push"
    ask = Ask("1", "approval", tool="Bash", target="cd a && git push", preview=command)
    (card,) = ask_card(ask, engine="claude", max_units=4096)

    assert card.text.text == "claude wants to use Bash\ncd a &&\n  git push"


def test_an_approval_without_a_preview_shows_its_target() -> None:
    ask = Ask("1", "approval", tool="Read", target="a.txt")
    (card,) = ask_card(ask, engine="claude", max_units=4096)

    assert card.text.text == "claude wants to use Read\na.txt"


def test_nothing_of_a_long_preview_is_hidden_and_the_buttons_are_at_its_end() -> None:
    preview = "\n".join(f"+line {number}" for number in range(600))
    ask = Ask("1", "approval", tool="Write", target="a.txt", preview=preview)
    *first, last = ask_card(ask, engine="claude", max_units=4096, buttons=ALLOW)

    lines = "\n".join("\n".join(marked(card.text, "pre")) for card in (*first, last))
    assert lines == preview
    assert all(card.buttons == () for card in first)
    assert last.buttons == ALLOW


def test_a_plan_is_shown_in_full() -> None:
    plan = "# Plan\n\n" + "\n".join(f"{number}. do step {number}" for number in range(1, 501))
    *first, last = ask_card(
        Ask("1", "approval", tool="ExitPlanMode", plan=plan),
        engine="claude",
        max_units=4096,
        footer=FOOTER,
        buttons=ALLOW,
    )
    whole = "\n".join(card.text.text for card in (*first, last))

    assert whole.startswith("claude proposes a plan\n\nPlan\n\n1. do step 1\n")
    assert all(f"{number}. do step {number}\n" in whole for number in range(1, 501))
    assert last.buttons == ALLOW


def test_an_empty_plan_is_said_to_be_empty() -> None:
    (card,) = ask_card(Ask("1", "approval", plan=""), engine="claude", max_units=4096)

    assert card.text.text == "claude proposes a plan\n\nThe plan is empty."


def test_a_question_shows_its_choices_and_what_was_chosen() -> None:
    (card,) = ask_card(QUESTIONS, engine="claude", max_units=4096, selected=["JWT"])

    assert card.text.text == (
        "claude asks (1 of 3): Auth\n"
        "Which auth?\n"
        "\n"
        "✓ JWT: no state\n"
        "• Session\n"
        "\n"
        "Choose one or more, or reply with your own answer."
    )
    assert is_valid(card.text)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (
            1,
            (
                "claude asks (2 of 3)\nWhich name?\n\n• takopi\n\n"
                "Choose one, or reply with your own answer."
            ),
        ),
        (2, "claude asks (3 of 3)\nWhy?\n\nReply with your answer."),
    ],
)
def test_each_question_says_how_to_answer_it(question: int, said: str) -> None:
    (card,) = ask_card(QUESTIONS, engine="claude", max_units=4096, question=question)

    assert card.text.text == said


def test_a_decided_card_says_who_and_what_and_has_no_buttons() -> None:
    card = Card(plain("a b"), ALLOW)
    closed = decided(card, "Ann allowed it once")

    assert closed == Card(Text("a b\n\nAnn allowed it once", (Mark("bold", 5, 19),)))


@settings(deadline=None)
@given(markdowns, st.text(), st.integers(300, 500))
def test_there_is_always_room_for_the_decision(plan: str, line: str, max_units: int) -> None:
    ask = Ask("1", "approval", plan=plan * 5)
    *_, last = ask_card(ask, engine="claude", max_units=max_units, buttons=ALLOW)
    closed = decided(last, line * 50)

    assert length(closed.text.text) <= max_units
    assert is_valid(closed.text)
    assert closed.text.text == closed.text.text.rstrip()


def test_a_long_decision_is_cut() -> None:
    closed = decided(Card(plain("a")), "😀" * 500)

    assert length(closed.text.text) <= 3 + DECISION_UNITS


def test_a_refusal_is_one_sentence_and_the_way_out() -> None:
    error = Refused("cannot determine base branch", way_out="set `worktree_base` to one")
    card = refusal(error)

    assert card.text.text == "cannot determine base branch\nset worktree_base to one"
    assert marked(card.text, "code") == ["worktree_base"]
    assert refusal(Refused("no")).text.text == "no"


def test_a_bad_config_shows_every_problem() -> None:
    one = Problem("limits.max_run", "unknown key", way_out="did you mean max_runs?")
    two = Problem("", "the file is empty")

    assert refusal(ConfigInvalid((one,))).text.text == (
        "limits.max_run: unknown key\ndid you mean max_runs?"
    )
    assert refusal(ConfigInvalid((one, two))).text.text == (
        "The config has 2 problems.\n"
        "\n"
        "limits.max_run: unknown key\n"
        "did you mean max_runs?\n"
        "\n"
        "the file is empty"
    )


def test_a_notice_is_short_whatever_is_in_it() -> None:
    card = notice("Run `/help`.", buttons=[[CANCEL]])

    assert card.text.text == "Run /help."
    assert card.buttons == ((CANCEL,),)
    assert length(notice("words " * 10_000).text.text) <= NOTICE_UNITS
    assert length(refusal(Refused("words " * 10_000)).text.text) <= NOTICE_UNITS


def test_what_does_not_fit_ends_with_an_ellipsis() -> None:
    text = fit(pre("line\n" * 100), 50)

    assert text.text.endswith("line\n…")
    assert length(text.text) <= 50
    assert is_valid(text)
