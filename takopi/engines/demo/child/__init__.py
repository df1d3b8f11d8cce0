"""The demo engine's own process: standard library only, and few of its modules, to start fast."""
