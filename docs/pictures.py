"""The pictures of the README, exported from the running app: `make pictures`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from attn_tui.core.parameters import Parameters
from attn_tui.tui.app import AttnApp
from attn_tui.tui.panes.capture import CapturePane
from attn_tui.tui.panes.claims import ClaimsPane
from attn_tui.tui.panes.rules import RulesPane
from attn_tui.tui.panes.sweep import SweepPane
from attn_tui.tui.picture import picture

HERE = Path(__file__).parent


async def save(name: str, size: tuple[int, int], keys: str, ready: Callable[[AttnApp], bool]) -> None:
    """Press these keys, wait until the app is ready, and write what is on screen."""
    app = AttnApp(Parameters())
    async with app.run_test(size=size) as pilot:
        await pilot.pause(1)
        await pilot.press(*keys.split())
        while not ready(app):
            await pilot.pause(0.1)
        await pilot.pause(0.5)
        svg = picture(app.screen)
    (HERE / f"{name}.svg").write_text(svg, encoding="utf-8")
    print(f"docs/{name}.svg")


def theory_is_there(app: AttnApp) -> bool:
    return app.lab.theory is not None and app.lab.theory.prediction.parameters == app.parameters


def map_is_there(app: AttnApp) -> bool:
    pane = app.pane
    return isinstance(pane, CapturePane) and len(pane.map.measured) == 72


def claims_are_there(app: AttnApp) -> bool:
    pane = app.pane
    return isinstance(pane, ClaimsPane) and 0 < len(pane.claims.claims) == len(pane.claims.outcomes)


def sweep_is_there(app: AttnApp) -> bool:
    return isinstance(app.pane, SweepPane) and app.pane.swept.complete and app.pane.progress is None


def rules_are_there(app: AttnApp) -> bool:
    return isinstance(app.pane, RulesPane) and app.pane.progress is None and app.pane.curves is not None


def softmax_is_there(app: AttnApp) -> bool:
    return app.pane.NAME == "Softmax"


if __name__ == "__main__":
    asyncio.run(save("lab", (120, 40), "", theory_is_there))
    asyncio.run(save("lab-small", (80, 24), "", theory_is_there))
    asyncio.run(save("sweep", (120, 40), ">", sweep_is_there))
    asyncio.run(save("softmax", (120, 40), "> > right right", softmax_is_there))
    asyncio.run(save("rules", (120, 40), "> > >", rules_are_there))
    asyncio.run(save("capture", (120, 40), "< < right right right right right down down", map_is_there))
    asyncio.run(save("claims", (120, 40), "< down down", claims_are_there))
