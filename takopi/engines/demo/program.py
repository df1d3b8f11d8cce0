"""The demo engine's process: one prompt in, lines out, answers in between, one result at the end.

Run as `python -I -S program.py --threads DIR [--resume ID] [--model NAME]`. The prompt comes on
stdin, as a JSON line; stdin stays open for answers and for the polite word to stop. It is short,
because the file that is run is compiled at every start, and what it imports is not.
"""

from __future__ import annotations

if __name__ == "__main__":
    import os
    import sys

    # The interpreter is isolated and does not know takopi. The standard library still goes first.
    # ruff: ignore[os-path-abspath] pathlib is too heavy for us
    sys.path.append(os.path.abspath(__file__).rsplit("/", 4)[0])

    from takopi.engines.demo.child.main import main

    sys.exit(main(sys.argv[1:]))
