"""Sessions of turns on disk: a plan that can be read before it happens, and a report after."""
