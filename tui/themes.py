"""The app's own themes. Any other theme works too: the two hues are its `warning` and its `accent`."""

from __future__ import annotations

from textual.theme import BUILTIN_THEMES, Theme

DARK = Theme(
    name="attn-dark",
    primary="#c8b6ff",  # what has focus
    warning="#f0a868",  # unscaled
    accent="#6cc5e0",  # scaled
    error="#ff7b7b",
    foreground="#d8dbe2",
    background="#101319",
    surface="#1a1f29",
    panel="#1a1f29",
    dark=True,
)
LIGHT = Theme(
    name="attn-light",
    primary="#5b3fb0",
    warning="#a85400",
    accent="#006b8f",
    error="#b3261e",
    foreground="#20242c",
    background="#fbfaf7",
    surface="#ece9e2",
    panel="#ece9e2",
    dark=False,
)


def names() -> list[str]:
    """Every theme there is, the app's own first."""
    return [DARK.name, LIGHT.name, *sorted(BUILTIN_THEMES)]
