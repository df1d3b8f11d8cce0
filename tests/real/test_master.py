from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from takopi.config.load import parse
from takopi.config.loaded import Names
from takopi.config.schema import Oneshot
from takopi.core.errors import Unreachable
from takopi.drafts.master import SYSTEM, PromptMaster
from takopi.kit.proc import Keeper
from takopi.oneshot.api import open_api
from takopi.oneshot.cli import Claude
from tests.model.script import Fail, Rule, Say
from tests.model.server import Model, serve_model
from tests.real.clis import RUN_S, Cli

MakeCli = Callable[[str, str], Cli]
CONFIG = parse(b"", Names({}, frozenset()), environ={})


async def merge(
    cli: Cli, keeper: Keeper, *, previous: str, new_input: str, program: str | None = None
) -> str:
    with trio.fail_after(RUN_S):
        async with open_api(Oneshot(), {}) as api:
            master = PromptMaster(
                config=lambda: CONFIG,
                claude=lambda: Claude(program or str(cli.program), use_api_billing=True),
                keeper=keeper,
                api=api,
                environ=cli.env,
            )
            return await master.merge(previous, new_input)


async def test_claude_is_asked_as_agreed_and_its_answer_is_the_text(
    make_cli: MakeCli, keeper: Keeper, tmp_path: Path
) -> None:
    model: Model
    async with serve_model([Rule("New input:", Say("# Plan\n- one"))]) as model:
        cli = make_cli("claude", model.base_url)
        # Says what it was called with, and is the real one then.
        program = tmp_path / "claude"
        program.write_text(
            "#!/usr/bin/env python3\nimport json, os, sys\n"
            f"json.dump(sys.argv[1:], open({str(tmp_path / 'argv')!r}, 'w'))\n"
            f"os.execv({str(cli.program)!r}, [{str(cli.program)!r}, *sys.argv[1:]])\n"
        )
        program.chmod(0o755)
        text = await merge(
            cli, keeper, previous="# Plan", new_input="/one @file", program=str(program)
        )
    assert text == "# Plan\n- one"
    argv = json.loads((tmp_path / "argv").read_text())
    assert argv[:5] == ["-p", "--system-prompt", SYSTEM, "--tools", ""]
    (conversation,) = model.conversations
    assert conversation.tools == ()
    assert SYSTEM in conversation.system
    assert conversation.latest is not None
    expected = "Previous state:\n# Plan\n\nNew input:\n/one @file"
    assert conversation.latest.text.strip() == expected


async def test_claude_that_fails_is_an_error_with_its_words(
    make_cli: MakeCli, keeper: Keeper
) -> None:
    async with serve_model([Rule("", Fail(404, "scripted"))]) as model:
        with pytest.raises(Unreachable, match="the prompt-master ended with code 1"):
            await merge(make_cli("claude", model.base_url), keeper, previous="", new_input="one")
