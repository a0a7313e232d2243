"""`python -m shellkit`: the same as the `shellkit` command."""

from .cli import main

if __name__ == "__main__":
    main()
