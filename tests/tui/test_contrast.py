"""Text can be read in every theme: its contrast with the background is at least 4.5:1."""

from itertools import pairwise
from typing import get_args

import pytest
from attn_tui.tui.terminal.themes import DARK, DRAWN, LIGHT, contrast, look
from attn_tui.tui.views.lines import Name, Role
from cases import for_each
from rich.color import Color as Shown
from stage import Stage, play
from textual.color import Color
from textual.geometry import Region
from textual.theme import BUILTIN_THEMES, Theme

CURVES = ("unscaled", "scaled", "third", "fourth", "fifth")
THEMES = {theme.name: theme for theme in (DARK, LIGHT, *BUILTIN_THEMES.values()) if not theme.ansi}


def test_contrast_is_that_of_the_standard() -> None:
    """The examples of WCAG's understanding documents and of its widely used checkers."""
    white, black = Color.parse("#ffffff"), Color.parse("#000000")
    assert contrast(white, black) == contrast(black, white) == 21
    assert contrast(white, white) == 1
    assert contrast(Color.parse("#767676"), white) == pytest.approx(4.54, abs=0.005)
    assert contrast(Color.parse("#ff0000"), white) == pytest.approx(3.998, abs=0.005)


def of(color: Shown | None) -> Color:
    assert color is not None
    return Color(*color.get_truecolor())


@for_each("ground", ["background", "surface"])
@for_each("theme", THEMES.values())
def test_text_has_a_contrast_of_4_5(theme: Theme, ground: str) -> None:
    variables = theme.to_color_system().generate()
    background = Color.parse(variables[ground])
    looks = {role: look(role, variables, background) for role in get_args(Name) if role not in DRAWN}
    assert "dim" in looks
    for role, style in looks.items():
        assert contrast(of(style.color), of(style.bgcolor)) >= 4.5, role
    assert theme.dark == (contrast(background, Color.parse("#ffffff")) > contrast(background, Color.parse("#000000")))


def test_the_terminal_s_own_colours_are_dimmed_where_others_are_blended() -> None:
    """Textual's `ansi` themes have the colours of the terminal, which nobody knows."""
    theme = next(theme for theme in BUILTIN_THEMES.values() if theme.ansi)
    variables = theme.to_color_system().generate()
    background = Color.parse(variables["background"])
    assert [bool(look(role, variables, background).dim) for role in ("text", "accent", "dim")] == [False, False, True]


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=["dark", "light"])
def test_the_app_s_own_hues_stay_apart_from_text_and_from_each_other(theme: Theme) -> None:
    variables = theme.to_color_system().generate()
    background = Color.parse(variables["background"])
    roles: tuple[Role, ...] = ("text", "dim", "unscaled", "scaled", "accent", "alert")
    assert len({look(role, variables, background).color for role in roles}) == len(roles)


@for_each("theme", [DARK, LIGHT])
def test_roles_of_one_kind_have_one_colour_of_the_theme_and_others_are_paler(theme: Theme) -> None:
    variables = theme.to_color_system().generate()
    background = Color.parse(variables["background"])
    looks = {role: look(role, variables, background) for role in get_args(Name)}
    for name, roles in {
        "foreground": "text heading key title selected fifth",
        "warning": "unscaled over_unscaled", "accent": "scaled over_scaled", "primary": "accent cursor lit",
        "error": "alert wrong", "success": "right good third", "secondary": "fourth",
    }.items():  # fmt: skip
        assert {of(looks[role].color).hex for role in roles.split()} == {Color.parse(variables[name]).hex}
    for roles in ("frame dim theory label text", *(f"thin_{each} {each}" for each in CURVES)):
        contrasts = [contrast(of(looks[role].color), background) for role in roles.split()]
        assert all(paler < other + 0.1 for paler, other in pairwise(contrasts)), roles
        assert 1.2 < contrasts[0] < contrasts[-1]
    assert {role for role in looks if looks[role].reverse} == {
        "over_unscaled", "over_scaled", "cursor", "selected", "wrong", "right",
    }  # fmt: skip
    assert {role for role in looks if looks[role].bold} == {
        "heading", "accent", "cursor", "wrong", "right", "key", "title", "lit",
    }  # fmt: skip


def test_what_parts_leave_free_has_no_colour_under_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(stage: Stage) -> None:
        for widget in (stage.app.screen, stage.lab, stage.lab.results):
            (segment,) = widget.render_lines(Region(0, 0, 4, 1))[0]
            assert segment.style is not None
            assert of(segment.style.bgcolor).hsl.s == 0

    monkeypatch.setenv("NO_COLOR", "1")
    play(script)
