"""The codex engine: `codex exec --json`."""
