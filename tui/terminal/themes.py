"""The app's themes, and the style of each role in any theme: unscaled in its `warning` colour, scaled in `accent`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rich.style import Style
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from ..views.lines import Blend, Name, Role

DARK = Theme(
    name="attn-dark",
    primary="#c8b6ff",  # what has focus
    warning="#f0a868",  # unscaled
    accent="#6cc5e0",  # scaled
    success="#8fce7e",  # the third and the fourth curve of a plot
    secondary="#e894c8",
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
    success="#2f7a1f",
    secondary="#a3257a",
    error="#b3261e",
    foreground="#20242c",
    background="#fbfaf7",
    surface="#ece9e2",
    panel="#ece9e2",
    dark=False,
)


def app_themes(colors: str | None) -> tuple[Theme, Theme]:
    """Return the app's dark and light themes for a terminal with Rich's color system `colors`.

    The nearest of 16 colours lose their hue or their contrast. The themes then use the terminal's own colours, on its
    own background, which only the light theme assumes to be light.
    """
    if colors != "standard":
        return DARK, LIGHT
    dark = replace(BUILTIN_THEMES["ansi-dark"], name=DARK.name, primary="ansi_magenta", accent="ansi_cyan")
    hues = {"primary": "ansi_magenta", "warning": "ansi_red", "accent": "ansi_blue", "error": "ansi_bright_red"}
    return dark, replace(BUILTIN_THEMES["ansi-light"], name=LIGHT.name, **hues)


def names() -> list[str]:
    """Return the names of all themes, the app's own first."""
    return [DARK.name, LIGHT.name, *sorted(BUILTIN_THEMES)]


# For each role: a colour of the theme, its share when blended with the background, and other attributes.
LOOKS: dict[Name, tuple[str, float, Style]] = {
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
    "third": ("success", 1.0, Style()),
    "fourth": ("secondary", 1.0, Style()),
    "fifth": ("foreground", 1.0, Style()),
    "thin_third": ("success", 0.6, Style()),
    "thin_fourth": ("secondary", 0.6, Style()),
    "thin_fifth": ("foreground", 0.6, Style()),
    "accent": ("primary", 1.0, Style(bold=True)),
    "cursor": ("primary", 1.0, Style(bold=True, reverse=True)),
    "selected": ("foreground", 1.0, Style(reverse=True)),
    "alert": ("error", 1.0, Style()),
    "wrong": ("error", 1.0, Style(bold=True, reverse=True)),
    "right": ("success", 1.0, Style(bold=True, reverse=True)),
    "good": ("success", 1.0, Style()),
    "key": ("foreground", 1.0, Style(bold=True)),
    "frame": ("foreground", 0.3, Style()),
    "title": ("foreground", 1.0, Style(bold=True)),
    "lit": ("primary", 1.0, Style(bold=True)),
}


DRAWN: tuple[Role, ...] = (  # lines, not text
    "frame", "thin_unscaled", "thin_scaled", "thin_third", "thin_fourth", "thin_fifth",
)  # fmt: skip
LEAST_CONTRAST = 4.5  # WCAG 2.2, success criterion 1.4.3


def contrast(one: Color, other: Color) -> float:
    """Return the contrast ratio of two colours, from 1 to 21 (WCAG 2.2)."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: Color) -> float:
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color.normalized)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def legible(color: Color, background: Color) -> Color:
    """Return the colour, moved towards white or black until it has the least contrast with the background."""
    pole = max((Color(255, 255, 255), Color(0, 0, 0)), key=lambda each: contrast(each, background))
    steps = (color.blend(pole, step / 20) for step in range(21))
    return next((each for each in steps if contrast(each, background) >= LEAST_CONTRAST), pole)


def look(role: Role, variables: Mapping[str, str], background: Color) -> Style:
    """Return the style of a role on a background, from the variables of a theme.

    Not in CSS: matching a dozen component classes for each widget would take most of the time before the first frame.
    """
    if isinstance(role, Blend):
        color = Color.parse(variables["accent"])
        halves = [_intensity(half, color, background) for half in role]
        return Style(color=halves[0].rich_color, bgcolor=halves[1].rich_color)
    name, share, style = LOOKS[role]
    color = Color.parse(variables[name])
    if color.ansi is None and background.ansi is None:
        color = background.blend(color, share)
        if role not in DRAWN:
            color = legible(color, background)
    elif share < 1:  # the terminal's own colours cannot be blended
        style += Style(dim=True)
    return Style(color=color.rich_color, bgcolor=background.rich_color) + style


def _intensity(step: int, color: Color, background: Color) -> Color:
    """Return a step of 0 to 8 towards a colour; -1 is the background. The terminal's own colours have no steps."""
    if color.ansi is not None or background.ansi is not None:
        return color if step > 0 else background
    return background if step < 0 else background.blend(color, 0.07 + 0.93 * step / 8)
