from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from tests.real.clis import ENGINES
from tests.real.registry import Registry, serve_registry

SCRIPT = Path(__file__).parents[2] / "scripts" / "real-clis"
TEST = SCRIPT.with_name("test")
Install = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def registry() -> Generator[Registry]:
    if shutil.which("npm") is None:
        pytest.skip("npm is missing; it comes with Node.js")
    with serve_registry(SCRIPT) as registry:
        yield registry


@pytest.fixture
def install(registry: Registry, tmp_path: Path) -> Install:
    """Runs the script against whatever `registry.url` says, with nothing of this machine's npm."""

    def run(*command: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command or [str(SCRIPT)],
            env={
                **env,
                "PATH": os.environ["PATH"],
                "HOME": str(tmp_path / "home"),
                "TAKOPI_CLI_CACHE": str(tmp_path / "cache"),
                "TAKOPI_CLI_PAUSE_S": "0",
                "npm_config_registry": registry.url,
                "npm_config_globalconfig": str(tmp_path / "no-npmrc"),
            },
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    return run


def test_every_launcher_runs_its_pinned_version(install: Install, registry: Registry) -> None:
    done = install()
    assert done.returncode == 0, done
    folder = Path(done.stdout.strip())
    assert sorted(path.name for path in folder.iterdir()) == sorted(ENGINES)
    for engine in ENGINES:
        said = subprocess.check_output([folder / engine, "--version"], text=True)
        assert said.strip() == registry.versions[engine]


def test_a_second_run_asks_the_registry_for_nothing(install: Install, registry: Registry) -> None:
    first = install()
    registry.asked.clear()
    assert install().stdout == first.stdout
    assert registry.asked == []


def test_a_new_pin_is_installed_and_the_rest_is_left(
    install: Install, registry: Registry, tmp_path: Path
) -> None:
    install()
    (tmp_path / "cache" / "codex" / "stamp").write_text("@openai/codex@0.1.0\n")
    registry.asked.clear()
    assert install().returncode == 0
    assert registry.asked
    assert all("codex" in path for path in registry.asked)


@pytest.mark.parametrize("package", ["opencode-ai", "@openai/codex"])
def test_a_package_that_is_not_there_is_named(
    install: Install, registry: Registry, package: str
) -> None:
    registry.missing = package
    done = install()
    assert (done.returncode, done.stdout) == (1, "")
    assert f"the registry does not give --omit=optional {package}@" in done.stderr
    assert "(E404)" in done.stderr


def test_a_missing_build_for_this_platform_is_not_left_out_in_silence(
    install: Install, registry: Registry
) -> None:
    registry.missing = "@anthropic-ai/claude-code-.*"
    done = install()
    assert done.returncode == 1
    assert "(E404)" in done.stderr


def test_a_version_that_is_not_there_is_named(install: Install, registry: Registry) -> None:
    registry.versions["pi"] = "0.73.1"
    done = install()
    assert done.returncode == 1
    assert "the registry does not give @earendil-works/pi-coding-agent@" in done.stderr
    assert "(ETARGET)" in done.stderr


def test_a_package_that_is_not_what_was_promised_is_refused(
    install: Install, registry: Registry
) -> None:
    registry.spoilt = "opencode-ai"
    done = install()
    assert done.returncode == 1
    assert "(EINTEGRITY)" in done.stderr


def test_a_cli_that_says_another_version_is_refused_every_time(
    install: Install, registry: Registry, tmp_path: Path
) -> None:
    registry.says["opencode"] = "1.0.0"
    for _ in range(2):
        done = install()
        assert done.returncode == 1
        assert "opencode should be 1." in done.stderr
        assert "and says: 1.0.0" in done.stderr


def test_a_registry_that_comes_back_is_no_failure(install: Install, registry: Registry) -> None:
    registry.silent_for = 2
    assert install().returncode == 0


def test_a_registry_that_stays_away_is_tried_three_times_and_told_apart(
    install: Install, registry: Registry
) -> None:
    registry.silent_for = 1000
    done = install()
    assert (done.returncode, done.stdout) == (75, "")
    assert "the registry did not answer (E503, 3 tries): node-" in done.stderr
    assert len(registry.asked) == 3


def test_a_registry_that_nobody_serves_is_told_apart(install: Install, registry: Registry) -> None:
    registry.url = "http://127.0.0.1:1"
    done = install()
    assert done.returncode == 75
    assert "the registry did not answer (ECONNREFUSED, 3 tries)" in done.stderr


@pytest.mark.parametrize("ci", [{}, {"CI": "true"}], ids=["here", "in CI"])
def test_a_test_run_is_skipped_aloud_when_the_registry_stays_away(
    install: Install, registry: Registry, ci: dict[str, str]
) -> None:
    registry.silent_for = 1000
    done = install(str(TEST), "--real", "--collect-only", **ci)
    assert (done.returncode, done.stdout.count("\n")) == (0, 1)
    assert done.stdout.startswith("SKIPPED tests/real: the registry did not answer")


@pytest.mark.parametrize(
    ("ci", "code"), [({}, 0), ({"CI": "true"}, 1)], ids=["skipped here", "failed in CI"]
)
def test_a_test_run_without_a_package_is_a_failure_only_in_ci(
    install: Install, registry: Registry, ci: dict[str, str], code: int
) -> None:
    registry.missing = "opencode-ai"
    done = install(str(TEST), "--real", "--collect-only", **ci)
    assert done.returncode == code
    assert ("SKIPPED tests/real" in done.stdout) is (code == 0)
    assert "the registry does not give --omit=optional opencode-ai@" in done.stderr


def test_a_test_run_hands_its_arguments_on(install: Install) -> None:
    args = ["--collect-only", "-q", "-n0", "tests/real/test_installer.py", "-k", "hands_its"]
    done = install(str(TEST), "--real", *args)
    assert done.returncode == 0, done
    assert "test_a_test_run_hands_its_arguments_on" in done.stdout
    assert "1/" in done.stdout
