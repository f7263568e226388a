"""The command line: `main` runs it, `commands` has a module for each command."""
