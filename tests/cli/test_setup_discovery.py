from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio

from takopi.cli.setup_discovery import Found, Paths, find_engines, find_paths, join_paths
from tests.kit.processes import MARK, alive, new_mark

ENGINES = {"claude": "claude", "codex": "codex", "opencode": "opencode", "pi": "pi"}
OWN = "/usr/bin:/bin"
PLENTY_S = 60.0


def install(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    return program


def person(home: Path, profile: str, *, shell: str = "/bin/sh") -> dict[str, str]:
    """The environment of somebody with this profile, from which it was not read."""
    home.mkdir(exist_ok=True)
    (home / ".profile").write_text(profile, encoding="utf-8")
    return {"HOME": str(home), "SHELL": shell, "PATH": OWN}


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
async def test_program_that_only_the_profile_has_on_its_path_is_found(
    tmp_path: Path, shell: str
) -> None:
    codex = install(tmp_path / "home/tools", "codex")
    environ = person(tmp_path / "home", 'PATH="$HOME/tools:$PATH"\n', shell=shell)

    paths = await find_paths(environ, secret="", within_s=PLENTY_S)

    assert find_engines(ENGINES, paths) == (Found("codex", codex, on_path=False),)
    assert paths.joined.startswith(f"{OWN}:")
    assert paths.joined.split(":").count("/usr/bin") == 1


async def test_program_that_this_shell_finds_comes_from_there(tmp_path: Path) -> None:
    mine = install(tmp_path / "mine", "pi")
    install(tmp_path / "home/tools", "pi")
    environ = person(tmp_path / "home", 'PATH="$HOME/tools:$PATH"\n')
    environ["PATH"] = f"{tmp_path / 'mine'}:{OWN}"

    paths = await find_paths(environ, secret="", within_s=PLENTY_S)

    assert find_engines(ENGINES, paths) == (Found("pi", mine, on_path=True),)


async def test_noise_of_a_profile_is_not_taken_for_the_path(tmp_path: Path) -> None:
    install(tmp_path / "home/tools", "claude")
    profile = (
        'echo "Welcome! PATH=/wrong"; printf "/wrong:/wrong"; echo oops >&2\n'
        'head -c 3000000 /dev/zero | tr "\\0" x\n'
        'PATH="$HOME/tools:$PATH"\ntrap \'echo "bye /wrong"\' EXIT\nread -r answer\n'
    )
    environ = person(tmp_path / "home", profile)

    paths = await find_paths(environ, secret="", within_s=PLENTY_S)

    assert paths.told
    assert paths.joined.split(":")[2:][0] == str(tmp_path / "home/tools")
    assert "wrong" not in paths.joined


async def test_profile_that_hangs_is_left_behind_with_all_it_started(tmp_path: Path) -> None:
    mark = new_mark()
    # What is takopi's own does not reach a child, so the profile itself sets the mark.
    profile = f"export {MARK}={mark}\nsetsid sleep 600 &\nexec sleep 600\n"
    environ = person(tmp_path / "home", profile)

    with trio.fail_after(PLENTY_S):
        paths = await find_paths(environ, secret="", within_s=2.0)

    assert paths == Paths(OWN, OWN, told=False)
    assert alive(mark) == []


@pytest.mark.parametrize("shell", ["/nowhere/sh", "/bin/false"])
async def test_shell_that_tells_nothing_leaves_the_path_as_it_is(
    tmp_path: Path, shell: str
) -> None:
    paths = await find_paths(person(tmp_path, "", shell=shell), secret="", within_s=PLENTY_S)
    assert paths == Paths(OWN, OWN, told=False)


async def test_profile_does_not_see_the_token(tmp_path: Path) -> None:
    environ = person(tmp_path / "home", 'env > "$HOME/seen"\n')
    environ |= {"TAKOPI_BOT_TOKEN": "1:secret", "OTHER": "x1:secret"}

    await find_paths(environ, secret="1:secret", within_s=PLENTY_S)

    seen = (tmp_path / "home/seen").read_text(encoding="utf-8")
    assert "HOME=" in seen
    assert "secret" not in seen


def test_paths_are_joined_in_order_each_folder_once_and_only_absolute_ones() -> None:
    assert join_paths("/a:/b::.", "/c:/a:relative:/b") == "/a:/b:/c"


def test_command_of_the_config_is_looked_for_instead_of_the_name(tmp_path: Path) -> None:
    mine = install(tmp_path, "my-codex")
    install(tmp_path, "codex")
    paths = Paths(os.fspath(tmp_path), os.fspath(tmp_path), told=True)
    commands = {"claude": "~nobody-here/x", "codex": "my-codex", "pi": str(tmp_path / "gone")}
    assert find_engines(commands, paths) == (Found("codex", mine, on_path=True),)
