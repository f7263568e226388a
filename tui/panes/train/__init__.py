"""The Train pane: the training race, on screen."""
