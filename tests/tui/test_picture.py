"""The exported picture of the screen."""

import re
from html import unescape

import pytest
from attn_tui.tui.terminal.picture import picture
from attn_tui.tui.views.glyphs import ASCII, IN_LANGUAGE, UNICODE, Glyphs
from attn_tui.tui.widgets.modal import HelpScreen
from emulator import forget_codes
from rich.cells import cell_len
from rich.color import ColorSystem
from rich.style import Style
from stage import Stage, played
from textual.strip import Strip

CELL = 12.2  # width of a cell of a picture


@pytest.mark.slow
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)
@played(painted=True)
async def test_a_picture_is_textual_s_screenshot_without_a_remote_font(
    stage: Stage, size: tuple[int, int], glyphs: Glyphs
) -> None:
    for wait in (stage.settled, stage.head):
        await wait()
        svg = picture(stage.app.screen)
        whole = stage.app.export_screenshot(title="attn-tui", simplify=True)
        whole = re.sub(r"@font-face \{.*?\}", "", whole, flags=re.DOTALL).replace("Fira Code", "monospace")
        group, clip = re.findall(r'(<g [^>]*?)( clip-path="[^"]*")>', whole)[0]  # hides the last line's underscores
        assert svg == whole.replace(group + clip, group)
        links = set(re.findall(r"https?://[^\"' )]+", svg))
        assert all(link.startswith("http://www.w3.org/") or "textualize" in link for link in links), links
        assert "url(http" not in svg
        assert svg.isascii() or not glyphs.ascii


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)
@played(glyphs=IN_LANGUAGE["zh"], settled=True)
async def test_every_chinese_character_takes_two_cells_of_a_picture(stage: Stage, size: tuple[int, int]) -> None:
    svg = picture(stage.app.screen)
    texts = re.findall(
        r'<text [^>]*? x="([^"]*)" y="([^"]*)" textLength="([^"]*)"[^>]*line-\d+\)">([^<]*)</text>', svg
    )
    rows: dict[float, str] = {}
    for x, y, length, content in texts:
        said = unescape(content).strip("\n")
        if not said:
            continue
        assert {cell_len(character) for character in said} in ({1}, {2})
        assert float(length) == pytest.approx(CELL * cell_len(said), rel=1e-4)
        row = rows.get(float(y), "")
        rows[float(y)] = row + " " * (round(float(x) / CELL) - cell_len(row)) + said
    shown = [line.rstrip().replace("\xa0", " ") for line in rows.values() if line.strip()]
    assert shown == [line.rstrip() for line in stage.lines if line.strip()]


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
