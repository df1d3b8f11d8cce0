from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import Takopi
from tests.real.clis import ENGINES

pytestmark = pytest.mark.real


def test_doctor_reads_versions_and_logins_of_the_real_clis(
    cli_folder: Path, tmp_path: Path
) -> None:
    nobody = Takopi(tmp_path.resolve())
    nobody.write('transports = ["web"]\n')
    path = f"{cli_folder}:{nobody.environ['PATH']}"
    outcome = nobody("doctor", "--json", environ={"PATH": path})

    found = {row["check"]: row for row in json.loads(outcome.out)["findings"]}
    for engine in ENGINES:
        assert found[engine]["what"].startswith(f"{engine} "), found[engine]
    for engine in ("claude", "codex"):
        assert found[engine]["what"].endswith("is not logged in")
    assert found["claude"]["way_out"] == "claude auth login"
