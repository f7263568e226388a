"""The commands, a module each: measured in this process, printed as the app shows them."""
