"""The names of the panes in the top bar stay in place, whatever the status is."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.parameters import FIELD, Parameters
from attn_tui.tui.compute.engine import Engine
from attn_tui.tui.panes.capture.pane import CapturePane
from attn_tui.tui.panes.catalogue import PANES
from attn_tui.tui.panes.heads.pane import HeadsPane
from attn_tui.tui.panes.pane import Pane
from attn_tui.tui.views.bars import top_line
from attn_tui.tui.views.fields.choice_list import ChoiceList
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.lines import Line
from stage import LocalEngine

WIDTHS = range(40, 201)
SHOW_PROGRESS = ("Lab", "Sweep", "Rules", "Capture")
D_KS = (1, 64, 100, 1000, int(FIELD["d_k"].high))

every_pane = pytest.mark.parametrize("name", PANES)


@dataclass
class Host:
    """An app that is not running."""

    parameters: Parameters = field(default_factory=Parameters)
    glyphs: Glyphs = UNICODE
    engine: Engine = field(default_factory=LocalEngine)
    as_left: bool = False
    keymap: Mapping[str, str] = field(default_factory=dict[str, str])

    def change(self, parameters: Parameters) -> None: ...
    def to_lab(self, parameters: Parameters) -> None: ...
    def to_pane(self, name: str, item: object = None) -> None: ...
    def next_view(self) -> None: ...
    def absorb(self, pane: Pane) -> None: ...
    def show_status(self) -> None: ...
    def show_keys(self) -> None: ...
    def say(self, text: str) -> None: ...
    def alert(self, text: str) -> None: ...
    def choose(self, found: ChoiceList, take: Callable[[Sequence[str]], object]) -> None: ...


def bar(pane: Pane, statuses: Sequence[Line], width: int) -> tuple[str, str]:
    """Return the names and numbers of the panes, and the status after them."""
    bare = "".join(text for text, _ in top_line(tuple(PANES), pane.NAME, (), width, UNICODE)).rstrip()
    line = "".join(text for text, _ in top_line(tuple(PANES), pane.NAME, statuses, width, UNICODE))
    return line[: len(bare)], line[len(bare) :].strip()


def bars(pane: Pane, width: int) -> Iterator[tuple[str, str]]:
    """Yield the bar when idle, and during a computation."""
    for progress in (None, 0.0, 0.34, 1.0):
        pane.progress = progress
        yield bar(pane, pane.statuses(), width)
    pane.progress = None


@pytest.mark.slow
@every_pane
def test_names_of_panes_stay_in_place_at_every_d_k_and_progress(name: str) -> None:
    for glyphs, as_left in ((UNICODE, False), (ASCII, True)):
        panes = [PANES[name].load()(Host(Parameters(d_k=d_k), glyphs, as_left=as_left)) for d_k in D_KS]
        for width in WIDTHS:
            assert len({names for pane in panes for names, _ in bars(pane, width)}) == 1


@every_pane
def test_the_status_and_the_progress_of_a_pane_are_shown_at_every_width(name: str) -> None:
    for d_k in D_KS:
        pane = PANES[name].load()(Host(Parameters(d_k=d_k)))
        for width in WIDTHS:
            rest, *computing = [status for _, status in bars(pane, width)]
            assert rest or not pane.statuses()
            if name in SHOW_PROGRESS:
                assert [status[-5:].strip() for status in computing] == ["0 %", "34 %", "100 %"]


def test_an_impossible_layer_is_reported_at_every_width() -> None:
    pane = HeadsPane(Host())
    pane.shape.values["heads"] = 7
    assert {bar(pane, pane.statuses(), width)[1] for width in WIDTHS} == {"impossible shape", "invalid"}


def test_the_name_of_a_capture_does_not_move_the_names_of_panes() -> None:
    pane = CapturePane(Host())
    before = [bar(pane, pane.statuses(), width)[0] for width in WIDTHS]
    pane.heads.capture = open_capture(sample_path()).described()
    assert [bar(pane, pane.statuses(), width)[0] for width in WIDTHS] == before
    assert "MiniLM" in bar(pane, pane.statuses(), max(WIDTHS))[1]
    assert "heads" in bar(pane, pane.statuses(), 80)[1]
