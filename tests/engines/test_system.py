from __future__ import annotations

from pathlib import Path

import pytest

from takopi.core.ids import EngineId
from takopi.core.ports import EngineJob
from takopi.engines.catalog import load_catalog
from takopi.engines.oneway import prompt_after_system
from takopi.engines.spec import EngineSpec


@pytest.mark.parametrize("engine", ["claude", "codex", "opencode", "pi", "demo"])
def test_engine_takes_an_instruction_unless_that_goes_in_front_of_the_prompt(
    engine: str, tmp_path: Path
) -> None:
    entry = load_catalog(tmp_path).entries[EngineId(engine)]
    assert isinstance(entry, EngineSpec)
    job = EngineJob("say: hello", tmp_path, system="Be brief.")
    opening = entry.dialect(entry.settings_type(), job).opening()
    assert entry.takes_system is (opening != prompt_after_system(job))
