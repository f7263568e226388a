"""What statistics mean, beside their numbers in a wide table."""

import pytest
from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics.catalogue import STATISTIC, STATISTICS
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.lines import line_width
from attn_tui.tui.views.results.table import Contents, layout, meaning, table_lines, table_rows
from cases import for_each
from line_texts import text_of

SMALL = Parameters(d_k=4, n_keys=8, n_queries=4, batch=2)


@for_each("glyphs", [UNICODE, ASCII])
@for_each("room", [38, 55, 90])
def test_every_statistic_is_explained_in_the_room_there_is(room: int, glyphs: Glyphs) -> None:
    for statistic in STATISTICS:
        text = meaning(statistic, room, glyphs)
        assert len(text) <= room
        assert text or room < 50
        whole = (glyphs.say(statistic.definition), glyphs.say(statistic.formula))
        assert whole[0].startswith(text) or whole[1] == text


def test_a_definition_is_cut_where_a_clause_ends_never_inside_a_list() -> None:
    entropy, dead = STATISTIC["entropy"], STATISTIC["dead_rows"]
    assert meaning(entropy, 90, UNICODE) == "Entropy of a row of attention weights: 0 for one-hot, ln n for uniform"
    assert meaning(entropy, 69, UNICODE) == "Entropy of a row of attention weights"
    assert meaning(entropy, 20, UNICODE) == "H = −Σ p ln p"
    assert meaning(dead, 50, UNICODE) == "Share of rows whose Jacobian norm is below 0.01"


@pytest.mark.parametrize("width", [80, 100, 140, 165, 220])
def test_a_wide_table_explains_its_rows_and_a_narrow_one_keeps_its_width(width: int) -> None:
    contents = Contents(run(SMALL).columns)
    lines = table_lines(table_rows(contents), contents, layout(contents, width), UNICODE)
    assert {line_width(line) for line in lines} == {width}
    explained = ["The largest attention weight of a row" in text_of(line) for line in lines]
    assert sum(explained) == (width >= 140)
