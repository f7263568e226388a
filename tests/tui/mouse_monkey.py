"""A monkey with a mouse: clicks, drags and scrolls at random, from a seed, over every pane and everything over it.

Now and then it presses a key that opens something, or runs an action that Textual gives every app. Run as a program,
it does so for long: `python tests/tui/mouse_monkey.py --events 20000`.
"""

import argparse
import random
import tempfile
from collections import Counter

import pytest
from attn_tui.tui.panes.catalogue import PANES
from attn_tui.tui.panes.claims.requests import CheckClaims
from monkey import Endless
from stage import SMALL, Stage, play, untested_claims
from textual import events
from textual.geometry import Offset

SIZES = [(40, 12), (80, 24), (120, 40), (200, 60)]
OPENING = ["?", "K", "e", "/", "ctrl+p", "enter", "tab", "y", "v", "u"]
CLOSING = ["escape", "enter"]
OF_TEXTUAL = [  # actions that every app, or every screen, of Textual has
    "screenshot", "change_theme", "command_palette", "screen.maximize", "screen.minimize", "screen.copy_text",
    "app.focus_next", "app.focus_previous", "hide_help_panel", "notify('x')", "bell",
]  # fmt: skip


class MouseMonkey:
    """Random events for an app; `done` counts them by kind."""

    def __init__(self, stage: Stage, seed: int) -> None:
        self.stage, self.app = stage, stage.app
        self.chance = random.Random(seed)
        self.done: Counter[str] = Counter()

    def place(self) -> Offset:
        width, height = self.app.size
        return Offset(self.chance.randrange(width), self.chance.randrange(height))

    def send(self, kind: type[events.MouseEvent], place: Offset, button: int = 1) -> None:
        x, y = place
        self.app.post_message(kind(None, x, y, 0, 0, button, False, False, False, screen_x=x, screen_y=y))

    async def act(self) -> None:
        """Do one thing, and wait until the app has handled it."""
        act = self.chance.choice(["click", "click", "double click", "drag", "scroll", "scroll", "key", "toolkit"])
        self.done[act] += 1
        await getattr(self, act.replace(" ", "_"))()
        await self.stage.answered()
        assert self.app.is_running, act

    async def click(self) -> None:
        place, button = self.place(), self.chance.choice([1, 1, 1, 2, 3])
        self.send(events.MouseMove, place, 0)
        self.send(events.MouseDown, place, button)
        self.send(events.MouseUp, place, button)

    async def double_click(self) -> None:
        place = self.place()
        for kind in (events.MouseDown, events.MouseUp) * self.chance.choice([2, 3]):
            self.send(kind, place)

    async def drag(self) -> None:
        self.send(events.MouseDown, self.place())
        for _ in range(self.chance.choice([1, 1, 3])):
            self.send(events.MouseMove, self.place())
            if self.chance.random() < 0.3:
                await self.stage.answered()
        self.send(events.MouseUp, self.place())

    async def scroll(self) -> None:
        place, kind = self.place(), self.chance.choice([events.MouseScrollDown, events.MouseScrollUp])
        for _ in range(self.chance.choice([1, 2, 5])):
            self.send(kind, place, 0)

    async def key(self) -> None:
        """Open or close something; sometimes go to another pane, or forget the parameters that were clicked."""
        over = len(self.app.screen_stack) > 1
        if not over and self.chance.random() < 0.3:
            self.app.action_pane(self.chance.choice([*PANES]))
            self.app.change(SMALL)
        else:
            await self.stage.press(self.chance.choice(CLOSING if over else OPENING))

    async def toolkit(self) -> None:
        action = self.chance.choice(OF_TEXTUAL)
        self.done[action] += 1
        await self.app.run_action(action)


def run(seed: int, count: int, size: tuple[int, int], pane: str) -> Counter[str]:
    """Send `count` random events to an app of this size that starts in a pane; return how many of each kind."""
    done: Counter[str] = Counter()

    async def script(stage: Stage) -> None:
        stage.app.action_pane(pane)
        await stage.still()
        monkey = MouseMonkey(stage, seed)
        for _ in range(count):
            await monkey.act()
        await stage.still()  # a list that the last click opens is there
        for _ in range(len(stage.app.screen_stack)):
            await stage.press("escape")
        stage.app.action_pane("Lab")
        stage.app.change(SMALL)
        await stage.answered()  # by then the Lab has the focus
        await stage.press("right")
        assert stage.asked.d_k == SMALL.d_k + 1, "the app takes keys"
        done.update(monkey.done)

    play(script, size=size, kind=Endless)
    return done


def main() -> None:
    """Send random events at every size in turn, from every pane, each time with the next seed."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    done: Counter[str] = Counter()
    acts, seed = 0, int(options.seed)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("CONFIG", "STATE", "DATA"):
            patch.setenv(f"XDG_{name}_HOME", folder)
        patch.setattr(CheckClaims, "work", untested_claims)
        while acts < options.events:
            size, pane = SIZES[seed % len(SIZES)], [*PANES][seed // len(SIZES) % len(PANES)]
            try:
                done += run(seed, 250, size, pane)
            except BaseException:
                print(f"seed {seed} fails: {pane} at {size[0]}x{size[1]}", flush=True)
                raise
            acts += 250
            seed += 1
            print(f"{acts} events, seed {seed}: {pane} at {size[0]}x{size[1]}", flush=True)
    print(dict(done))


if __name__ == "__main__":
    main()
