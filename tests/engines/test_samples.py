"""Every recording of a CLI has its expected events beside it, and the dialect makes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from takopi.core.ids import ResumeToken
from takopi.core.ports import EngineJob
from takopi.engines.claude.spec import SPEC as CLAUDE
from takopi.engines.codex.spec import SPEC as CODEX
from takopi.engines.demo.spec import spec as demo_spec
from takopi.engines.opencode.spec import SPEC as OPENCODE
from takopi.engines.pi.spec import SPEC as PI
from takopi.engines.spec import EngineSpec
from tests.engines.samples import DATA, load_sample, play, sample_paths

DEMO = demo_spec(Path("/home/user/.takopi/demo"))
SPECS: dict[str, EngineSpec[Any]] = {spec.id: spec for spec in (CLAUDE, CODEX, OPENCODE, PI, DEMO)}
RECORDINGS = [path for engine in SPECS for path in sample_paths(engine)]


def job_of(path: Path, spec: EngineSpec[Any]) -> EngineJob:
    """The job that the recorded command was: its folder, its prompt, the thread it resumed."""
    beside = path.with_name(path.name + ".cmd")
    if not beside.exists():
        return EngineJob("", Path("/home/user/project"))
    command = cast("dict[str, Any]", json.loads(beside.read_text(encoding="utf-8")))
    words = cast("list[str]", command.get("cmd", []))
    resume: ResumeToken | None = None
    for flag in ("resume", "--resume", "--session"):
        if flag in words:
            resume = ResumeToken(spec.id, words[words.index(flag) + 1])
    return EngineJob(
        command.get("stdin") or "", Path(command.get("cwd", "/home/user/project")), resume=resume
    )


def test_every_engine_has_recordings() -> None:
    assert {path.parent.name for path in RECORDINGS} == set(SPECS)
    assert all((DATA / engine).is_dir() for engine in SPECS)


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_recording_becomes_its_expected_events(path: Path) -> None:
    sample = load_sample(path)
    assert sample.expected_path.exists(), f"{path} has no expectations"
    spec = SPECS[path.parent.name]
    said = play(spec.dialect(spec.settings_type(), job_of(path, spec)), sample)
    assert said == json.loads(sample.expected_path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_recording_keeps_the_contract(path: Path) -> None:
    sample = load_sample(path)
    spec = SPECS[path.parent.name]
    told = play(spec.dialect(spec.settings_type(), job_of(path, spec)), sample)
    kinds = [event["is"] for event in told["said"]]
    assert kinds.count("Started") <= 1
    completed = told["completed"]
    assert completed["ok"] or completed["error"]
    for event in told["said"]:
        if event["is"] == "Action":
            assert "\n" not in event["title"]
            assert len(event["title"]) <= 200
