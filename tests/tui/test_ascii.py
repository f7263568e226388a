"""With ASCII glyphs, the Lab and the Capture pane are ASCII after every key; test_small looks at every pane."""

import pytest
from attn_tui.core.parameters import FIELD
from attn_tui.core.statistics.catalogue import ALWAYS, STATISTICS
from attn_tui.tui.views.fields.panel import applicable
from attn_tui.tui.views.glyphs import ASCII
from stage import SMALL, Stage, played

pytestmark = pytest.mark.slow


async def look(stage: Stage, *keys: str) -> None:
    """Press keys, and check the screen after each."""
    for key in keys:
        await stage.press(key)
        await stage.pilot.pause(0)
        assert stage.text.isascii(), key


@played(size=(80, 24), glyphs=ASCII, settled=True)
async def test_the_fields_errors_rows_views_and_help_of_the_lab_are_ascii(stage: Stage) -> None:
    await look(stage)
    for field in applicable(SMALL):
        await look(stage, "tab", "?", "escape")
        if field.name == "scale":
            await look(stage, "0", "escape")  # d_k, not accepted
    await look(stage, "tab", "t")
    await stage.resize(120, 40)
    await look(stage, *["down"] * len(STATISTICS), "?", "escape", "v", "v", "v")
    await look(stage, *["s"] * len(FIELD["scale"].choices), *["c"] * len(FIELD["components"].choices))


@played(glyphs=ASCII)
async def test_the_capture_pane_is_ascii_with_every_statistic(stage: Stage) -> None:
    await stage.head()
    await look(stage, "right")
    await stage.until(lambda: "measuring" not in stage.text)
    await look(stage, *["m"] * len(ALWAYS), "?", "escape", "tab")
    await stage.resize(80, 24)
    await look(stage, "down")
