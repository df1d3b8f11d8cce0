from __future__ import annotations

import pytest

from tests.config.names import parsed, problems

PROJECT = "[projects.z80]\npath = '/a'\n"
ONE_WAY = "needs either a command or a url"


def test_server_has_a_command_or_a_url() -> None:
    config = parsed(
        "[mcp.servers.a-1_b]\ncommand = 'npx'\nprojects = ['Z80']\n"
        f"[mcp.servers.b]\nurl = 'http://127.0.0.1:8931/mcp'\n{PROJECT}"
    )
    assert config.mcp.servers["a-1_b"].command == "npx"
    assert config.mcp.servers["b"].url == "http://127.0.0.1:8931/mcp"


@pytest.mark.parametrize("table", ["", "command = 'npx'\nurl = 'http://127.0.0.1/mcp'"])
def test_server_with_neither_or_both_is_a_problem(table: str) -> None:
    (problem,) = problems(f"[mcp.servers.a]\n{table}\n")
    assert (problem.key, problem.what) == ("mcp.servers.a", ONE_WAY)


def test_command_that_is_no_text_is_one_problem() -> None:
    (problem,) = problems("[mcp.servers.a]\ncommand = 5\n")
    assert problem.key == "mcp.servers.a.command"


@pytest.mark.parametrize("name", ["a__b", "a_", '"a b"', '""', "a" * 33])
def test_name_that_would_not_tell_tools_apart_is_a_problem(name: str) -> None:
    (problem,) = problems(f"[mcp.servers.{name}]\ncommand = 'npx'\n")
    assert "cannot be the name of a server" in problem.what


@pytest.mark.parametrize("url", ["127.0.0.1:8931", "ftp://127.0.0.1/mcp"])
def test_url_must_be_one(url: str) -> None:
    (problem,) = problems(f"[mcp.servers.a]\nurl = '{url}'\n")
    assert problem.key == "mcp.servers.a.url"


def test_project_of_a_server_must_be_configured() -> None:
    text = f"[mcp.servers.a]\ncommand = 'npx'\nprojects = ['z80', 'other']\n{PROJECT}"
    (problem,) = problems(text)
    assert (problem.key, problem.what) == ("mcp.servers.a.projects", 'no project "other"')
