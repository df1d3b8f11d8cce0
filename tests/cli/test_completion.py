from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.cli.command import BIN, Takopi

BASH = """
eval "$(takopi --show-completion)"
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
COMP_LINE="{words}"; COMP_POINT=${{#COMP_LINE}}
_takopi_completion takopi "${{COMP_WORDS[COMP_CWORD]}}" takopi
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
FISH = """
takopi --show-completion | source
complete --do-complete "{words}" | string split --fields 1 \\t
"""
CASES = [
    ("takopi ser", "service"),
    ("takopi doc", "doctor"),
    ("takopi service un", "uninstall"),
    ("takopi session ne", "new"),
    ("takopi cod", "codex"),
    ("takopi runs --js", "--json"),
]


def complete(takopi: Takopi, shell: str, script: str) -> list[str]:
    done = subprocess.run(
        [shell, "-c", script],
        env=takopi.environ | {"PATH": f"{BIN}:{takopi.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(("words", "found"), CASES)
@pytest.mark.parametrize(("shell", "script"), [("bash", BASH), ("fish", FISH)])
def test_shell_completes_what_can_be_typed(
    takopi: Takopi, shell: str, script: str, words: str, found: str
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert complete(takopi, shell, script.format(words=words)) == [found]


@pytest.mark.parametrize(("words", "found"), CASES)
@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_answered_as_they_ask(
    takopi: Takopi, shell: str, words: str, found: str
) -> None:
    outcome = takopi(
        environ={
            "_TAKOPI_COMPLETE": f"complete_{shell}",
            "_TYPER_COMPLETE_ARGS": words,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        }
    )
    assert outcome.code == 0, outcome.err
    assert found in outcome.out
    assert not takopi.home.exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_of_every_shell_can_be_installed(takopi: Takopi, shell: str) -> None:
    """Typer tells the shell by its process; a stand-in of that name is enough for it."""
    program = takopi.tools / shell
    program.symlink_to("/bin/sh")
    script = f"{BIN / 'takopi'} --show-completion; true"
    done = subprocess.run(
        [program, "-c", script],
        env=takopi.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert f"complete_{shell}" in done.stdout, done.stderr


def test_completing_starts_no_daemon(takopi: Takopi) -> None:
    takopi.write('bot_token = "123456789:AAx"\nchat_id = 5\napi_url = "http://127.0.0.1:9"\n')
    outcome = takopi(
        environ={"_TAKOPI_COMPLETE": "complete_bash", "COMP_WORDS": "takopi ", "COMP_CWORD": "1"}
    )
    assert "doctor" in outcome.out.split()
    assert not (takopi.home / "state.db").exists()
