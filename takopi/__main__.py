"""Lets `python -m takopi` be the `takopi` command."""

from takopi.cli.main import main

if __name__ == "__main__":
    main()
