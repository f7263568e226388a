"""A monkey at the terminal: random keys, bursts, mouse, paste, resizes and actions of the toolkit, from a seed.

At every event of the app it checks that what the pane shows is current, or dimmed, or being computed. When the
engine has nothing left to do, it checks what can be exported; in the end, that the app takes keys.
"""

import argparse
import asyncio
import inspect
import json
import random
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attn_tui.core.errors import InputError
from attn_tui.core.questions.learn import ReadItems
from attn_tui.tui.app.app import AttnApp
from attn_tui.tui.panes.catalogue import PANES
from attn_tui.tui.panes.train.pane import TrainPane
from stage import SMALL, LocalEngine, Stage, driver_of, untested_claims
from textual import events
from textual._xterm_parser import XTermParser
from textual.message import Message
from textual.message_pump import MessagePump

SIZES = [(80, 24), (120, 40), (200, 60), (40, 12), (30, 9), (61, 17), (1, 1), (2, 12), (39, 12), (200, 1), (1, 200)]
ARROWS = ["\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D"]
NAMED = ["\x1b[5~", "\x1b[6~", "\x1b[H", "\x1b[F", "\t", "\x1b[Z", "\r", "\x7f", "\x1b[3~", "\x10", "\x1bOP"]
LETTERS = [chr(code) for code in range(32, 127) if chr(code) not in "q/~"]  # q ends it; no path leads elsewhere
WORDS = ["0", "-", "1e9", "64", "2.5", "nan", "causal", "x" * 40, "9999", ".", "−3"]
OF_TEXTUAL = [  # actions that every app, or every screen, of Textual has
    "screenshot", "change_theme", "command_palette", "screen.maximize", "screen.minimize", "screen.copy_text",
    "app.focus_next", "app.focus_previous", "hide_help_panel", "notify('x')", "bell",
]  # fmt: skip
MOST_MEMORY = 5 << 10  # MB; weights of additive attention at the largest d_k, rounded, need four fifths
LARGE = 1 << 20  # scores and components of a measurement, or of a race, that still takes milliseconds a step


class Endless(AttnApp):
    """An app that does not quit, although the monkey finds "quit" in the palette."""

    CSS_PATH = Path(inspect.getfile(AttnApp)).with_name("app.tcss")

    async def action_quit(self) -> None:
        pass


class Monkey:
    """Random events for an app, and the checks on it."""

    def __init__(self, stage: Stage, seed: int) -> None:
        self.stage, self.app, self.engine = stage, stage.app, stage.engine
        self.chance = random.Random(seed)
        self.events = 0

    def event(self) -> str:
        """Return what a terminal sends for a key, a click, a drag, a wheel or a paste."""
        chance, (width, height) = self.chance, self.app.size
        x, y = chance.randint(1, width), chance.randint(1, height)
        match chance.randrange(12):
            case 0 | 1 | 2:
                return chance.choice(ARROWS) * chance.choice([1, 1, 1, 5])
            case 3 | 4:
                return chance.choice("<>sSmvrRtcxf[]eyK?12345678iagGnp+-")
            case 5 | 6:
                return chance.choice(LETTERS)
            case 7 | 8:
                return chance.choice(NAMED)
            case 9:
                button = chance.choice([0, 0, 0, 1, 2])
                clicks = "".join(f"\x1b[<{button};{x};{y}{end}" for end in "MmMm"[: chance.choice([2, 4])])
                return clicks + f"\x1b[<{chance.choice([64, 65])};{x};{y}M"
            case 10:
                to = f"{chance.randint(1, width)};{chance.randint(1, height)}"
                return f"\x1b[<0;{x};{y}M\x1b[<32;{to}M\x1b[<0;{to}m"
            case _:
                return f"\x1b[200~{chance.choice(WORDS)}\x1b[201~"

    def read(self, text: str) -> None:
        """Pass on what the terminal sends, in one read."""
        parser = XTermParser()
        for message in [*parser.feed(text), *parser.feed("")]:
            driver_of(self.app).process_message(message)

    def check(self) -> None:
        """Check that what is shown is current, dimmed or being computed."""
        pane = self.app.panes.get(self.app.active)
        if pane is None or not (pane.is_running and self.app.is_running):
            return
        pumps = [self.app, *pane.walk_children(with_self=True)]
        waiting = self.engine.is_waiting or any(is_busy(pump) for pump in pumps)
        assert pane.is_current or pane.is_stale or waiting, self.story(f"{pane} is stale")

    def check_at_rest(self) -> None:
        """Check what is shown when nothing is being computed, and what can be exported."""
        self.check()
        pane = self.app.pane
        try:
            exported = json.loads(pane.numbers("json"))
        except InputError:  # there is nothing to export
            return
        assert pane.is_current, self.story("numbers for other parameters can be exported")
        asked: dict[str, Any] = exported.get("parameters", {})
        wrong = {name: value for name, value in asked.items() if self.differs(name, value)}
        assert not wrong or pane.NAME not in ("Lab", "Rules"), self.story(f"exported parameters: {wrong}")

    def differs(self, name: str, value: object) -> bool:
        return hasattr(self.app.parameters, name) and getattr(self.app.parameters, name) != value

    def story(self, what: str) -> str:
        return f"after {self.events} events: {what}\n{self.app.parameters}\n{self.stage.text}"

    async def act(self) -> None:
        """Send a burst, and do something with the engine and the window now and then."""
        chance, engine = self.chance, self.engine
        p = self.app.parameters
        if p.batch * p.n_queries * (p.n_keys + p.d_k) > LARGE or p.batch * p.n_keys * p.d_k > LARGE:
            self.app.change(SMALL)
        train = self.app.panes.get("Train")
        if isinstance(train, TrainPane):
            race = train.race
            if race.d_k * race.steps * race.seeds * len(race.rules) > LARGE:
                train.action_reset()
        engine.hold |= chance.random() < 0.3
        burst = [self.event() for _ in range(chance.choice([1, 1, 2, 3, 8]))]
        self.events += len(burst)
        self.read("".join(burst))
        if chance.random() < 0.1:
            await self.stage.resize(*chance.choice(SIZES))
        if chance.random() < 0.05:
            await self.app.run_action(chance.choice(OF_TEXTUAL))
        if chance.random() < 0.5:
            await self.stage.answered()
        if chance.random() < 0.1:
            engine.report_silence()
        if chance.random() < 0.3:
            engine.let_go()

    async def rest(self) -> None:
        """Wait until nothing is being computed or painted, and check."""
        self.engine.let_go()
        await self.stage.at_rest()
        self.check_at_rest()

    async def take_a_key(self) -> None:
        """Leave whatever is open, and check that the Lab takes a key."""
        for _ in range(len(self.app.screen_stack)):
            await self.stage.press("escape")
        await self.stage.resize(120, 40)
        await self.stage.show("Lab")
        self.app.change(SMALL)
        await self.stage.press("escape", "right")
        assert self.stage.asked.d_k == SMALL.d_k + 1, self.story("the app takes no key")


def is_busy(pump: MessagePump) -> bool:
    """Return whether messages wait to be handled."""
    return pump.message_queue_size > 0 or pump._pending_message is not None  # pyright: ignore[reportPrivateUsage]


def run(seed: int, goes_on: Callable[[int], bool], pane: str = "", size: tuple[int, int] = (0, 0)) -> int:
    """Let a monkey act until `goes_on`, called with the number of events, is false; return that number.

    Where no pane or size is given, the seed chooses them.
    """

    async def script() -> int:
        chance, engine = random.Random(seed), LocalEngine()
        app = Endless(SMALL, engine, first_pane=pane or chance.choice([*PANES]))
        monkey: list[Monkey] = []

        def before(message: Message) -> None:
            if monkey and isinstance(message, events.Event):
                monkey[0].check()

        async with app.run_test(size=size if pane else chance.choice(SIZES[:3]), message_hook=before) as pilot:
            monkey.append(Monkey(Stage(app, engine, pilot), seed))
            while goes_on(monkey[0].events):
                for _ in range(8):
                    await monkey[0].act()
                    assert app.is_running
                await monkey[0].rest()
            await monkey[0].take_a_key()
            app.workers.cancel_all()  # as an app does that ends by itself
        engine.close()
        return monkey[0].events

    return asyncio.run(script())


def main() -> None:
    """Run monkeys for long; stop at the first failure, which names its seed."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    end, seed, events = time.monotonic() + 60 * options.minutes, options.seed, 0
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("CONFIG", "STATE"):
            patch.setenv(f"XDG_{name}_HOME", folder)
        patch.setattr(ReadItems, "work", untested_claims)
        while time.monotonic() < end:
            try:
                events += run(seed, lambda count: count < 2000 and time.monotonic() < end)
            except BaseException:
                print(f"seed {seed} fails", flush=True)
                raise
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(f"seed {seed}: {events} events, at most {memory:.0f} MB", flush=True)
            assert memory < MOST_MEMORY
            seed += 1


if __name__ == "__main__":
    main()
