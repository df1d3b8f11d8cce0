"""The sample project of the demo: a small git repository with one test that fails."""

from __future__ import annotations

from pathlib import Path

ALIAS = "aquarium"
TOOLS = "tools"
"""The same folder once more: its runs are offered the tools of the sample MCP server."""

GIT_DEADLINE_S = 30
CURE = '{"cuttlefish": 8, "nautilus": 90, "octopus": 8, "squid": 8}'
"""What arms.json should say, on one line that can be typed into a chat."""

_MISTAKE = CURE.replace('"octopus": 8', '"octopus": 7')

_FILES = {
    "README.md": """\
# Aquarium

Who lives here, and how many arms they have. `python3 -m unittest` checks it; one test fails.
""",
    "aquarium.py": '''\
"""Counts the arms of the animals in a tank."""

import json
from pathlib import Path

ARMS = json.loads(Path(__file__).with_name("arms.json").read_text())


def count_arms(tank):
    """All arms of all animals in the tank."""
    return sum(ARMS[animal] for animal in tank)


if __name__ == "__main__":
    for animal, arms in ARMS.items():
        print(f"{animal:>10} {arms:3}")
''',
    "arms.json": f"{_MISTAKE}\n",
    "test_aquarium.py": """\
import unittest

from aquarium import count_arms


class CountArms(unittest.TestCase):
    def test_empty_tank_has_no_arms(self):
        self.assertEqual(count_arms([]), 0)

    def test_octopus_has_eight_arms(self):
        self.assertEqual(count_arms(["octopus"]), 8)

    def test_arms_of_different_animals_add_up(self):
        self.assertEqual(count_arms(["nautilus", "squid"]), 98)


if __name__ == "__main__":
    unittest.main()
""",
    ".gitignore": "__pycache__/\n",
}

# Nothing that the person has set up for their own repositories has a say in this one.
_SETTINGS = {
    "user.name": "Ada",
    "user.email": "ada@example.org",
    "commit.gpgSign": "false",
    "core.hooksPath": "/dev/null",
}


async def make_project(folder: Path) -> None:
    """Make the folder, and in it the repository with its first commit."""
    from takopi.projects.git import git, git_deadline

    _write_files(folder)
    with git_deadline(GIT_DEADLINE_S):
        for args in (
            ("init", "--quiet", "--initial-branch=main", "--template="),
            *(("config", "--local", name, value) for name, value in _SETTINGS.items()),
            ("add", "--all", "--force"),
            ("commit", "--quiet", "--message=Open the aquarium"),
        ):
            (await git(folder, *args)).checked()


def _write_files(folder: Path) -> None:
    folder.mkdir()
    for name, text in _FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
