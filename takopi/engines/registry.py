"""Which engines there are."""

from __future__ import annotations

from takopi.config.schema import EngineSettings


def settings_types() -> dict[str, type[EngineSettings]]:
    """The settings of every engine by its id: what its table in the config may say."""
    from takopi.engines.claude.spec import ClaudeSettings
    from takopi.engines.codex.spec import CodexSettings
    from takopi.engines.opencode.spec import OpencodeSettings
    from takopi.engines.pi.spec import PiSettings

    return {
        "claude": ClaudeSettings,
        "codex": CodexSettings,
        "opencode": OpencodeSettings,
        "pi": PiSettings,
        "demo": EngineSettings,
    }
