"""Numbers in, frozen results out: attention, its statistics, random draws and captured heads."""

VERSION = "0.3.0.dev0"
