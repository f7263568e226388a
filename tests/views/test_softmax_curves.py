"""The charts of weights over the multiplier in the Softmax pane."""

from attn_tui.core.attention.worked_example import Example, multiplier_curves, work_out
from attn_tui.core.parameters import Parameters
from attn_tui.tui.panes.softmax.view import Worked
from attn_tui.tui.panes.softmax.widget import curve_lines
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.lines import line_width
from cases import for_each
from line_texts import text_of, texts_of


def worked(a: float = 1.0, b: float = 0.125, scores: tuple[float, ...] = (-24.0, 0.0, 24.0)) -> Worked:
    example = Example(scores)
    sides = work_out(example, a, "float32"), work_out(example, b, "float32")
    return Worked(example, Parameters(), sides, curves=multiplier_curves(example, (a, b)))


@for_each("glyphs", [UNICODE, ASCII])
@for_each("width", [60, 118, 196])
@for_each("height", [9, 14, 30, 60])
def test_charts_fit_and_are_higher_where_there_is_room(glyphs: Glyphs, width: int, height: int) -> None:
    lines = curve_lines(worked(), width, height, glyphs)
    each = min((height - 4) // 5, 4)
    assert len(lines) == 4 + 5 * each
    assert max(map(line_width, lines)) <= width
    assert "".join(texts_of(lines)).isascii() or not glyphs.ascii
    labels = [line[:8].strip() for line in texts_of(lines)[2:-2] if line[:8].strip()]
    assert labels == [glyphs.say(name) for name in ("−24", "0", "24", "entropy", "‖J‖_F")]


def test_charts_that_do_not_fit_are_left_out() -> None:
    assert curve_lines(worked(), 118, 8, UNICODE) == []
    assert curve_lines(worked(), 40, 30, UNICODE) == []


def test_both_settings_are_marked_at_their_multipliers() -> None:
    lines = curve_lines(worked(), 118, 30, UNICODE)
    axis, labels = texts_of(lines[-2:])
    assert labels[axis.index("A")] == "1"
    assert labels[axis.index("B") - 2 : axis.index("B") + 3] == "0.125"
    for line in lines[2:-2]:
        roles = {at: role for at, role in _roles(line).items() if role in ("unscaled", "scaled")}
        assert roles == {axis.index("A"): "unscaled", axis.index("B"): "scaled"}


def test_equal_multipliers_share_a_mark() -> None:
    axis = texts_of(curve_lines(worked(0.5, 0.5), 118, 30, UNICODE))[-2]
    assert axis.count("A") + axis.count("B") == 1


def test_the_weight_of_the_largest_score_grows_and_the_entropy_falls() -> None:
    lines = curve_lines(worked(), 118, 9, UNICODE)
    of = {text_of(line)[:8].strip(): text_of(line)[9:].replace("┊", " ") for line in lines[2:-2]}
    heights = {name: ["▁▂▃▄▅▆▇".find(sign) for sign in row.rstrip()] for name, row in of.items()}
    assert heights["24"] == sorted(heights["24"])
    assert heights["entropy"] == sorted(heights["entropy"], reverse=True)
    assert heights["24"][-1] == heights["entropy"][0] == 6


def _roles(line: tuple[tuple[str, object], ...]) -> dict[int, object]:
    return dict(enumerate(role for text, role in line for _ in text))
