"""The interview of /plan: questions as buttons, a saved brief, and one run with the answers."""
