"""Export the pictures of both READMEs from the running app: `make pictures`, or some with `ARGS="lab sweep.zh"`."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
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
from moving import moving

HERE = Path(__file__).parent
LANGUAGES = "", ".zh"
IN_ENGLISH = ("watch",)  # of pages that have no translation
MOVING = "moving"  # the name of the picture in which the Lab goes through WIDTHS
WIDTHS = (4, 6, 9, 12, 16, 23, 32, 45, 64, 90, 128, 256)

# By name: the size of the terminal, the pane, and the keys to press there.
PICTURES = {
    MOVING: ((80, 24), "Lab", ""),
    "lab": ((120, 40), "Lab", "6 4 enter"),
    "sweep": ((120, 40), "Sweep", "6 4 enter"),
    "softmax": ((120, 40), "Softmax", "right right"),
    "rules": ((120, 40), "Rules", "6 4 enter"),
    "watch": ((120, 40), "Watch", ""),
    "capture": ((120, 40), "Capture", "n n"),
    "claims": ((120, 40), "Learn", "Escape M M M down down"),
    "learn": ((120, 40), "Learn", "6 4 enter"),
}


async def drawn(name: str) -> str:
    """Open a pane, press the keys of a picture, wait for its results and return it; `lab.zh` is in Chinese."""
    size, pane, keys = PICTURES[name.removesuffix(".zh")]
    engine = ProcessEngine()
    app = AttnApp(Parameters(), engine, first_pane=pane, glyphs=IN_LANGUAGE["zh" if name.endswith(".zh") else "en"])

    async def complete() -> None:
        while not is_complete(app):
            await pilot.pause(0.1)
        await pilot.pause(0.5)

    try:
        async with app.run_test(size=size) as pilot:
            await pilot.pause(1)
            if pane == "Capture":  # its keys depend on what is known of the heads
                await complete()
            await pilot.press(*keys.split())
            await complete()
            if not name.startswith(MOVING):
                return picture(app.screen)
            frames: list[str] = []
            for width in WIDTHS:
                app.change(replace(app.parameters, d_k=width))
                await complete()
                frames.append(picture(app.screen))
            return moving(frames)
    finally:
        engine.close()


def names() -> list[str]:
    """Return the names of all pictures."""
    both = [each for each in PICTURES if each not in IN_ENGLISH]
    return [*PICTURES, *(f"{each}{language}" for language in LANGUAGES if language for each in both)]


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
    for name in sys.argv[1:] or names():
        (HERE / f"{name}.svg").write_text(asyncio.run(drawn(name)), encoding="utf-8")
        print(f"docs/{name}.svg")
