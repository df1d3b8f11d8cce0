from takopi.present.lists import (
    LISTED_WORKTREES,
    CommandLine,
    Condition,
    EngineLine,
    RunLine,
    WorktreeLine,
    help_text,
    runs_list,
    status,
    worktrees_list,
)
from tests.present.validity import is_valid, marked


def test_runs() -> None:
    text = runs_list([
        RunLine(17, "done", "claude", "fix the\ntests " + "x" * 200, 300, "z80 @ feat/x"),
        RunLine(16, "error", "codex", "hello", 90_000),
    ])

    assert text.text == (
        "Last runs\n"
        "\n"
        "17 · done · claude · z80 @ feat/x · 5m ago\n"
        f"fix the tests {'x' * 65}…\n"
        "\n"
        "16 · error · codex · 1d ago\n"
        "hello"
    )
    assert is_valid(text)


def test_no_runs_yet() -> None:
    assert runs_list([]).text == "No runs yet. Send a message to start one."


def test_worktrees() -> None:
    text = worktrees_list(
        "z80", [WorktreeLine("feat/x", 2, 1, dirty=True, disk_bytes=12_000_000), WorktreeLine("y")]
    )

    assert text.text == ("Worktrees of z80\nfeat/x · 2 ahead, 1 behind · changed · 12 MB\ny")
    assert marked(text, "code") == ["feat/x", "y"]


def test_no_worktrees_yet() -> None:
    assert worktrees_list("z80", []).text == (
        "z80 has no worktrees. Begin a message with /z80 @branch to make one."
    )


def test_many_worktrees_are_counted() -> None:
    text = worktrees_list("z80", [WorktreeLine(f"b{n}") for n in range(LISTED_WORKTREES + 5)])

    assert text.text.endswith(f"\nb{LISTED_WORKTREES - 1}\nand 5 more")


def test_status_says_which_engines_ask() -> None:
    text = status(
        Condition(
            version="0.9.0",
            up_s=11_100,
            engines=[
                EngineLine("claude", asks=True),
                EngineLine("codex", asks=False),
                EngineLine("pi", asks=False, problem="not installed: `npm i -g pi`"),
            ],
            running=1,
            queued=2,
            max_runs=4,
            polled_s=3,
            mcp=["github", "files"],
            notes=["The config was not reloaded."],
        )
    )

    assert text.text == (
        "takopi 0.9.0 · up 3h 05m\n"
        "\n"
        "runs: 1 of 4 working, 2 queued\n"
        "last poll: 3s ago\n"
        "MCP servers: github, files\n"
        "\n"
        "Engines\n"
        "✓ claude: asks you before it acts\n"
        "✓ codex: follows its own permission settings\n"
        "✗ pi: not installed: npm i -g pi\n"
        "\n"
        "The config was not reloaded."
    )
    assert is_valid(text)


def test_status_before_the_first_poll() -> None:
    text = status(Condition("0.9.0", 1, [], running=0, queued=0, max_runs=4))

    assert "last poll: never" in text.text


def test_status_of_a_chat_without_a_server_tells_of_no_poll() -> None:
    text = status(Condition("0.9.0", 1, [], running=0, queued=0, max_runs=4, polls=False))

    assert "poll" not in text.text


def test_help_lists_commands_engines_and_projects() -> None:
    commands = [CommandLine("cancel", "Cancel a run"), CommandLine("plan", "Plan with questions")]
    text = help_text(commands, engines=["claude", "codex"], projects=["z80"])

    assert text.text.endswith(
        "Commands\n"
        "/cancel Cancel a run\n"
        "/plan Plan with questions\n"
        "\n"
        "Engines\n"
        "/claude /codex\n"
        "\n"
        "Projects\n"
        "/z80"
    )
    assert is_valid(text)


def test_help_says_how_to_add_the_first_project() -> None:
    text = help_text([], engines=[], projects=[])

    assert text.text.endswith("No projects yet. takopi init in a repository adds one.")
    assert "Engines" not in text.text
