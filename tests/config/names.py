"""A small world that a config of the tests may name, and the shortest way to judge a text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from takopi.config.load import find_problems, parse
from takopi.config.loaded import Config, Names
from takopi.config.schema import EngineSettings
from takopi.core.errors import Problem


class PluginSettings(EngineSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table of an engine that takopi does not come with."""

    speed: Literal["slow", "fast"] = "slow"
    tools: tuple[str, ...] = ()


NAMES = Names(
    engines={"claude": EngineSettings, "codex": EngineSettings, "plugin": PluginSettings},
    commands=frozenset({"cancel"}),
)


def parsed(text: str, *, environ: Mapping[str, str] | None = None, to_run: bool = False) -> Config:
    """The config that a text means."""
    return parse(text.encode(), NAMES, environ=environ or {}, to_run=to_run)


def problems(
    text: str, *, environ: Mapping[str, str] | None = None, to_run: bool = False
) -> list[Problem]:
    """Everything that is wrong with a text."""
    return list(find_problems(text.encode(), NAMES, environ=environ or {}, to_run=to_run))


def keys(text: str, *, environ: Mapping[str, str] | None = None, to_run: bool = False) -> list[str]:
    """The keys that something is wrong with."""
    return [problem.key for problem in problems(text, environ=environ, to_run=to_run)]
