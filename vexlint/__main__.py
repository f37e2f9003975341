"""`python -m vexlint`: the command line."""

from vexlint.cli import main

if __name__ == "__main__":
    main()
