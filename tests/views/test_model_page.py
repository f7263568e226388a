"""The page of a model: what is wrong, and the head that a click selects."""

from dataclasses import replace

import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.diagnosis.groups import HeadVerdict, faults_of, groups
from attn_tui.core.diagnosis.results import Expected, Finding, Product, Verdict
from attn_tui.tui.views.glyphs import ASCII, UNICODE
from attn_tui.tui.views.lines import line_width
from attn_tui.tui.views.plots.dots import saturation_axis
from attn_tui.tui.views.results.model_page import ModelPage, head_on_page, model_lines

LAYERS = open_capture(sample_path()).layers
RIGHT = Verdict("healthy", "", Expected(32**-0.5, "the file", formula="1/√32"), multiplier=Product(32**-0.5))
WRONG = replace(
    RIGHT,
    word="cause",
    multiplier=Product(1.0),
    findings=(Finding("scale-missing", "the scores were not scaled"),),
)
HEADS = [
    HeadVerdict(each, head, WRONG if each.position == 2 else RIGHT) for each in LAYERS for head in range(each.heads)
]
PAGE = ModelPage(LAYERS, HEADS, groups(fault for each in HEADS for fault in faults_of(each)), (2, 0))


@pytest.mark.parametrize(("width", "height"), [(40, 12), (80, 24), (120, 40), (200, 60)])
def test_the_page_has_its_size_and_both_multipliers(width: int, height: int) -> None:
    for glyphs in (UNICODE, ASCII):
        lines = model_lines(PAGE, width, height, glyphs)
        assert [line_width(line) for line in lines] == [width] * height
        text = "\n".join("".join(text for text, _ in line) for line in lines)
        assert "WRONG SCALE" in text
        assert "0.1768" in text or "█" in text or "#" in text


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 30), (120, 50), (200, 60)])
def test_a_click_on_the_map_selects_the_head_under_it(width: int, height: int) -> None:
    found = 0
    for each in HEADS:
        page = PAGE._replace(cursor=(each.layer.position, each.head))
        for y, line in enumerate(model_lines(page, width, height, UNICODE)):
            x = 0
            for text, role in line:
                if role == "cursor" and len(text) < 4:  # and not the label of a fault
                    assert head_on_page(page, width, height, UNICODE, x, y) == page.cursor
                    found += 1
                x += len(text)
    assert found == len(HEADS) or height < 30


def test_a_click_on_a_row_of_layers_selects_its_first_head_and_elsewhere_none() -> None:
    selected = {head_on_page(PAGE, 120, 30, UNICODE, 3, y) for y in range(30)}
    assert {None, (0, 0), (2, 0), (3, 0)} <= selected
    assert head_on_page(PAGE, 120, 30, UNICODE, 3, 0) is None


def test_heads_have_a_dot_at_their_saturation_unless_the_file_says_another_scale_than_was_used() -> None:
    ratios = {(each.layer.position, each.head): 0.1 * 1.2**each.head for each in HEADS}
    right = [replace(each, verdict=RIGHT) for each in HEADS]
    page = ModelPage(LAYERS, right, groups(fault for each in right for fault in faults_of(each)), (2, 0))
    dots = [drawn(each, 100, 50).count("●") for each in (page, page._replace(saturations=ratios))]
    first = LAYERS[0]
    apart = {saturation_axis(71).cell(ratios[0, head]) for head in range(first.heads)}
    assert dots[1] - dots[0] == len(LAYERS) * len(apart)
    lines = drawn(page._replace(saturations=ratios), 100, 50).splitlines()
    ends = f"{min(ratios.values()):.2g} to {max(ratios.values()):.2g}"
    assert sum(line.rstrip().endswith(ends) for line in lines) == len(LAYERS)
    assert drawn(PAGE._replace(saturations=ratios), 100, 50) == drawn(PAGE, 100, 50)


def drawn(page: ModelPage, width: int, height: int) -> str:
    return "\n".join("".join(text for text, _ in line) for line in model_lines(page, width, height, UNICODE))
