"""Export the pictures of both READMEs from the running app: `make pictures`, or some with `ARGS="lab sweep.zh"`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from attn_tui.core.errors import InputError
from attn_tui.core.learning.items import count
from attn_tui.core.parameters import Parameters
from attn_tui.tui.app.app import AttnApp
from attn_tui.tui.compute.process import ProcessEngine
from attn_tui.tui.panes.capture.pane import CapturePane
from attn_tui.tui.panes.learn.pane import LearnPane
from attn_tui.tui.terminal.picture import picture
from attn_tui.tui.views.glyphs import IN_LANGUAGE
from moving import LANGUAGES, moving

HERE = Path(__file__).parent

# By name: the size of the terminal, the pane, and the keys to press there.
PICTURES = {
    "lab": ((120, 40), "Lab", ""),
    "sweep": ((120, 40), "Sweep", ""),
    "softmax": ((120, 40), "Softmax", "right right"),
    "rules": ((120, 40), "Rules", ""),
    "capture": ((120, 40), "Capture", "n n"),
    "claims": ((120, 40), "Learn", "Escape M M M down down"),
    "learn": ((120, 40), "Learn", "6 4 enter"),
}


async def save(name: str) -> None:
    """Open a pane, press the keys of a picture, wait for its results and write it; `lab.zh` is in Chinese."""
    size, pane, keys = PICTURES[name.removesuffix(".zh")]
    engine = ProcessEngine()
    app = AttnApp(Parameters(), engine, first_pane=pane, glyphs=IN_LANGUAGE["zh" if name.endswith(".zh") else "en"])
    try:
        async with app.run_test(size=size) as pilot:
            await pilot.pause(1)
            while pane == "Capture" and not is_complete(app):  # its keys depend on what is known of the heads
                await pilot.pause(0.1)
            await pilot.press(*keys.split())
            while not is_complete(app):
                await pilot.pause(0.1)
            await pilot.pause(0.5)
            svg = picture(app.screen)
    finally:
        engine.close()
    (HERE / f"{name}.svg").write_text(svg, encoding="utf-8")
    print(f"docs/{name}.svg")


def is_complete(app: AttnApp) -> bool:
    """Return whether the pane shows all its results."""
    pane = app.pane
    try:
        pane.numbers("json")
    except InputError:
        return False
    if isinstance(pane, LearnPane) and pane.item.kind == "claim":
        return len(pane.outcomes) == count("claim")
    if isinstance(pane, CapturePane) and pane.heads.capture is not None:
        return len(pane.heads.explained) == sum(layer.heads for layer in pane.heads.capture.layers)
    return pane.progress is None


if __name__ == "__main__":
    for name in sys.argv[1:] or [f"{each}{language}" for language in LANGUAGES for each in ("moving", *PICTURES)]:
        if name.startswith("moving"):
            (HERE / f"{name}.svg").write_text(moving(name.removeprefix("moving")), encoding="utf-8")
            print(f"docs/{name}.svg")
        else:
            asyncio.run(save(name))
