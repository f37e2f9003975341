"""One file a command: its options, one call, one report. `cli.py` puts them together."""
