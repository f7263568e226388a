"""What the app says in Chinese over its panes."""

import pytest
from attn_tui.tui.views.glyphs import IN_LANGUAGE
from rich.cells import cell_len
from stage import Stage, played
from textual.command import CommandList

pytestmark = pytest.mark.slow

ZH = IN_LANGUAGE["zh"]
SAID = "注意力权重得分" * 25


@pytest.mark.parametrize("begin", ["", "a"])
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
@played(glyphs=ZH, settled=True)
async def test_a_message_loses_no_character_at_the_edges_of_panels(
    stage: Stage, size: tuple[int, int], begin: str
) -> None:
    stage.app.say(begin + SAID)
    await stage.until(lambda: "得分注意" in stage.text, "the message")
    shown = "".join(line for line in stage.lines if {*line} <= {*begin, *SAID, " "})
    assert shown.replace(" ", "") == begin + SAID
    assert {cell_len(line) for line in stage.lines} == {size[0]}


@played(glyphs=ZH)
async def test_a_search_for_a_theme_that_does_not_exist_finds_nothing_in_chinese(stage: Stage) -> None:
    stage.app.search_themes()
    await stage.until(lambda: any(each.option_count for each in stage.app.screen.query(CommandList)), "the list")
    await stage.press(*"zzzz")
    await stage.until(lambda: "没有找到" in stage.text, "that nothing is found")
    assert "No matches" not in stage.text
