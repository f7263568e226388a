"""Questions: what the command line, the app and the library ask, each with its parts, answer, table and program."""
