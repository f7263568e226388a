"""The cost of the program in a terminal: how soon it starts, how closely it follows keys, how much it sends.

It runs in a pseudo-terminal, in turn in every round with the smallest Textual app, which counts keys (bare.py). Times
are compared as ratios within a round; medians over rounds are printed. README.md explains the lines of the table.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import math
import platform
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import textual
from attn_tui.tui.panes.catalogue import TABS
from programs import BARE, EVEN, FIRST, LAST, OURS, Program, lags, state_now, states
from session import Frame, Link, Session

SIZES = ("120x40",)
SMALLEST = (80, 24)
UP, DOWN, RIGHT, LEFT = (b"\x1b[" + final for final in (b"A", b"B", b"C", b"D"))
SLOW = Link(bits=56_000, there_and_back=0.150)
BYTES = 3400  # the most that a key may cost
OF_PANE = {"Model": 8000, "Train": 10_000}  # a new picture; a race while it is trained


@dataclass(frozen=True)
class Effort:
    """How much to measure in a round."""

    steps: int = 30
    held: int = 60
    seconds: float = 4.0


@dataclass(frozen=True)
class Line:
    """A line of the table and its target: a ratio to the bare app, or a maximum."""

    name: str
    unit: str = "ms"
    against: str = ""  # the bare app's line to compare with, if not the same
    ratio: float | None = None
    most: float | None = None


_FIRST = "first frame: processor time"

LINES = (
    Line("first frame"),
    Line("first result", against="first frame", ratio=1.5),
    Line("settled", against="first frame"),
    Line("beside busy loops: first frame"),
    Line("beside busy loops: first result", against="beside busy loops: first frame", ratio=1.8),
    Line("first frame: processor time", against=_FIRST),
    Line("first result: processor time", against=_FIRST, ratio=2),
    Line("settled: processor time", against=_FIRST),
    Line("step p50", ratio=6.5),
    Line("step p95"),
    Line("step: processor time", ratio=4.5),
    Line("typed p50", against="step p50", ratio=6.5),
    Line("typed p95", against="step p95"),
    Line("bytes of a step", "B", most=BYTES),
    Line("held at 30/s: lost", "", most=0),
    Line("held at 30/s: not shown", "", most=0),
    Line("held at 30/s: lag p95", ratio=3),
    Line("held at 100/s: lost", "", most=0),
    Line("held at 100/s: not shown", ""),
    Line("held at 100/s: lag p95", most=40),
    Line("slow link: last state after", "s", most=1.2),
    Line("slow link: not shown", ""),
    Line("idle: bytes a second", "B", most=0),
    Line("idle: processor time a second", most=2.5),
    Line("leaving"),
)

Figures = dict[str, float]


class Round(NamedTuple):
    """The figures of a round, by the names of lines."""

    bare: Figures
    ours: Figures


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, help="number of rounds (3; quick: 2)")
    parser.add_argument("--sizes", nargs="+", type=size_of, default=[*map(size_of, SIZES)], metavar="80x24")
    parser.add_argument("--quick", action="store_true", help="measure less of everything")
    options = parser.parse_args()
    rounds = options.rounds or (2 if options.quick else 3)
    effort = Effort(steps=15, held=40, seconds=2.0) if options.quick else Effort()
    gc.disable()  # no collection while a time is taken
    print(f"Textual {textual.__version__}, Python {platform.python_version()}, {platform.machine()}")
    print(f"Medians of {rounds} rounds, the program and the bare app in turn. Milliseconds depend on the machine.")
    for size in options.sizes:
        measure(size, rounds, effort)


def size_of(text: str) -> tuple[int, int]:
    """Parse a terminal size; smaller ones do not show everything that is read here."""
    found = re.fullmatch(r"(\d+)[x×](\d+)", text)
    if not found or int(found[1]) < SMALLEST[0] or int(found[2]) < SMALLEST[1]:
        raise argparse.ArgumentTypeError(f"{text!r} must be a size such as 120x40, at least 80x24")
    return int(found[1]), int(found[2])


def measure(size: tuple[int, int], rounds: int, effort: Effort) -> None:
    """Measure at one size, and print the figures."""
    print(f"\n{size[0]}×{size[1]}\n", flush=True)
    found: list[Round] = []
    for program in (BARE, OURS):  # once unmeasured, to compile and cache everything
        with Session(program.command, size) as session:
            session.calm()
    for _ in range(rounds):
        found.append(visit(size, effort))
        gc.collect()
    print(f"{'':33} {'bare':>8} {'attn-tui':>9} {'ratio':>6}  target")
    for line in LINES:
        print(row(line, found))
    print(f"\n{'bytes a key':33} {'←→':>8} {'↑↓':>9} {'':6}  target", flush=True)
    for pane, costs in bytes_of_keys(size, effort).items():
        most = OF_PANE.get(pane, BYTES)
        print(f"{pane:33} {costs[0]:8.0f} {costs[1]:9.0f} {'':6}  {verdict(max(costs), most, '')}", flush=True)


def row(line: Line, found: Sequence[Round]) -> str:
    """Format a line of the table: medians over rounds, also of ratios."""
    of_bare = line.against or line.name
    ours = [each.ours[line.name] for each in found]
    bare = [each.bare[of_bare] for each in found if of_bare in each.bare]
    ratios = [share / other for share, other in zip(ours, bare, strict=False) if other and line.unit == "ms"]
    cells = [
        f"{line.name}, {line.unit}" if line.unit else line.name,
        number(bare) if bare and line.against in ("", line.name) else "",
        number(ours),
        f"{statistics.median(ratios):.2f}" if ratios else "",
        verdict(statistics.median(ratios), line.ratio, " ×")
        if line.ratio
        else verdict(statistics.median(ours), line.most, ""),
    ]
    return "{:33} {:>8} {:>9} {:>6}  {}".format(*cells).rstrip()


def number(values: Sequence[float]) -> str:
    """Format the median, with three digits."""
    value = statistics.median(values)
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def verdict(value: float, target: float | None, sign: str) -> str:
    """Format the target and whether it is met."""
    return "" if target is None else f"≤ {target:g}{sign} {'met' if value <= target else 'NOT MET'}"


# Measuring


def visit(size: tuple[int, int], effort: Effort) -> Round:
    """Run both programs from start to end, in turn."""
    with Session(BARE.command, size) as bare:
        figures = [started(BARE, bare)]
        with Session(OURS.command, size) as ours:
            figures.append(started(OURS, ours))
        with Session(EVEN.command, size) as ours:
            ours.calm()
            both = ((BARE, bare), (EVEN, ours))
            for program, session in both:
                session.press(program.prepare)
                session.calm()
                states(program, session)
            stepped = step(both, effort.steps)
            for found, program, session, more in zip(figures, *zip(*both, strict=True), stepped, strict=True):
                found |= more
                if program is EVEN:
                    found |= typed(session, effort.steps)
                for rate in (30, 100):
                    found |= held(program, session, effort.held, rate)
                found |= idle(session, effort.seconds) | {"leaving": left(program, session)}
    beside = beside_busy_loops(size)
    return Round(figures[0] | beside[0], figures[1] | beside[1] | over_slow_link(size))


def started(program: Program, session: Session) -> Figures:
    """Measure the start, until no more output comes."""
    session.calm()
    seen = list(session.frames())
    reached = {
        "first frame": next(frame for frame in seen if frame.text.strip()),
        "first result": next(frame for frame in seen if program.state(frame.text) is not None),
        "settled": seen[-1],
    }
    figures = {name: 1000 * (frame.when - session.began) for name, frame in reached.items()}
    return figures | {f"{name}: processor time": 1000 * frame.used for name, frame in reached.items()}


def beside_busy_loops(size: tuple[int, int]) -> list[Figures]:
    """Measure the first frame and the first result while two other processes use a processor each."""
    found: list[Figures] = []
    with busy_loops(2):
        for program in (BARE, OURS):
            with Session(program.command, size) as session:
                frames: list[Frame] = []
                while not any(program.state(frame.text) is not None for frame in frames):
                    session.pump(0.5)
                    frames += session.frames()
                first = next(frame for frame in frames if frame.text.strip())
                result = next(frame for frame in frames if program.state(frame.text) is not None)
                figures = {"first frame": first.when, "first result": result.when}
                found.append({f"beside busy loops: {k}": 1000 * (w - session.began) for k, w in figures.items()})
    return found


@contextmanager
def busy_loops(count: int) -> Generator[None]:
    """Run `count` processes that loop forever."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def step(both: Sequence[tuple[Program, Session]], steps: int) -> list[Figures]:
    """Press one key in each program at a time, `steps` times."""
    for program, session in both:
        session.press(RIGHT)  # from now on the next key repeats the last one
        session.calm()
        states(program, session)
    before = [(state_now(program, session), session.cpu(), session.written) for program, session in both]
    pressed: list[list[float]] = [[] for _ in both]
    for _ in range(steps):
        for (_, session), times in zip(both, pressed, strict=True):
            times.append(session.press(RIGHT))
            session.answered()
            session.pump(random.uniform(0, 0.03))  # keys must not synchronise with the screen's refresh
    figures: list[Figures] = []
    for (program, session), (at, used, written), times in zip(both, before, pressed, strict=True):
        session.calm()
        used, written = session.cpu() - used, session.written - written
        late = lags(times, states(program, session), at)
        figures.append(
            {
                "step p50": 1000 * quantile(late, 0.5),
                "step p95": 1000 * quantile(late, 0.95),
                "step: processor time": 1000 * used / steps,
                "bytes of a step": written / steps,
            }
        )
    return figures


def typed(session: Session, times: int) -> Figures:
    """Type d_k digit by digit; measure from the last digit."""
    late: list[float] = []
    for d_k in range(LAST, LAST - times, -1):
        for digit in str(d_k // 10):
            session.press(digit.encode())
            session.answered()
        states(OURS, session)
        session.pump(random.uniform(0, 0.03))
        pressed = session.press(str(d_k % 10).encode())
        session.answered()
        late.append(next((when - pressed for when, state in states(OURS, session) if state == d_k), math.inf))
        session.press(b"\r")
        session.answered()
    session.press(OURS.prepare)
    session.calm()
    states(OURS, session)
    return {f"typed {name}": 1000 * quantile(late, share) for name, share in (("p50", 0.5), ("p95", 0.95))}


def held(program: Program, session: Session, keys: int, rate: int) -> Figures:
    """Hold a key that repeats `rate` times a second."""
    at = state_now(program, session)
    pressed = hold(session, keys, rate)
    session.calm()
    seen = states(program, session)
    return {
        f"held at {rate}/s: lost": at + keys - seen[-1][1],
        f"held at {rate}/s: not shown": keys - len({state for _, state in seen if state > at}),
        f"held at {rate}/s: lag p95": 1000 * quantile(lags(pressed, seen, at), 0.95),
    }


def over_slow_link(size: tuple[int, int], keys: int = 90, rate: int = 30) -> Figures:
    """Hold a key that repeats faster than the link can carry frames."""
    with Session(EVEN.command, size, SLOW) as session:
        session.calm()
        session.press(OURS.prepare)
        session.calm()
        states(OURS, session)
        pressed = hold(session, keys, rate)
        session.calm()
        seen = states(OURS, session)
    return {
        "slow link: last state after": lags(pressed, seen, FIRST)[-1],
        "slow link: not shown": keys - len({state for _, state in seen if state > FIRST}),
    }


def idle(session: Session, seconds: float) -> Figures:
    """Measure without input."""
    session.calm()
    used, written = session.cpu(), session.written
    session.pump(seconds)
    return {
        "idle: bytes a second": (session.written - written) / seconds,
        "idle: processor time a second": 1000 * (session.cpu() - used) / seconds,
    }


def left(program: Program, session: Session) -> float:
    """Return the milliseconds from the key to the end of the process."""
    pressed = session.press(program.leave)
    return 1000 * (session.ended() - pressed)


def bytes_of_keys(size: tuple[int, int], effort: Effort) -> dict[str, tuple[float, float]]:
    """Return the bytes that ←→ and ↑↓ cost in every tab, equally often in both directions."""
    costs: dict[str, tuple[float, float]] = {}
    with Session(OURS.command, size) as session:
        for pane in TABS:
            session.calm()
            times = effort.steps // 10
            costs[pane] = bytes_of(session, (RIGHT, LEFT), times), bytes_of(session, (DOWN, UP), times)
            session.press(b">")
    return costs


def bytes_of(session: Session, keys: tuple[bytes, bytes], times: int) -> float:
    """Return the bytes sent for each key."""
    written = session.written
    for key in itertools.chain.from_iterable([key] * times for key in keys):
        session.press(key)
        session.calm()
    return (session.written - written) / (2 * times)


# Keys and quantiles


def hold(session: Session, keys: int, rate: int) -> list[float]:
    """Press → `rate` times a second; return the times of the keys."""
    begun = time.monotonic()
    pressed: list[float] = []
    for number in range(keys):
        session.pump(begun + number / rate - time.monotonic())
        pressed.append(session.press(RIGHT))
    return pressed


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that `share` of the values do not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


if __name__ == "__main__":
    main()
