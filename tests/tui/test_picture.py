"""The exported picture of the screen."""

import re

import pytest
from attn_tui.tui.terminal.picture import picture
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.widgets.help_screen import HelpScreen
from emulator import forget_codes
from rich.color import ColorSystem
from rich.style import Style
from stage import Stage, played
from textual.strip import Strip


@pytest.mark.slow
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)
@played()
async def test_a_picture_is_textual_s_screenshot_without_a_remote_font(
    stage: Stage, size: tuple[int, int], glyphs: Glyphs
) -> None:
    for wait in (stage.settled, stage.head):
        await wait()
        svg = picture(stage.app.screen)
        whole = stage.app.export_screenshot(title="attn-tui", simplify=True)
        whole = re.sub(r"@font-face \{.*?\}", "", whole, flags=re.DOTALL).replace("Fira Code", "monospace")
        assert svg == whole
        links = set(re.findall(r"https?://[^\"' )]+", svg))
        assert all(link.startswith("http://www.w3.org/") or "textualize" in link for link in links), links
        assert "url(http" not in svg
        assert svg.isascii() or not glyphs.ascii


@played(settled=True)
async def test_a_picture_shows_the_pane_without_the_help_over_it(stage: Stage) -> None:
    screen = stage.app.screen
    before = picture(screen)
    await stage.press("?")
    assert isinstance(stage.app.screen, HelpScreen)
    await stage.still()
    assert picture(screen) == before
    assert picture(stage.app.screen) != before


@played(settled=True)
async def test_a_picture_does_not_change_the_colours_sent_to_the_terminal(stage: Stage) -> None:
    """Rich caches the codes of a style for the first color system that it is rendered for."""
    styles = [style for style in stage.styles(stage.app.screen) if isinstance(style, Style)]
    for style in styles:
        forget_codes(style)
    picture(stage.app.screen)
    sent = "".join(Strip.render_style(style, "x", ColorSystem.STANDARD) for style in styles)
    assert "\x1b[" in sent
    assert "8;2;" not in sent
