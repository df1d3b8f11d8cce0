"""Completion as a person meets it: installed in a shell, then typed into a new one."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from tests.cli.command import BIN, Takopi
from tests.turns.terminal import Terminal

PROMPT = "ready>"
RC_FILES = {
    "bash": (".bashrc", f"PS1='{PROMPT}'\n"),
    "zsh": (".zshrc", f"PS1='{PROMPT}'\n"),
    "fish": (
        ".config/fish/config.fish",
        # What fish suggests unasked would ask takopi at every key.
        f"function fish_prompt; echo -n '{PROMPT}'; end; set -g fish_autosuggestion_enabled 0\n",
    ),
}
"""What each shell reads at its start, and goes on reading after an installation."""

TYPED = {
    "takopi doc": "takopi doctor",
    "takopi service un": "takopi service uninstall",
    "takopi session ne": "takopi session new",
    "takopi cod": "takopi codex",
    "takopi runs --js": "takopi runs --json",
    "takopi config get lim": "takopi config get limits.drain_s",
}
CONFIG = 'bot_token = "123456789:AAx"\nchat_id = 5\nlimits.drain_s = 3\n'

MISSING = [shell for shell in RC_FILES if shutil.which(shell) is None]
if MISSING and os.environ.get("TAKOPI_NEEDS_SHELLS"):
    raise RuntimeError(f"{MISSING[0]} is missing, and these tests were to use it")


@pytest.mark.parametrize("shell", RC_FILES)
def test_shell_completes_what_can_be_typed_from_the_first_tab_on(
    takopi: Takopi, shell: str
) -> None:
    if shell in MISSING:
        pytest.skip(f"{shell} is not installed (on Debian: apt-get install {shell})")
    name, text = RC_FILES[shell]
    rc_file = takopi.folder / name
    rc_file.parent.mkdir(parents=True, exist_ok=True)
    rc_file.write_text(text, encoding="utf-8")
    # Without it fish begins by reading every manual of the machine.
    (takopi.folder / ".local/share/fish/generated_completions").mkdir(parents=True)
    takopi.write(CONFIG)
    environ = takopi.environ | {"PATH": f"{BIN}:{takopi.environ['PATH']}", "LANG": "C.UTF-8"}
    # A shell that has nothing more to do would hand its process over, and Typer asks who called.
    install = [shell, "-c", "takopi --install-completion; true"]
    subprocess.run(install, env=environ, check=True, capture_output=True, timeout=120)

    with Terminal([shell], cwd=takopi.tools, environ=environ, columns=100, lines=30) as terminal:
        terminal.until(PROMPT)
        for typed, completed in TYPED.items():
            terminal.write(typed)
            terminal.press("Tab")
            terminal.until(completed)
            terminal.press("C-u")
        terminal.write("takopi d")
        terminal.press("Tab", "Tab")
        terminal.until("demo")
        terminal.until("doctor")


def test_completing_starts_no_daemon(takopi: Takopi) -> None:
    takopi.write(f'{CONFIG}api_url = "http://127.0.0.1:9"\n')
    outcome = takopi(
        environ={"_TAKOPI_COMPLETE": "complete_bash", "COMP_WORDS": "takopi ", "COMP_CWORD": "1"}
    )
    assert "doctor" in outcome.out.split()
    assert not (takopi.home / "state.db").exists()


def test_completing_a_key_of_a_config_that_cannot_be_read_says_nothing(takopi: Takopi) -> None:
    takopi.write("chat_id =\n")
    words = {"COMP_WORDS": "takopi config get c", "COMP_CWORD": "3"}
    outcome = takopi(environ={"_TAKOPI_COMPLETE": "complete_bash", **words})
    assert (outcome.code, outcome.out.strip(), outcome.err) == (0, "", "")
