"""The pi engine: `pi --print --mode json`."""
