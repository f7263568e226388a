"""The app's own themes, and what each role looks like in any theme: the two hues are its `warning` and `accent`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rich.style import Style
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from .views.lines import Role

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


def own_in(colors: str | None) -> tuple[Theme, Theme]:
    """The app's dark and its light theme for a terminal of so many colours, as Rich calls them.

    Of sixteen the nearest to the app's own lose their hue, or stand out from the ground no more: the terminal's own
    hues then, on its own ground, which is taken for a light one only where the light theme is asked for.
    """
    if colors != "standard":
        return DARK, LIGHT
    dark = replace(BUILTIN_THEMES["ansi-dark"], name=DARK.name, primary="ansi_magenta", accent="ansi_cyan")
    hues = {"primary": "ansi_magenta", "warning": "ansi_red", "accent": "ansi_blue", "error": "ansi_bright_red"}
    return dark, replace(BUILTIN_THEMES["ansi-light"], name=LIGHT.name, **hues)


def names() -> list[str]:
    """Every theme there is, the app's own first."""
    return [DARK.name, LIGHT.name, *sorted(BUILTIN_THEMES)]


# Of each role: a colour of the theme, how much of it is mixed into what lies behind, and what else sets it off.
LOOKS: dict[Role, tuple[str, float, Style]] = {
    "text": ("foreground", 1.0, Style()),
    "label": ("foreground", 0.8, Style()),
    "dim": ("foreground", 0.5, Style()),
    "heading": ("foreground", 1.0, Style(bold=True)),
    "unscaled": ("warning", 1.0, Style()),
    "scaled": ("accent", 1.0, Style()),
    "theory": ("foreground", 0.6, Style()),
    "over_unscaled": ("warning", 1.0, Style(reverse=True)),
    "over_scaled": ("accent", 1.0, Style(reverse=True)),
    "thin_unscaled": ("warning", 0.6, Style()),
    "thin_scaled": ("accent", 0.6, Style()),
    "accent": ("primary", 1.0, Style(bold=True)),
    "cursor": ("primary", 1.0, Style(bold=True, reverse=True)),
    "alert": ("error", 1.0, Style()),
    "key": ("foreground", 1.0, Style(bold=True)),
}


def look(role: Role, variables: Mapping[str, str], ground: Color) -> Style:
    """The style of a role on this background, with the variables of a theme.

    Not CSS: a dozen component classes in every widget take longer to match than all else before the first frame.
    """
    name, share, style = LOOKS[role]
    color = Color.parse(variables[name])
    if color.ansi is None and ground.ansi is None:
        color = ground.blend(color, share)
    elif share < 1:  # the terminal's own colours cannot be mixed
        style += Style(dim=True)
    return Style(color=color.rich_color, bgcolor=ground.rich_color) + style
