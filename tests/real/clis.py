"""The real CLIs, each in a home of its own, with the scripted model and no other network."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import trio

ENGINES = ("claude", "codex", "opencode", "pi")
# opencode alone takes seconds to start, and the machine may be busy with everything else.
RUN_S = 180


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run left: its exit code, the JSON of its lines, and its stderr."""

    code: int
    lines: list[dict[str, Any]]
    stderr: str


@dataclass(frozen=True, slots=True)
class Cli:
    """One CLI and where it runs. `env` is its whole environment."""

    engine: str
    program: Path
    cwd: Path
    env: Mapping[str, str]

    def argv(self, *options: str, resume: str | None = None) -> list[str]:
        """The command for one run that takes its prompt on stdin and answers in JSON lines."""
        program = str(self.program)
        match self.engine:
            case "claude":
                known = ["-p", "--output-format", "stream-json", "--verbose"]
                return [program, *known, *(["--resume", resume] if resume else []), *options]
            case "codex":
                known = ["exec", "--json", "--skip-git-repo-check", *options]
                return [program, *known, *(["resume", resume] if resume else []), "-"]
            case "opencode":
                known = ["run", "--format", "json"]
            case _:
                known = ["--print", "--mode", "json"]
        return [program, *known, *(["--session", resume] if resume else []), *options]

    async def run(self, prompt: str, *options: str, resume: str | None = None) -> Ran:
        """Run it to its end."""
        done = await trio.run_process(
            self.argv(*options, resume=resume),
            stdin=prompt.encode(),
            cwd=self.cwd,
            env=self.env,
            capture_stdout=True,
            capture_stderr=True,
            check=False,
        )
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.strip()]
        return Ran(done.returncode, lines, done.stderr.decode(errors="replace"))


def prepare(engine: str, *, folder: Path, root: Path, base_url: str) -> Cli:
    """Make everything below `root` that the launcher in `folder` needs to run against `base_url`.

    The temporary folder is a sibling of the home: below TMPDIR, codex would not start its sandbox.
    Whatever a CLI asks of the outside goes to the scripted model as to a proxy, which counts it
    as a failure. The project is a repository: else they look for one in every folder above it, and
    claude reads and writes its settings there.
    """
    home, cwd, tmp = root / "home", root / "project", root / "tmp"
    for place in (home, cwd, tmp):
        place.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "--quiet", str(cwd)], check=True)
    proxy = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), base_url)
    env = {
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "HOME": str(home),
        "TMPDIR": str(tmp),
        **proxy,
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
        **_SETUP[engine](home, base_url),
    }
    return Cli(engine, folder / engine, cwd, env)


def _setup_claude(_home: Path, base_url: str) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": base_url,
        "ANTHROPIC_API_KEY": "scripted",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "2",
        "DISABLE_AUTOUPDATER": "1",
    }


def _setup_codex(home: Path, base_url: str) -> dict[str, str]:
    # The name of a known model: codex gives others no apply_patch. Plugins are a clone of a
    # repository on the internet.
    _write(
        home / ".codex" / "config.toml",
        f"""\
model = "gpt-5.5-codex"
model_provider = "scripted"
check_for_update_on_startup = false

[analytics]
enabled = false

[features]
plugins = false
remote_plugin = false

[model_providers.scripted]
name = "scripted"
base_url = "{base_url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_API_KEY"
request_max_retries = 1
stream_max_retries = 2
""",
    )
    return {"SCRIPTED_API_KEY": "scripted"}


def _setup_opencode(home: Path, base_url: str) -> dict[str, str]:
    config = home / ".config" / "opencode"
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "scripted",
        "options": {"baseURL": f"{base_url}/v1", "apiKey": "scripted"},
        "models": {name: {"name": name} for name in ("scripted", "other")},
    }
    settings = {
        "model": "scripted/scripted",
        "autoupdate": False,
        "share": "disabled",
        "provider": {"scripted": provider},
    }
    _write(config / "opencode.json", json.dumps(settings))
    # It fetches its plugin package for this folder unless a lock file says that it has.
    plugin = {"dependencies": {"@opencode-ai/plugin": "*"}}
    _write(config / "package.json", json.dumps(plugin))
    _write(config / "package-lock.json", json.dumps({"packages": {"": plugin}}))
    (config / "node_modules").mkdir(exist_ok=True)
    return {
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
    }


def _setup_pi(home: Path, base_url: str) -> dict[str, str]:
    agent = home / ".pi" / "agent"
    provider = {
        "baseUrl": f"{base_url}/v1",
        "api": "openai-completions",
        "apiKey": "scripted",
        "models": [{"id": "scripted"}, {"id": "other"}],
    }
    _write(agent / "models.json", json.dumps({"providers": {"scripted": provider}}))
    settings = {
        "defaultProvider": "scripted",
        "defaultModel": "scripted",
        "retry": {"maxRetries": 2, "baseDelayMs": 100},
    }
    _write(agent / "settings.json", json.dumps(settings))
    return {"PI_OFFLINE": "1"}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


_SETUP: Mapping[str, Callable[[Path, str], dict[str, str]]] = {
    "claude": _setup_claude,
    "codex": _setup_codex,
    "opencode": _setup_opencode,
    "pi": _setup_pi,
}


def native_program(launcher: Path) -> Path:
    """What a launcher runs: a shell in between puts right an environment that is wrong.

    A launcher of more than one word has no native program, and stands for itself.
    """
    words: list[str] = re.findall(r'"\$\{0%/\*\}/([^"]+)"', launcher.read_text(encoding="utf-8"))
    return (launcher.parent / words[0]).resolve() if len(words) == 1 else launcher


def thread_of(engine: str, ran: Ran) -> str:
    """The id that continues a run's thread."""
    keys = {"claude": "session_id", "codex": "thread_id", "opencode": "sessionID", "pi": "id"}
    return cast("str", ran.lines[0][keys[engine]])


def answer_of(engine: str, ran: Ran) -> str:
    """The last words of a run, out of the lines of its CLI."""
    match engine:
        case "claude":
            said = [line["result"] for line in ran.lines if line["type"] == "result"]
        case "codex":
            items = [line["item"] for line in ran.lines if line["type"] == "item.completed"]
            said = [item["text"] for item in items if item["type"] == "agent_message"]
        case "opencode":
            said = [line["part"]["text"] for line in ran.lines if line["type"] == "text"]
        case _:
            ends = [line["message"] for line in ran.lines if line["type"] == "message_end"]
            said = [
                part["text"]
                for message in ends
                if message["role"] == "assistant"
                for part in message["content"]
                if part["type"] == "text"
            ]
    return cast("str", said[-1]) if said else ""
