from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import trio

from takopi.config.schema import Oneshot as Settings
from takopi.core.errors import NotConfigured, RefusedByModel, TakopiError, Unreachable
from takopi.kit.proc import Keeper
from takopi.oneshot.choose import open_oneshot
from takopi.oneshot.cli import Claude
from takopi.oneshot.port import Oneshot
from tests.kit.processes import MARK, new_mark, until_gone
from tests.model.script import Fail, Hang, Rule, Say
from tests.model.server import Model, serve_model
from tests.real.clis import RUN_S, Cli

MakeCli = Callable[[str, str], Cli]
GRACE_S = 1.0


class Arms(msgspec.Struct, frozen=True):
    count: int


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@asynccontextmanager
async def asking(
    make_cli: MakeCli, keeper: Keeper, model: Model, *, logged_in: bool = True, mark: str = ""
) -> AsyncGenerator[Oneshot]:
    cli = make_cli("claude", model.base_url)
    claude = Claude(str(cli.program), {MARK: mark}, use_api_billing=logged_in)
    with trio.fail_after(RUN_S):
        async with open_oneshot(
            Settings(backend="cli"), keeper, claude=claude, environ=cli.env, grace_s=GRACE_S
        ) as oneshot:
            yield oneshot


async def test_claude_is_sent_the_question_and_nothing_of_the_person(
    make_cli: MakeCli, keeper: Keeper, tmp_path: Path, temporary: Path
) -> None:
    home = tmp_path / "home" / ".claude"
    home.mkdir(parents=True)
    # claude looks for one in its home, and in every folder above the one that it works in.
    for place in (home, temporary):
        (place / "CLAUDE.md").write_text("CANARY")
    async with (
        serve_model([Rule("^How many arms", Say("eight"))]) as model,
        asking(make_cli, keeper, model) as oneshot,
    ):
        assert await oneshot.ask("You know octopuses.", "How many arms?") == "eight"
    (conversation,) = model.conversations
    assert conversation.tools == ()
    assert "You know octopuses." in conversation.system
    assert b"CANARY" not in model.requests[0].body
    assert not list(home.glob("projects/**/*.jsonl"))


@pytest.mark.parametrize("user", ["/cost", "/init all of it", "look at @{file} now"])
async def test_the_question_is_text_and_no_command_of_claude(
    make_cli: MakeCli, keeper: Keeper, tmp_path: Path, user: str
) -> None:
    file = tmp_path / "file.txt"
    file.write_text("CANARY")
    user = user.format(file=file)
    async with (
        serve_model([Rule("", Say("taken as text"))]) as model,
        asking(make_cli, keeper, model) as oneshot,
    ):
        assert await oneshot.ask("", user) == "taken as text"
    (request,) = model.requests
    assert request.conversation is not None
    assert request.conversation.latest is not None
    assert request.conversation.latest.text.strip() == user
    assert b"CANARY" not in request.body


async def test_a_verbose_claude_is_understood(
    make_cli: MakeCli, keeper: Keeper, tmp_path: Path
) -> None:
    settings = tmp_path / "home" / ".claude" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"verbose": true}')
    async with (
        serve_model([Rule("", Say("eight"))]) as model,
        asking(make_cli, keeper, model) as oneshot,
    ):
        assert await oneshot.ask("", "How many arms?") == "eight"


async def test_json_that_does_not_fit_is_asked_for_again(make_cli: MakeCli, keeper: Keeper) -> None:
    script = [
        Rule("cannot be used", Say('```json\n{"count": 8}\n```')),
        Rule("", Say("Eight, I think."), system="JSON Schema"),
    ]
    async with serve_model(script) as model, asking(make_cli, keeper, model) as oneshot:
        assert await oneshot.ask("", "How many arms?", schema=Arms) == Arms(8)
    assert len(model.conversations) == 2


@pytest.mark.parametrize(
    ("status", "expected"), [(401, NotConfigured), (404, RefusedByModel), (500, Unreachable)]
)
async def test_an_error_of_the_api_has_its_kind(
    make_cli: MakeCli, keeper: Keeper, status: int, expected: type[TakopiError]
) -> None:
    async with (
        serve_model([Rule("", Fail(status, "scripted"))]) as model,
        asking(make_cli, keeper, model) as oneshot,
    ):
        with pytest.raises(TakopiError) as caught:
            await oneshot.ask("", "hello")
    assert type(caught.value) is expected


async def test_a_claude_without_a_login_says_how_to_get_one(
    make_cli: MakeCli, keeper: Keeper
) -> None:
    async with (
        serve_model([]) as model,
        asking(make_cli, keeper, model, logged_in=False) as oneshot,
    ):
        with pytest.raises(NotConfigured) as caught:
            await oneshot.ask("", "hello")
    assert (caught.value.what, caught.value.way_out) == (
        "Not logged in",
        "log in with `claude auth login`",
    )


async def test_a_cancel_leaves_no_process_and_no_file(
    make_cli: MakeCli, keeper: Keeper, temporary: Path
) -> None:
    rule, mark = Rule("", Hang()), new_mark()
    async with serve_model([rule]) as model, asking(make_cli, keeper, model, mark=mark) as oneshot:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(oneshot.ask, "", "hello")
            request = await model.arrived(rule)
            nursery.cancel_scope.cancel()
        await request.left.wait()
    await until_gone(mark, within_s=GRACE_S + 1)
    assert names_in(temporary) == []
