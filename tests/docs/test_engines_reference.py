"""The reference of the engines shows how each is really called, continued and installed."""

from __future__ import annotations

import re

import msgspec
import pytest

from takopi.config.schema import EngineSettings
from takopi.core.ids import ResumeToken
from takopi.core.ports import EngineJob
from tests.docs.pages import ROOT
from tests.engines.long_runs import CWD, SPECS

PAGE = (ROOT / "docs/reference/engines.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
ROWS = {
    name: cells.split(" | ")
    for name, cells in re.findall(r"^\| (\w+) \| ((?:yes|no) \| .+) \|$", PAGE, re.MULTILINE)
}
CLIS = [engine for engine in SPECS if engine != "demo"]


def test_every_engine_is_in_the_reference() -> None:
    assert set(ROWS) == set(SPECS)
    assert set(SECTIONS) >= set(SPECS)


@pytest.mark.parametrize("engine", CLIS)
def test_row_of_an_engine_says_what_takopi_says(engine: str) -> None:
    spec = SPECS[engine]
    assert ROWS[engine] == [
        "yes" if spec.asks else "no",
        f"`{spec.resume_line(ResumeToken(spec.id, '<id>'))}`",
        f"`{spec.install}`",
        f"`{spec.login}`",
    ]


def test_row_of_demo_says_what_takopi_says() -> None:
    demo = SPECS["demo"]
    assert demo.asks
    assert ROWS["demo"][:2] == ["yes", f"`{demo.resume_line(ResumeToken(demo.id, '<id>'))}`"]


@pytest.mark.parametrize("engine", CLIS)
def test_engine_is_called_as_the_page_shows(engine: str) -> None:
    spec = SPECS[engine]
    settings = spec.settings_type()
    new = spec.argv(settings, EngineJob("prompt", CWD))
    token = ResumeToken(spec.id, "<id>")
    resumed = spec.argv(settings, EngineJob("prompt", CWD, resume=token))
    shown = re.findall(r"^```text\n(.*?)^```", SECTIONS[engine], re.MULTILINE | re.DOTALL)
    assert shown == [f"{' '.join([engine, *new])}\n{' '.join([engine, *resumed])}\n"]


@pytest.mark.parametrize("engine", CLIS)
def test_oldest_version_and_keys_of_its_own_are_named(engine: str) -> None:
    spec = SPECS[engine]
    assert f"Version {'.'.join(map(str, spec.oldest))} or newer" in SECTIONS[engine]
    shared = {field.name for field in msgspec.structs.fields(EngineSettings)}
    own = {field.name for field in msgspec.structs.fields(spec.settings_type)} - shared
    named = re.search(r"Keys of its own: ([^.]+)\.", SECTIONS[engine])
    assert set(re.findall(r"`(\w+)`", named[1] if named else "")) == own
