"""From nothing to the first answer, as a person does it: a real terminal, a clean home."""

from __future__ import annotations

import re
import secrets
import shlex
import subprocess
import tomllib
from collections.abc import Generator
from pathlib import Path

import pytest
import trio

from tests.botapi.api import BotApi
from tests.cli.setup_terminal import CODE, open_botapi
from tests.e2e.rig import ADA, BIN, WITHIN_S
from tests.engines.samples import DATA
from tests.projects.repos import ENVIRON, make_repo

A_PERSONS_TIME_S = 120.0


class Tmux:
    """A terminal that a person sits at, with a shell in it that has read no profile."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._name = f"takopi-first-{secrets.token_hex(4)}"

    def start(self, cwd: Path, *, path: str) -> None:
        git = {name: value for name, value in ENVIRON.items() if name.startswith("GIT_")}
        environ = git | {
            "HOME": str(self.home),
            "PATH": path,
            "SHELL": "/bin/sh",
            "LANG": "C.UTF-8",
            "PS1": "$ ",
        }
        clean = [f"{name}={value}" for name, value in environ.items()]
        shell = shlex.join(["env", "-i", *clean, "TERM=screen", "sh"])
        self._tmux("new-session", "-d", "-x", "150", "-y", "60", "-c", str(cwd), shell)

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", text)
        self.press("Enter")

    def press(self, key: str) -> None:
        self._tmux("send-keys", key)

    @property
    def screen(self) -> str:
        """All that was ever seen, with what the width had cut put together."""
        return self._tmux("capture-pane", "-p", "-J", "-S", "-")

    async def sees(self, part: str) -> str:
        with trio.fail_after(WITHIN_S):
            while True:
                if part in self.screen:
                    return self.screen
                # A screen tells nobody that it has changed.
                await trio.sleep(0.05)

    def end(self) -> None:
        subprocess.run(["tmux", "-L", self._name, "kill-server"], check=False, capture_output=True)

    def _tmux(self, *args: str) -> str:
        done = subprocess.run(
            ["tmux", "-f", "/dev/null", "-L", self._name, *args],
            check=True,
            capture_output=True,
            text=True,
            env={**ENVIRON, "TMUX": "", "LANG": "C.UTF-8"},
        )
        return done.stdout


@pytest.fixture
def tmux(tmp_path: Path) -> Generator[Tmux, None, None]:
    home = tmp_path.resolve() / "home"
    home.mkdir(mode=0o700)
    tmux = Tmux(home)
    try:
        yield tmux
    finally:
        tmux.end()


def put_program(file: Path, text: str) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")
    file.chmod(0o755)


def install_codex(home: Path) -> None:
    """A codex that only a login shell finds, and that needs an interpreter from the same place."""
    tools = home / "tools"
    put_program(tools / "stand-in-node", '#!/bin/sh\nexec /bin/sh "$@"\n')
    recording = DATA / "codex/plain.jsonl"
    put_program(
        tools / "codex", f"#!/usr/bin/env stand-in-node\ncat > /dev/null; cat {recording}\n"
    )
    profile = 'echo "Welcome back"\nPATH="$HOME/tools:$PATH"\n'
    (home / ".profile").write_text(profile, encoding="utf-8")


def install_systemctl(home: Path) -> Path:
    """A systemd that takes everything, and starts nothing."""
    put_program(home / "bin/systemctl", "#!/bin/sh\necho inactive\n")
    return home / "bin"


async def test_from_nothing_to_the_first_answer(tmux: Tmux) -> None:
    home = tmux.home
    install_codex(home)
    path = f"{BIN}:{install_systemctl(home)}:/usr/bin:/bin"
    repo = make_repo(home / "dev/z80")
    async with open_botapi() as api:
        ada = api.person(ADA)
        began = trio.current_time()
        tmux.start(repo, path=path)

        tmux.type(f"takopi init --api-url {api.url}")
        await tmux.sees("bot token")
        tmux.type(api.token)
        await tmux.sees("Waiting ...")
        await ada.send(ada.chat, f"/start {CODE.findall(tmux.screen)[-1]}")
        await tmux.sees("codex is the default engine")
        await tmux.sees("alias of this project [z80]:")
        tmux.type("")
        await tmux.sees("Let systemd run takopi")
        tmux.type("y")
        await tmux.sees(f"takopi is set up: write to @{api.bot.username}")

        tmux.type("takopi; echo ended $?")
        await api.wait_for_request(lambda r: r.method == "setMyCommands", within_s=WITHIN_S)
        prompt = await ada.send(ada.chat, "/z80 what is this?")
        answer = await ada.sees(
            lambda m: m.reply_to is prompt and m.text.startswith("done · "), within_s=WITHIN_S
        )

        took_s = trio.current_time() - began
        assert took_s < A_PERSONS_TIME_S
        assert "ctx: z80" in answer.text
        assert "codex resume" in answer.text
        replies = {m.reply_to for m in ada.chat.everything if m.by_bot and m.reply_to is not None}
        assert replies == {prompt}, "the code was taken for a task"
        assert_token_was_not_seen(api, tmux.screen)
        unit = (home / ".config/systemd/user/takopi.service").read_text(encoding="utf-8")
        assert f"{home / 'tools'}" in re.findall(r'Environment="PATH=(.*)"', unit)[0].split(":")
        assert_token_was_not_seen(api, unit)
        config = tomllib.loads((home / ".takopi/takopi.toml").read_text(encoding="utf-8"))
        assert config["projects"]["z80"]["path"] == str(repo)
        tmux.press("C-c")
        await tmux.sees("ended 0")


def assert_token_was_not_seen(api: BotApi, text: str) -> None:
    secret = api.token.partition(":")[2]
    for piece in (api.token, secret, secret[:12]):
        assert piece not in text
