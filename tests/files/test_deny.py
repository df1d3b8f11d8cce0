from __future__ import annotations

import pytest

from takopi.config.schema import Files
from takopi.files.deny import is_denied


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        (".git/config", ".git"),
        ("sub/.git/hooks/x", ".git"),
        (".GIT/config", ".git"),
        (".env", ".env"),
        ("app/.env.local", ".env.*"),
        ("keys/server.PEM", "*.pem"),
        ("secret/a/b", "secret/**"),
        ("secret", "secret/**"),
        ("a/secret/b", "**/secret/b"),
        ("secret/b", "**/secret/b"),
        ("a/b/c.txt", "a/*/c.txt"),
        ("a/b/c.txt", "/a/b"),
        ("conf/x1.key/deep", "conf/x?.key"),
        ("line\nbreak.pem", "*.pem"),
        ("a.txt", "**"),
        ("a/b/c.txt", "**"),
        ("a/b/c.txt", "/**/**"),
        ("a/b/c.txt", "**/*"),
    ],
)
def test_pattern_denies_the_path_and_what_is_below(path: str, pattern: str) -> None:
    assert is_denied(path.split("/"), [pattern])


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        (".gitignore", ".git"),
        ("a.git/x", ".git"),
        ("environment", ".env"),
        ("a.pem.txt", "*.pem"),
        ("x/secret/b", "secret/b"),
        ("a/b/d/c.txt", "a/*/c.txt"),
        ("axb", "a.b"),
        ("a.txt", "[a].txt"),
    ],
)
def test_pattern_leaves_other_paths_alone(path: str, pattern: str) -> None:
    assert not is_denied(path.split("/"), [pattern])


@pytest.mark.parametrize(
    "path", [".git/HEAD", ".env", "x/.env.prod", ".ssh/id_ed25519", "tls/a.key", ".aws/credentials"]
)
def test_secrets_are_denied_by_default(path: str) -> None:
    assert is_denied(path.split("/"), Files().deny)
