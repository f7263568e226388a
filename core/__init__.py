"""Numbers in, frozen results out: attention, its statistics, random draws and captured heads."""
