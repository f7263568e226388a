"""What the program costs in a terminal: how soon it is there, how closely it follows keys, how much it sends.

It runs as people run it, in a terminal of its own, and in turn with it, in every round, the least that a Textual app
can be: one line that counts keys (bare.py). Times of a noisy machine are compared as ratios of a round; medians over
rounds are printed.

- first frame: something is on the screen; first result: the first measurement is; settled: all has come, theory too;
- a step: → in the Lab, once more, until the measurement of the next d_k is on the screen; for the bare app until its
  line is. Typed: from the last digit of a d_k that nobody could have known, until its measurement is;
- held: → at 30 and 100 a second; the lag is the time from a key to the first frame with its state or a later one;
- slow link: → 90 times at 30 a second over 56 kbit/s with 150 ms there and back; from the last key to its state;
- idle: nobody types. Leaving: from q to the end of the process.

What the core alone takes for a step is measured in the same round, in this process, as processor time on one thread.
Where a line says so it is taken off before the ratio is formed: that is the screen's share. From a step nothing is
taken off, because what it needs has been measured before the key comes.
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
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import textual
from attn_tui.core.blas import one_blas_thread
from attn_tui.core.memory import keep_memory
from attn_tui.core.parameters import Parameters
from attn_tui.tui.messages import MeasurementReady
from attn_tui.tui.panes.catalogue import PANES
from attn_tui.tui.work import Lab
from programs import BARE, FIRST, LAST, OURS, Program, lags, states
from session import Link, Session

SIZES = ("80x24", "120x40", "200x60")
SMALLEST = (80, 24)
UP, DOWN, RIGHT, LEFT = (b"\x1b[" + final for final in (b"A", b"B", b"C", b"D"))
SLOW = Link(bits=56_000, there_and_back=0.150)
BYTES = 3400  # the most that a key may cost


@dataclass(frozen=True)
class Effort:
    """How much is done in a round."""

    steps: int = 30
    held: int = 60
    seconds: float = 4.0


@dataclass(frozen=True)
class Line:
    """A line of the table, and its target: as a ratio to the bare app, or as it is."""

    name: str
    unit: str = "ms"
    against: str = ""  # what of the bare app, if not the same
    apart: bool = False  # the core's time for a step is taken off first
    ratio: float | None = None
    most: float | None = None


_FIRST = "first frame: processor time"

LINES = (
    Line("first frame", ratio=1.2),
    Line("first result", against="first frame", ratio=1.35),
    Line("settled", against="first frame", ratio=1.5),
    *(Line(f"{each}: processor time", against=_FIRST) for each in ("first frame", "first result", "settled")),
    Line("step p50", ratio=1.6),
    Line("step p95", ratio=1.8),
    Line("step: processor time"),
    Line("typed p50", against="step p50", apart=True, ratio=1.6),
    Line("typed p95", against="step p95", apart=True, ratio=1.8),
    Line("bytes of a step", "B", most=BYTES),
    Line("held at 30/s: lost", "", most=0),
    Line("held at 30/s: not shown", "", most=0),
    Line("held at 30/s: lag p95", ratio=2),
    Line("held at 100/s: lost", "", most=0),
    Line("held at 100/s: not shown", ""),
    Line("held at 100/s: lag p95", apart=True, most=10),
    Line("slow link: last state after", "s", most=1.2),
    Line("slow link: not shown", ""),
    Line("idle: bytes a second", "B", most=0),
    Line("idle: processor time a second", most=2.5),
    Line("leaving"),
)

Figures = dict[str, float]


class Round(NamedTuple):
    """What was found in a round, by the names of lines."""

    bare: Figures
    ours: Figures
    core: float  # milliseconds of a step


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, help="rounds that medians are taken over (5; quick: 2)")
    parser.add_argument("--sizes", nargs="+", type=size_of, default=[*map(size_of, SIZES)], metavar="80x24")
    parser.add_argument("--quick", action="store_true", help="less of everything")
    options = parser.parse_args()
    rounds = options.rounds or (2 if options.quick else 5)
    effort = Effort(steps=15, held=40, seconds=2.0) if options.quick else Effort()
    keep_memory()  # as the program does
    gc.disable()  # so that no collection falls into a time that is taken
    print(f"Textual {textual.__version__}, Python {platform.python_version()}, {platform.machine()}")
    print(f"Medians of {rounds} rounds, the program and the bare app in turn. Milliseconds belong to the machine.")
    for size in options.sizes:
        measure(size, rounds, effort)


def size_of(text: str) -> tuple[int, int]:
    """A size of the terminal, from how it is written; in smaller ones the Lab does not show all that is read here."""
    found = re.fullmatch(r"(\d+)[x×](\d+)", text)
    if not found or int(found[1]) < SMALLEST[0] or int(found[2]) < SMALLEST[1]:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 120x40; the smallest is 80x24")
    return int(found[1]), int(found[2])


def measure(size: tuple[int, int], rounds: int, effort: Effort) -> None:
    """Print what was found at one size."""
    print(f"\n{size[0]}×{size[1]}\n", flush=True)
    found: list[Round] = []
    for program in (BARE, OURS):  # once unmeasured: from then on everything is compiled, and at hand
        with Session(program.command, size) as session:
            session.calm()
    for _ in range(rounds):
        found.append(visit(size, effort))
        gc.collect()
    core = statistics.median(each.core for each in found)
    print(f"{'':33} {'bare':>8} {'attn-tui':>9} {'ratio':>6}  target     the core's time for a step: {core:.1f} ms")
    for line in LINES:
        print(row(line, found))
    print(f"\n{'bytes a key':33} {'←→':>8} {'↑↓':>9} {'':6}  target", flush=True)
    for pane, costs in bytes_of_keys(size, effort).items():
        print(f"{pane:33} {costs[0]:8.0f} {costs[1]:9.0f} {'':6}  {verdict(max(costs), BYTES, '')}", flush=True)


def row(line: Line, found: Sequence[Round]) -> str:
    """A line of the table: medians over rounds, of ratios too."""
    of_bare = line.against or line.name
    ours = [each.ours[line.name] for each in found]
    shares = [each.ours[line.name] - (each.core if line.apart else 0) for each in found]
    bare = [each.bare[of_bare] for each in found if of_bare in each.bare]
    ratios = [share / other for share, other in zip(shares, bare, strict=False) if other and line.unit == "ms"]
    cells = [
        f"{line.name}, {line.unit}" if line.unit else line.name,
        number(bare) if bare and line.against in ("", line.name) else "",
        number(ours),
        f"{statistics.median(ratios):.2f}" if ratios else "",
        verdict(statistics.median(ratios), line.ratio, " ×")
        if line.ratio
        else verdict(statistics.median(shares), line.most, ""),
        "core time apart" if line.apart else "",
    ]
    return "{:33} {:>8} {:>9} {:>6}  {:16} {}".format(*cells).rstrip()


def number(values: Sequence[float]) -> str:
    """The median, in three digits."""
    value = statistics.median(values)
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def verdict(value: float, target: float | None, sign: str) -> str:
    """The target, and whether it is met."""
    return "" if target is None else f"≤ {target:g}{sign} {'met' if value <= target else 'NOT MET'}"


# What is measured


def visit(size: tuple[int, int], effort: Effort) -> Round:
    """Both from their start to their end, in turn."""
    with Session(BARE.command, size) as bare:
        figures = [started(BARE, bare)]
        with Session(OURS.command, size) as ours:
            figures.append(started(OURS, ours))
            both = ((BARE, bare), (OURS, ours))
            for program, session in both:
                session.press(program.prepare)
                session.calm()
                states(program, session)
            with one_blas_thread():
                stepped, core = step(both, effort.steps)
            for found, program, session, more in zip(figures, *zip(*both, strict=True), stepped, strict=True):
                found |= more
                if program is OURS:
                    found |= typed(session, effort.steps)
                for rate in (30, 100):
                    found |= held(program, session, effort.held, rate)
                found |= idle(session, effort.seconds) | {"leaving": left(program, session)}
    return Round(figures[0], figures[1] | over_slow_link(size), core)


def started(program: Program, session: Session) -> Figures:
    """From the start until everything is there."""
    session.calm()
    seen = list(session.frames())
    reached = {
        "first frame": next(frame for frame in seen if frame.text.strip()),
        "first result": next(frame for frame in seen if program.state(frame.text) is not None),
        "settled": seen[-1],
    }
    figures = {name: 1000 * (frame.when - session.began) for name, frame in reached.items()}
    return figures | {f"{name}: processor time": 1000 * frame.used for name, frame in reached.items()}


def step(both: Sequence[tuple[Program, Session]], steps: int) -> tuple[list[Figures], float]:
    """One key in each, and what the core has to do for it; and again. Milliseconds of the core are the median."""
    core, taken = core_steps(), []
    for program, session in both:
        session.press(RIGHT)  # from now on the next key is the same once more
        session.calm()
        states(program, session)
    before = [(program.state(session.text()), session.cpu(), session.written) for program, session in both]
    pressed: list[list[float]] = [[] for _ in both]
    for _ in range(steps):
        for (_, session), times in zip(both, pressed, strict=True):
            times.append(session.press(RIGHT))
            session.answered()
            session.pump(random.uniform(0, 0.03))  # or else keys would fall into step with the screen's own clock
        taken.append(next(core))
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
    return figures, 1000 * statistics.median(taken)


def typed(session: Session, times: int) -> Figures:
    """A d_k in digits, one after the other; from the last one on."""
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


def core_steps() -> Iterator[float]:
    """Seconds of processor time that the measurement of one d_k after the other takes, its theory included."""
    lab = Lab()
    for message in lab.measure(Parameters(d_k=FIRST)):
        if isinstance(message, MeasurementReady):
            for _ in lab.predict(message.measurement):
                pass
    for d_k in itertools.count(FIRST + 1):
        begun = time.process_time()
        for _ in lab.measure(Parameters(d_k=d_k)):
            pass
        yield time.process_time() - begun


def held(program: Program, session: Session, keys: int, rate: int) -> Figures:
    """A key that repeats."""
    at = program.state(session.text())
    pressed = hold(session, keys, rate)
    session.calm()
    seen = states(program, session)
    return {
        f"held at {rate}/s: lost": at + keys - seen[-1][1],
        f"held at {rate}/s: not shown": keys - len({state for _, state in seen if state > at}),
        f"held at {rate}/s: lag p95": 1000 * quantile(lags(pressed, seen, at), 0.95),
    }


def over_slow_link(size: tuple[int, int], keys: int = 90, rate: int = 30) -> Figures:
    """A key that repeats faster than the link can carry frames."""
    with Session(OURS.command, size, SLOW) as session:
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
    """Nobody types."""
    session.calm()
    used, written = session.cpu(), session.written
    session.pump(seconds)
    return {
        "idle: bytes a second": (session.written - written) / seconds,
        "idle: processor time a second": 1000 * (session.cpu() - used) / seconds,
    }


def left(program: Program, session: Session) -> float:
    """Milliseconds from the key to the end of the process."""
    pressed = session.press(program.leave)
    return 1000 * (session.ended() - pressed)


def bytes_of_keys(size: tuple[int, int], effort: Effort) -> dict[str, tuple[float, float]]:
    """What ←→ and ↑↓ cost in every pane: some keys one way and as many back, each with all that it leads to."""
    costs = {}
    with Session(OURS.command, size) as session:
        for pane in PANES:
            session.calm()
            costs[pane] = tuple(bytes_of(session, keys, effort.steps // 5) for keys in ((RIGHT, LEFT), (DOWN, UP)))
            session.press(b">")
    return costs


def bytes_of(session: Session, keys: tuple[bytes, bytes], times: int) -> float:
    """Bytes a key."""
    written = session.written
    for key in itertools.chain.from_iterable([key] * times for key in keys):
        session.press(key)
        session.calm()
    return (session.written - written) / (2 * times)


# How it is read


def hold(session: Session, keys: int, rate: int) -> list[float]:
    """Press → so often; when each was."""
    begun = time.monotonic()
    pressed: list[float] = []
    for number in range(keys):
        session.pump(begun + number / rate - time.monotonic())
        pressed.append(session.press(RIGHT))
    return pressed


def quantile(values: Sequence[float], share: float) -> float:
    """The least value that so large a share of the values does not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


if __name__ == "__main__":
    main()
