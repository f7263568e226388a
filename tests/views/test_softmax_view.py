"""The lines and the charts of the Softmax pane."""

import pytest
from attn_tui.core.attention.worked_example import Example, multiplier_curves, multiplier_of, work_out
from attn_tui.core.parameters import Parameters
from attn_tui.core.questions.softmax import SoftmaxSteps
from attn_tui.tui.panes.softmax.widget import curve_lines
from attn_tui.tui.views.fields.entry import Draft
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.lines import Line, line_width
from attn_tui.tui.views.results.jacobian import heading_line, jacobian_lines
from attn_tui.tui.views.results.softmax import (
    LEFT,
    ScoreEntry,
    in_cells,
    row_of,
    step_lines,
    unit_cells,
    word_lines,
)
from cases import for_each
from line_texts import text_of, texts_of

NOTES, USUAL = Example(), Parameters()
WIDEST = Example((-999.99, -123.456789, 0.0, 10.0, 1000.0, 3.25, -1000.0, 11.0), 0.01, -990)
TWO = Example((0.0, 0.0))


def worked(example: Example = NOTES, parameters: Parameters = USUAL, remark: str = "") -> SoftmaxSteps:
    form = parameters.precision
    sides = work_out(example, 1.0, form), work_out(example, multiplier_of(parameters), form)
    return SoftmaxSteps(example, parameters, sides, remark=remark)


def lines_of(of: SoftmaxSteps, width: int, glyphs: Glyphs = UNICODE, editing: ScoreEntry | None = None) -> list[Line]:
    return [*step_lines(of, width, glyphs, editing), *word_lines(of, width, glyphs, editing)]


def shown(of: SoftmaxSteps, width: int = 80, glyphs: Glyphs = UNICODE, editing: ScoreEntry | None = None) -> str:
    return "\n".join(line.rstrip() for line in texts_of(lines_of(of, width, glyphs, editing)))


def words(of: SoftmaxSteps) -> str:
    return " ".join(shown(of).split())


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
@pytest.mark.parametrize("example", [Example(), WIDEST, TWO], ids=["notes", "widest", "two"])
def test_no_line_is_wider_than_the_screen(example: Example, glyphs: Glyphs) -> None:
    for p in (Parameters(), Parameters(scale="custom", multiplier=999.5), Parameters(scale="log512_n", d_k=16_384)):
        of = worked(example, p)
        for width in (40, 57, 77, 78, 80, 100, 103, 104, 120, 160, 200):
            for editing in (
                None,
                ScoreEntry(1, Draft.of("-123.4567890123"), "scores: no"),
                ScoreEntry(0, note="enough"),
            ):
                lines = lines_of(of, width, glyphs, editing)
                assert max(map(line_width, lines)) <= width
                assert "\n".join(texts_of(lines)).isascii() or not glyphs.ascii
                assert "?" not in "".join(texts_of(lines))


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_numbers_of_the_notes_are_shown_side_by_side(width: int) -> None:
    lines = shown(worked(), width).splitlines()
    (title,) = (line for line in lines if "unscaled × 1 " in line)
    assert "scaled × 0.125 (1/√d_k, d_k 64)" in title
    (row,) = (line for line in lines if line.split()[:2] == ["10", "10"])
    assert row.split()[2] == row.split()[3] == "8.3e−7"
    assert [cell for cell in row.split() if cell[0] in "01"][2:] == ["1.25", "0.1738", "0.1401", "0.1205"]
    assert "81 %" in shown(worked(), width)


def test_the_two_sides_are_stacked_on_narrow_screens() -> None:
    lines = [line.strip() for line in shown(worked(), 40).splitlines()]
    assert lines.index("unscaled × 1") < lines.index("scaled × 0.125 (1/√d_k)")
    powers, jacobian = lines.index("e^(x−m) unscaled    scaled"), next(i for i, x in enumerate(lines) if "∂p/∂x" in x)
    assert lines.index("scaled × 0.125 (1/√d_k)") < powers < jacobian
    assert ["24", "1.0000", "1.0000"] in [line.split() for line in lines]
    assert "e^(x−m) unscaled" not in shown(worked(), 60)  # they have a separate column there


def test_the_title_the_remark_and_the_row_of_the_cursor_are_those_of_the_example() -> None:
    text = shown(worked(Example(temperature=2, shift=-30)), 120)
    assert "unscaled × 1 / 2 − 30" in text
    assert "scaled × 0.125 (1/√d_k, d_k 64) / 2 − 30" in text
    assert "It is not that rule. Unscaled," in words(worked(remark="It is not that rule."))
    assert len([line for line in lines_of(worked(), 80, UNICODE) if line]) <= 22


def test_the_sentence_says_whether_gradients_flow() -> None:
    text = words(worked())
    assert "largest weight is > 99.9 % and p(1−p) at most 8.32e−7: gradients vanish." in text
    assert "With × 0.125, they are 81 % and 0.156: gradients flow." in text
    assert "one-hot" in text
    assert "dead" in text
    even = words(worked(TWO))
    assert "50 % and p(1−p) at most 0.25: gradients flow, and weights are nearly uniform." in even
    assert "dead" not in even
    assert "gradients are zero" in words(worked(Example((-1000.0, 1000.0))))
    assert "gradients are small" in words(worked(Example((0.0, 3.5))))
    assert "A scale of 1 changes nothing." in words(worked(Example(), Parameters(scale="none")))


def test_the_sentence_says_what_temperature_and_shift_do() -> None:
    assert "T 8 changes the unscaled logits as the scale alone does." in words(worked(Example(temperature=8)))
    assert "T 2 brings all logits closer to each other." in words(worked(Example(temperature=2)))
    assert "T 0.5 brings all logits further apart." in words(worked(Example(temperature=0.5)))
    text = words(worked(Example(shift=800)))
    assert "Adding 800 to every logit changes no weight: the factor e^shift cancels." in text
    rounded = worked(Example((0.1, 0.7, 1.3), shift=-700.3))
    assert max(side.moved for side in rounded.sides) > 0
    assert "Adding −700 to every logit changes weights by at most" in words(rounded)


@for_each(
    ("example", "number_format", "said"),
    [
        (Example(), "float32", "Σe^x = 2.65e10"),
        (Example(), "float16", "1 of 5 overflow: no weights"),
        (Example(shift=800), "float64", "5 of 5 overflow: no weights"),
        (Example(shift=-1000), "float32", "the sum is 0: no weights"),
        (Example((88.7, 88.7)), "float32", "the sum is too large: no weights"),
        (Example(), "float8_e4m3fn", "2 of 5 held at 448: 50 % off"),
    ],
)
def test_naive_exponentials_are_described(example: Example, number_format: str, said: str) -> None:
    parameters = Parameters().with_value("precision", number_format)
    assert said in shown(worked(example, parameters))


def test_the_logit_where_exponentials_overflow_is_named() -> None:
    assert "float16 overflows above x = 11.09." in words(worked(Example(), Parameters(precision="float16")))


def test_the_jacobian_is_readable_without_colour_and_has_its_values_where_it_is_tall() -> None:
    jacobian = [[0.2, -0.1, 0.0], [-0.02, 0.005, -1e-9], [0.0, 0.0, 0.0]]
    rows = texts_of(jacobian_lines(jacobian, 15, "scaled", UNICODE))
    assert [row.split() for row in rows] == [["+███", "−▓▓▓", "0"], ["−▒▒▒", "+░░░", "−"], ["0", "0", "0"]]
    rows = texts_of(jacobian_lines(jacobian, 27, "scaled", UNICODE))
    assert [row.split() for row in rows[:2]] == [["██+.200", "▓▓−.100", "0"], ["▒▒−.020", "░░+.005", "−1e−9"]]
    rows = texts_of(jacobian_lines(jacobian, 27, "scaled", ASCII))
    assert rows[0].split() == ["@@+.200", "##-.100", "0"]
    jacobian = [[0.2, -0.1], [-0.02, -1e-21]]
    rows = [row.split() for row in texts_of(jacobian_lines(jacobian, 16, "scaled", UNICODE, tall=True))]
    assert rows == [["+.200", "−.100"], ["███████", "▓▓▓▓▓▓▓"], ["−.020", "−1e−21"], ["▒▒▒▒▒▒▒"]]
    for width in (64, 80, 120, 200):
        for of in (worked(), worked(WIDEST), worked(TWO)):
            lines, usual = step_lines(of, width, UNICODE, tall=True), step_lines(of, width, UNICODE)
            assert max(map(line_width, lines)) <= width
            assert len(lines) - len(usual) == len(of.example.scores) * (1 if width >= 80 else 2)


def test_an_error_message_dims_all_but_itself_and_the_typed_text() -> None:
    editing = ScoreEntry(2, Draft.of("1x"), "score: must be")
    lines = lines_of(worked(), 80, UNICODE, editing)
    row = row_of(worked(), 80, UNICODE, editing)
    assert "1x" in texts_of(lines)[row]
    assert "must be" in texts_of(lines)[0]
    for at, line in enumerate(lines[1:], 1):
        assert at == row or {role for text, role in line if text.strip()} <= {"dim"}


def test_the_row_of_the_cursor_is_reported_and_of_a_long_score_the_part_around_it_shown() -> None:
    for width in (40, 80, 120):
        for at in range(5):
            editing = ScoreEntry(at)
            lines = texts_of(lines_of(worked(), width, UNICODE, editing))
            assert "▸" in lines[row_of(worked(), width, UNICODE, editing)]
    draft = Draft("-123.4567890", 12)
    assert "567890" in shown(worked(), 80, UNICODE, ScoreEntry(0, draft))
    assert "-123.4" in shown(worked(), 80, UNICODE, ScoreEntry(0, draft.moved(0)))


@for_each(
    ("values", "said"),
    [
        ([-24, 0, 24], ["−24", "0", "24"]),
        ([-3, -1.25], ["−3.00", "−1.25"]),
        ([0.047070, 0], ["0.047", "0.000"]),
        ([798.75, -0.0], ["798.75", "0.00"]),
        ([99_999.7, 1], ["100000", "1"]),
        ([999_999.7, 1], ["1e6", "1"]),
        ([-1e8, -13_300], ["−1e8", "−13300"]),
    ],
)
def test_logits_share_their_decimals(values: list[float], said: list[str]) -> None:
    assert in_cells(values, 6, UNICODE) == said


@for_each(
    ("value", "said"),
    [(0, "0"), (1, "1.0000"), (0.80625, "0.8063"), (8.3e-7, "8.3e−7"), (1.4e-21, "1.4e−21"), (1e-200, "<1e−99")],
)
def test_numbers_up_to_one_take_seven_cells(value: float, said: str) -> None:
    assert unit_cells(value, UNICODE) == said
    assert len(said) <= 7


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_a_bar_is_as_long_as_its_share(glyphs: Glyphs) -> None:
    assert glyphs.bar(0, 4) == "    "
    assert glyphs.bar(0.99, 4) == glyphs.bar(1, 4) == glyphs.lengths[-1] * 4
    assert glyphs.bar(0.5, 4) == glyphs.lengths[-1] * 2 + "  "
    lengths = [len(glyphs.bar(share / 50, 4).rstrip()) for share in range(51)]
    assert lengths == sorted(lengths)


@pytest.mark.parametrize("tall", [False, True])
def test_a_jacobian_of_negligible_entries_says_so_once(tall: bool) -> None:
    jacobian = [[1e-7, -1e-7], [-1e-7, 9e-7]]
    lines = texts_of(jacobian_lines(jacobian, 30, "scaled", UNICODE, tall))
    assert [line.strip() for line in lines] == [""] * (4 if tall else 2)
    assert text_of(heading_line(jacobian, ["1", "2"], 30, UNICODE, tall)).strip() == "all below 1e−6"
    jacobian[0][0] = 1e-6
    assert "all below" not in text_of(heading_line(jacobian, ["1", "2"], 30, UNICODE, tall))


@pytest.mark.parametrize("tall", [False, True])
def test_a_jacobian_has_its_scores_over_the_columns_if_it_has_numbers_and_else_a_legend(tall: bool) -> None:
    jacobian = [[0.25, -0.25], [-0.25, 0.25]]
    head = text_of(heading_line(jacobian, ["−24", "10"], 30, UNICODE, tall))
    row = texts_of(jacobian_lines(jacobian, 30, "scaled", UNICODE, tall))[0]
    assert head.split() == ["−24", "10"]
    assert abs(head.index("10") - row.index("−.250")) <= 2
    narrow = text_of(heading_line(jacobian, ["−24", "10"], 14, UNICODE, tall))
    assert (".001" in narrow) != tall


def charted(a: float = 1.0, b: float = 0.125, scores: tuple[float, ...] = (-24.0, 0.0, 24.0)) -> SoftmaxSteps:
    example = Example(scores)
    sides = work_out(example, a, "float32"), work_out(example, b, "float32")
    return SoftmaxSteps(example, Parameters(), sides, curves=multiplier_curves(example, (a, b)))


@for_each("glyphs", [UNICODE, ASCII])
@for_each("width", [60, 118, 196])
@for_each("height", [9, 14, 30, 60])
def test_charts_fit_and_are_higher_where_there_is_room(glyphs: Glyphs, width: int, height: int) -> None:
    lines = curve_lines(charted(), width, height, glyphs)
    each = min((height - 4) // 5, 4)
    assert len(lines) == 4 + 5 * each
    assert max(map(line_width, lines)) <= width
    assert "".join(texts_of(lines)).isascii() or not glyphs.ascii
    labels = [line[:8].strip() for line in texts_of(lines)[2:-2] if line[:8].strip()]
    assert labels == [glyphs.say(name) for name in ("−24", "0", "24", "entropy", "‖J‖_F")]


def test_charts_that_do_not_fit_are_left_out_and_equal_multipliers_share_a_mark() -> None:
    assert curve_lines(charted(), 118, 8, UNICODE) == []
    assert curve_lines(charted(), LEFT + 42, 30, UNICODE) == []
    assert curve_lines(charted(), LEFT + 43, 30, UNICODE) != [], "40 cells"
    axis = texts_of(curve_lines(charted(0.5, 0.5), 118, 30, UNICODE))[-2]
    assert axis.count("●") + axis.count("◆") == 1


def test_both_settings_are_marked_at_their_multipliers() -> None:
    lines = curve_lines(charted(), 118, 30, UNICODE)
    axis, labels = texts_of(lines[-2:])
    a, b = axis.index("●"), axis.index("◆")
    assert labels[a] == "1"
    assert labels[b - 1 : b + 2] == "1/8"
    for line in lines[2:-2]:
        roles = {at: role for at, role in _roles(line).items() if role in ("unscaled", "scaled")}
        assert roles == {a: "unscaled", b: "scaled"}


def test_the_weight_of_the_largest_score_grows_and_the_entropy_falls() -> None:
    lines = curve_lines(charted(), 118, 9, UNICODE)
    of = {text_of(line)[:8].strip(): text_of(line)[9:].replace("┊", " ") for line in lines[2:-2]}
    heights = {name: ["▁▂▃▄▅▆▇".find(sign) for sign in row.rstrip()] for name, row in of.items()}
    assert heights["24"] == sorted(heights["24"])
    assert heights["entropy"] == sorted(heights["entropy"], reverse=True)
    assert heights["24"][-1] == heights["entropy"][0] == 6


def _roles(line: tuple[tuple[str, object], ...]) -> dict[int, object]:
    return dict(enumerate(role for text, role in line for _ in text))
