"""The opencode engine: `opencode run --format json`."""
