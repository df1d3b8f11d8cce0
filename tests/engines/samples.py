"""Recorded conversations of the CLIs, and what a dialect must make of each."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from takopi.engines.spec import Dialect, Said

DATA = Path(__file__).parent.parent / "data"


@dataclass(frozen=True)
class Sample:
    """Lines of stdout, the exit code and stderr of one recorded run."""

    path: Path
    lines: tuple[bytes, ...]
    code: int
    stderr: str

    @property
    def expected_path(self) -> Path:
        return self.path.with_suffix(".events.json")


def sample_paths(engine: str) -> list[Path]:
    return sorted((DATA / engine).glob("*.jsonl"))


def load_sample(path: Path) -> Sample:
    """Read a recording. In two-way recordings every line says its direction in `_dir`."""
    raw = path.read_bytes().splitlines()
    command = path.with_name(path.name + ".cmd")
    stderr = path.with_name(path.name + ".stderr")
    code = json.loads(command.read_text())["rc"] if command.exists() else 0
    lines: list[bytes] = []
    for line in raw:
        entry = cast("dict[str, Any]", json.loads(line))
        direction = entry.pop("_dir", None)
        if direction is None:
            lines.append(line)
        elif direction == "<stdout":
            entry.pop("_t", None)
            lines.append(json.dumps(entry, ensure_ascii=False).encode())
        elif direction == "exit":
            code = entry["rc"]
    return Sample(path, tuple(lines), code, stderr.read_text() if stderr.exists() else "")


def plain(value: object) -> Any:
    """An event as JSON, its class first and its defaults left out, so that diffs stay short."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            field.name: plain(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if not _is_default(field, getattr(value, field.name))
        }
        return {"is": type(value).__name__, **fields}
    if isinstance(value, tuple | list):
        return [plain(item) for item in cast("tuple[object, ...]", value)]
    return value


def _is_default(field: dataclasses.Field[Any], value: object) -> bool:
    if field.default is not dataclasses.MISSING:
        return bool(value == field.default)
    if field.default_factory is not dataclasses.MISSING:
        return bool(value == field.default_factory())
    return False


def play(dialect: Dialect, sample: Sample) -> dict[str, Any]:
    """Everything the dialect says of a recording, ready to compare with its expectations."""
    said: list[Said] = []
    for line in sample.lines:
        said.extend(dialect.read(line))
    return {"said": plain(said), "completed": plain(dialect.end(sample.code, sample.stderr))}
