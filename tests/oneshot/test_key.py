from __future__ import annotations

from pathlib import Path

import pytest

from takopi.config.schema import Oneshot as Settings
from takopi.core.errors import NotConfigured
from takopi.oneshot.key import find_key


def key_file(tmp_path: Path, data: bytes, *, mode: int = 0o600) -> Path:
    path = tmp_path / "key"
    path.write_bytes(data)
    path.chmod(mode)
    return path


def refusal(settings: Settings, **environ: str) -> NotConfigured:
    with pytest.raises(NotConfigured) as caught:
        find_key(settings, environ)
    assert "canary" not in f"{caught.value.what} {caught.value.way_out}"
    return caught.value


def test_no_key_is_none() -> None:
    assert find_key(Settings(), {}) is None
    assert find_key(Settings(), {"ANTHROPIC_API_KEY": " "}) is None


def test_the_file_comes_before_the_environment(tmp_path: Path) -> None:
    path = key_file(tmp_path, b" canary\n")
    environ = {"ANTHROPIC_API_KEY": "other"}
    assert find_key(Settings(api_key_file=path), environ) == "canary"
    assert find_key(Settings(), environ) == "other"


def test_a_file_that_others_may_read_is_refused_with_the_command_that_mends_it(
    tmp_path: Path,
) -> None:
    path = key_file(tmp_path, b"canary", mode=0o640)
    error = refusal(Settings(api_key_file=path), ANTHROPIC_API_KEY="other")
    assert "mode 0640" in error.what
    assert error.way_out == f"chmod 600 {path}"


@pytest.mark.parametrize("data", [b"", b"\n", b"canary two", b"canary\nx", b"\xffcanary", b"k\x00"])
def test_a_file_without_a_key_is_refused(tmp_path: Path, data: bytes) -> None:
    error = refusal(Settings(api_key_file=key_file(tmp_path, data)))
    assert error.what.endswith("does not hold an API key")


def test_a_file_that_is_not_there_or_none_is_refused(tmp_path: Path) -> None:
    assert "cannot be read" in refusal(Settings(api_key_file=tmp_path / "none")).what
    assert "is not a file" in refusal(Settings(api_key_file=tmp_path)).what


def test_a_variable_without_a_key_is_refused() -> None:
    assert "ANTHROPIC_API_KEY" in refusal(Settings(), ANTHROPIC_API_KEY="canary two").what
