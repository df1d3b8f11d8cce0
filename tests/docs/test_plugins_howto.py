"""The plugins of the how-to, written down as they stand there and installed, are engines."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs/how-to/plugins.md"
DEADLINE_S = 120

PARROT = """\
#!/bin/sh
if [ "$1" = --version ]; then echo 1.0; exit; fi
prompt=$(cat)
if [ "$prompt" = crash ]; then echo 'no seeds left' >&2; exit 3; fi
echo "$@" >&2
cat "$0.lines"
"""

# Runs inside an interpreter of its own, where the package is installed.
USE = """
import asyncio, json, os, sys
from pathlib import Path

import trio

from takopi.cli.names import known_names
from takopi.config.load import find_problems
from takopi.core.events import Answer
from takopi.core.ids import EngineId
from takopi.core.ports import EngineJob
from takopi.engines.catalog import load_catalog
from takopi.engines.registry import open_engines
from takopi.kit.proc import open_keeper


class Person:
    async def ask(self, ask):
        await trio.lowlevel.checkpoint()
        return Answer("allow", replies=(("forty-two",),))


async def hermit(stream):
    heard = b""
    async def hear():
        nonlocal heard
        while b"\\n" not in heard:
            heard += await stream.receive_some()
        line, _, heard = heard.partition(b"\\n")
        return json.loads(line)
    async def say(**fields):
        await stream.send_all(json.dumps(fields).encode() + b"\\n")
    prompt = (await hear())["prompt"]
    if prompt != "hang up":
        await say(type="step", id="s", text="meditate")
        await say(type="question", id="q", text="how many?")
        await say(type="answer", text=f"{prompt}: {(await hear())['answer']}")
    await stream.aclose()


async def run(engines, name, prompt, resume=None):
    events = []
    job = EngineJob(prompt, Path.cwd(), resume=resume)
    engine = engines.get(EngineId(name))
    ended = await engine.run(job, events.append, Person())
    print(name, [type(event).__name__ for event in events], ended.ok, ended.answer or ended.error)
    if ended.resume:
        assert engine.parse_resume(f"x\\n{engine.resume_line(ended.resume)}\\n") == ended.resume
    return ended


async def main():
    catalog = load_catalog(Path.cwd())
    print("broken", catalog.broken)
    print("problems", find_problems(Path("config.toml").read_bytes(), known_names(), environ={}))
    types = catalog.settings_types()
    async with trio.open_nursery() as nursery, open_keeper(on_lost=lambda: None) as keeper:
        (listener,) = await nursery.start(
            lambda task_status: trio.serve_tcp(hermit, 0, host="127.0.0.1", task_status=task_status)
        )
        port = listener.socket.getsockname()[1]
        async with open_engines(catalog, keeper=keeper, environ=os.environ) as engines:
            engines.configure({"hermit": types["hermit"](port=port)})
            ended = await run(engines, "parrot", "hello")
            await run(engines, "parrot", "hello", resume=ended.resume)
            await run(engines, "parrot", "crash")
            await run(engines, "hermit", "hello")
            await run(engines, "hermit", "hang up")
        nursery.cancel_scope.cancel()


trio.run(main)
"""


def of_the_page(kind: str) -> list[str]:
    return [block.text for block in blocks(kind) if block.page == PAGE]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder as pip leaves it, with the modules of the page and what pyproject.toml says."""
    site = tmp_path / "site"
    site.mkdir()
    project = tomllib.loads(of_the_page("toml")[0])
    names = project["tool"]["setuptools"]["py-modules"]
    for name, code in zip(names, of_the_page("python"), strict=True):
        (site / f"{name}.py").write_text(code, encoding="utf-8")
    metadata = site / "takopi_birds-1.0.dist-info"
    metadata.mkdir()
    name, version = project["project"]["name"], project["project"]["version"]
    (metadata / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n", encoding="utf-8")
    points = project["project"]["entry-points"]["takopi.engines"]
    lines = [f"{name} = {value}" for name, value in points.items()]
    said = "\n".join(["[takopi.engines]", *lines, ""])
    (metadata / "entry_points.txt").write_text(said, encoding="utf-8")
    return site


def test_plugins_of_the_page_are_engines(site: Path, tmp_path: Path) -> None:
    parrot = tmp_path / "parrot"
    parrot.write_text(PARROT, encoding="utf-8")
    parrot.chmod(0o755)
    (tmp_path / "parrot.lines").write_text(of_the_page("json")[0], encoding="utf-8")
    (tmp_path / "config.toml").write_text(of_the_page("toml")[1], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", USE],
        cwd=tmp_path,
        env={
            **os.environ,
            "HOME": str(tmp_path),
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "PYTHONPATH": f"{ROOT}:{site}",
        },
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "broken ()",
        "problems ()",
        "parrot ['Started', 'Action'] True Pretty bird!",
        "parrot ['Started', 'Action'] True Pretty bird!",
        "parrot [] False parrot exited with code 3: no seeds left",
        "hermit ['Started', 'Action'] True hello: forty-two",
        "hermit ['Started'] False hermit hung up without an answer.",
    ]


def test_plugins_of_the_page_import_nothing_of_takopi_but_its_api() -> None:
    for code in of_the_page("python"):
        assert set(re.findall(r"(?:from|import) (takopi[\w.]*)", code)) == {"takopi.api"}


def test_every_module_is_named_on_the_page() -> None:
    project = tomllib.loads(of_the_page("toml")[0])
    for name in project["tool"]["setuptools"]["py-modules"]:
        assert f"`{name}.py`" in PAGE.read_text(encoding="utf-8")
