"""The command palette: it finds commands and everything that has a name, says what choosing it does, and does it."""

from dataclasses import replace
from itertools import groupby

import pytest
from attn_tui.core.attention.cost import SHAPE_FIELDS
from attn_tui.core.attention.presets import PRESETS
from attn_tui.core.learning.claims.catalogue import CLAIMS
from attn_tui.core.learning.items import AT, ITEMS
from attn_tui.core.models import MODELS
from attn_tui.core.parameters import FIELDS
from attn_tui.core.scales import SCALE_RULES
from attn_tui.core.statistics.catalogue import ALWAYS, STATISTICS
from attn_tui.core.training.settings import RACE_FIELDS
from attn_tui.tui.app.export_screen import ExportScreen
from attn_tui.tui.app.keys import EVERYWHERE, all_commands
from attn_tui.tui.app.palette import Palette
from attn_tui.tui.language.chosen import Language
from attn_tui.tui.panes.catalogue import PANES, TABS
from attn_tui.tui.panes.heads.pane import HeadsPane
from attn_tui.tui.panes.learn.pane import LearnPane
from attn_tui.tui.panes.sweep.pane import SweepPane
from attn_tui.tui.panes.train.pane import TrainPane
from attn_tui.tui.settings.declared import Settings
from attn_tui.tui.views.fields.choice_list import ChoiceList
from attn_tui.tui.views.glyphs import IN_LANGUAGE
from attn_tui.tui.views.help import key_word
from attn_tui.tui.widgets.picker import ChoiceScreen
from stage import SMALL, Stage, play, played

pytestmark = pytest.mark.usefixtures("short_rule_grids")

NAMED = [  # but those that open the same list as another key
    command
    for command in all_commands()
    if command.name not in ("", "palette", "lab.find", "softmax.find") and command.words not in TABS
]


async def opened(stage: Stage) -> ChoiceList:
    """Open the palette; return its list."""
    await stage.press("ctrl+p")
    await stage.until(lambda: isinstance(stage.app.screen, Palette), "the palette")
    screen = stage.app.screen
    assert isinstance(screen, Palette)
    return screen.text.choices


def titles(palette: ChoiceList, words: str) -> list[str]:
    """Return the rows that a search finds, the best first."""
    return [str(row.name) for row in palette.filtered(words).ranked]


async def choose(stage: Stage, words: str) -> None:
    """Open the palette, search for these words, and do the best result."""
    await opened(stage)
    await stage.press(*("space" if character == " " else character for character in words))
    await stage.still()
    await stage.press("enter")
    await stage.until(lambda: not isinstance(stage.app.screen, Palette), "closing the palette")
    await stage.still()


# What is found


@played()
async def test_a_search_finds_the_commands_of_every_pane_with_their_keys(stage: Stage) -> None:
    palette = await opened(stage)
    for command in NAMED:
        place = "" if command.place == EVERYWHERE else command.place
        found = [row.formula for row in palette.filtered(command.words).ranked if row.name == command.words]
        assert any(f"{place}  {key_word(command.keys.split(',')[0])}".strip() == each for each in found), command


OF_NOTES = (
    ("梯度消失", "vanishing-gradients"), ("数值稳定性", "overflow"), ("多头", "heads"), ("根号", "why-sqrt"),
    ("vanishing gradient", "vanishing-gradients"), ("numerical stability", "overflow"), ("找错误", "sharp"),
)  # fmt: skip


@pytest.mark.parametrize("language", IN_LANGUAGE)
def test_words_of_study_notes_find_what_answers_them_in_both_languages(language: Language) -> None:
    async def script(stage: Stage) -> None:
        palette = await opened(stage)
        for words, item in OF_NOTES:
            start = f"{ITEMS[AT[item]].word}. "
            assert any(title.startswith(start) for title in titles(palette, words)), words

    play(script, glyphs=IN_LANGUAGE[language])


@played()
async def test_everything_is_found_by_its_name(stage: Stage) -> None:
    palette = await opened(stage)
    for pane in PANES:
        assert PANES[pane].place in titles(palette, pane)[:3]
    for field in FIELDS:
        for name in (field.label, field.name):
            assert f"set {field.label}" in titles(palette, name), name
        for value in field.choices:
            assert any(title.startswith(f"{field.label} ") for title in titles(palette, value)[:6]), value
    for rule in SCALE_RULES.values():
        assert f"scale {rule.name}" in titles(palette, rule.formula), rule
    for pane, fields in (("Heads", SHAPE_FIELDS), ("Train", RACE_FIELDS)):
        for field in fields:
            for name in (field.label, field.name):
                assert f"{pane}: set {field.label}" in titles(palette, name), name
    for statistic in STATISTICS:
        if statistic.name == "naive_exp_overflow":  # only exported, and not in every measurement
            continue
        for name in (statistic.label, statistic.name):
            assert f"statistic {statistic.label}" in titles(palette, name)[:6], name
    for preset in PRESETS.values():
        for name in (preset.title, preset.name):
            assert f"cost of {preset.title}" in titles(palette, name), name
    for model in MODELS.values():
        assert f"model {model.title}" in titles(palette, model.name)[:3], model.name
    for item in ITEMS:
        title = f"{item.word}. {item.title}"
        assert title in titles(palette, item.id), item.id
        assert title in titles(palette, item.title)
        assert title in titles(palette, " ".join(item.statement.split()[:9]))


MEANT = {  # the first result of a search
    "softcap": "set soft-cap",
    "logit cap": "set soft-cap",
    "bfloat16": "format bfloat16",
    "bf16": "format bfloat16",
    "fp8": "format float8 e4m3",
    "dtype": "set format",
    "entropy": "statistic entropy",
    "saturated": "statistic one-hot rows",
    "vanishing gradient": "statistic dead rows",
    "llama": "model Llama 2 7B",
    "gemma 2 27b": "model Gemma 2 27B",
    "bahdanau": "mechanism additive",
    "head_dim": "set d_k",
    "gaussian": "components normal",
    "flops": "Model tab: cost",
    "screenshot": "export the picture or the numbers to a file",
    "csv": "export the picture or the numbers to a file",
    "tutorial": "Learn tab",
    "xyzzyq": None,
    "dark theme": "colours: choose a theme",
    "chinese": "language",
    "exit": "quit",
    "dask": "executor: where long work is done",
    "baseline": "compare with another capture",
    "a versus b": "set against",
    "1/sqrt(d)": "scale sqrt_d_k",
    "log n": "scale ssmax",
    "number of heads": "Heads: set heads",
    "learning rate": "Train: set learning rate",
    "vanishing gradients": "q4. Do gradients vanish without the scale?",
    "entorpy": "statistic entropy",
    "undo": "undo",
    "quit": "quit",
}


@played()
async def test_words_of_the_field_find_what_they_mean(stage: Stage) -> None:
    palette = await opened(stage)
    for words, first in MEANT.items():
        assert titles(palette, words)[:1] == ([first] if first else []), words


@played(glyphs=IN_LANGUAGE["zh"])
async def test_words_of_both_languages_find_what_is_said_in_chinese(stage: Stage) -> None:
    palette = await opened(stage)
    assert stage.app.glyphs.say(titles(palette, "熵")[0]) == "统计量：熵"
    assert titles(palette, "熵")[0] == titles(palette, "statistic entropy")[0]


@played()
async def test_the_help_says_what_a_choice_does_and_never_an_internal_name(stage: Stage) -> None:
    palette = await opened(stage)
    internal = {command.name for command in NAMED}
    for words in ("e", "scale", "entropy", "llama", "variance"):
        for row in palette.filtered(words).rows:
            assert row.help, row.name
            assert not internal & set(row.help.split()), row
    [format_row] = [row for row in palette.choices if row.name == "format bfloat16"]
    assert format_row.help.startswith("Set the format to bfloat16")


@played()
async def test_commands_come_first_then_what_is_to_see_then_what_is_to_learn(stage: Stage) -> None:
    palette = await opened(stage)
    for words in ("", "scale", "softmax", "entropy"):
        families = [row.family for row in palette.filtered(words).rows]
        order = [*dict.fromkeys(families)]
        assert order == sorted(order, key=("do", "see", "learn", "set").index)
        assert len(families) > len(order) == len([*groupby(families)]) >= 2
    await stage.press(*"entropy")
    assert stage.text.index(" see ") < stage.text.index("▌ statistic entropy") < stage.text.index(" learn ")


@played()
async def test_the_commands_of_the_pane_and_the_panes_are_offered_before_anything_is_typed(stage: Stage) -> None:
    others = {"colours: choose a theme", "executor: where long work is done"} | {row.place for row in PANES.values()}
    others |= {f"{item.word}. {item.title}" for item in ITEMS}
    for pane in PANES:
        stage.app.action_pane(pane)
        offered = {str(row.name) for row in (await opened(stage)).rows}
        assert offered == {each.words for each in NAMED if each.place in (pane, EVERYWHERE)} | others
        await stage.press("escape")


@played(settled=True)
async def test_over_a_form_only_commands_for_the_whole_app_are_offered(stage: Stage) -> None:
    await stage.press("e")
    await stage.until(lambda: isinstance(stage.app.screen, ExportScreen), "the form")
    palette = await opened(stage)
    assert len(palette.rows) == 2
    assert "quit" in titles(palette, "quit")
    assert titles(palette, "theme")
    assert not titles(palette, "entropy")
    await stage.press(*"dark", "ctrl+p", "enter")
    await stage.until(lambda: "atom-one-dark" in stage.text, "the themes")


@played(settings=Settings(keys={"lab.redraw": "N"}))
async def test_keys_from_the_settings_are_shown(stage: Stage) -> None:
    [row] = [row for row in (await opened(stage)).rows if row.name == "redraw with a new seed"]
    assert (row.formula, row.help) == ("Lab  N", "N in Lab")


@played()
async def test_letters_typed_ahead_are_searched_for(stage: Stage) -> None:
    stage.send("ctrl+p", *"bf16", "enter")
    await stage.until(lambda: stage.asked.precision == "bfloat16", "the format")
    assert not isinstance(stage.app.screen, Palette)


# What choosing does


@played()
async def test_the_chosen_command_is_run(stage: Stage) -> None:
    await stage.settled()
    await choose(stage, "redraw")
    assert stage.app.parameters.seed == 1
    await choose(stage, "temperature × 2")
    assert stage.app.active == "Softmax"
    await stage.until(lambda: "T 2" in stage.text, "the temperature")
    await choose(stage, "quit")
    await stage.until(lambda: stage.app.return_code == 0, "quitting")


@played(settled=True)
async def test_a_choice_is_set_and_one_undo_restores_what_stood_before(stage: Stage) -> None:
    await choose(stage, "bf16")
    assert stage.asked == replace(SMALL, precision="bfloat16")
    assert stage.app.active == "Lab"
    await stage.press("u")
    assert stage.asked == SMALL
    await stage.opened(HeadsPane)
    await choose(stage, "causal")
    assert stage.asked == replace(SMALL, mask="causal")
    assert stage.app.active == "Lab", "Heads does not show a mask"


@pytest.mark.slow
@pytest.mark.parametrize("size", [(40, 12), (120, 40)], ids=str)
@played(settled=True)
async def test_a_parameter_is_edited_in_its_field_or_chosen_from_its_list(
    stage: Stage, size: tuple[int, int]
) -> None:
    await choose(stage, "softcap")
    assert stage.panel.has_focus
    await stage.press("5", "0", "enter")
    assert stage.asked == replace(SMALL, softcap=50.0)
    await choose(stage, "set mechanism")
    assert isinstance(stage.app.screen, ChoiceScreen)
    await stage.press(*"luong", "enter")
    assert stage.asked.mechanism == "bilinear"
    await choose(stage, "multiplier")
    await stage.still()
    assert "no effect" in stage.words(stage.app.notice), "the rule 1/√d_k does not use it"


@pytest.mark.slow
@played(settled=True)
async def test_a_statistic_is_shown_where_the_user_is_if_that_pane_has_it(stage: Stage) -> None:
    await choose(stage, "statistic max weight")
    assert stage.app.active == "Lab"
    assert stage.table.statistic.name == "max_weight"
    sweep = await stage.opened(SweepPane)
    await choose(stage, "kurtosis")
    assert sweep.plot.statistic.name == "logit_excess_kurtosis"
    await stage.press("u")
    assert sweep.plot.statistic.name == "entropy"
    capture = await stage.head()
    await choose(stage, "dead rows")
    assert stage.app.active == "Capture"
    assert capture.heads.statistic.name == "dead_rows"
    await stage.opened(HeadsPane)
    await choose(stage, "dead rows")
    assert stage.app.active == "Sweep"
    assert sweep.plot.statistic.name == "dead_rows"
    optional = next(statistic for statistic in STATISTICS if statistic not in ALWAYS)
    await choose(stage, f"statistic {optional.label}")
    assert stage.app.active == "Lab"
    await stage.until(lambda: stage.table.statistic is optional or stage.app.notice.display)


@pytest.mark.slow
@played()
async def test_a_setting_of_heads_and_train_is_edited_in_its_field(stage: Stage) -> None:
    await choose(stage, "d_model")
    heads = stage.pane(HeadsPane)
    await stage.press(*"4096", "enter")
    assert heads.shape.values["d_model"] == 4096
    await choose(stage, "warm-up")
    train = stage.pane(TrainPane)
    await stage.press(*"20", "enter")
    assert train.race.warm_up == 20
    await choose(stage, "chinese")
    assert "--lang zh" in stage.words(stage.app.notice)


@played(first_pane="Heads")
async def test_a_statistic_is_explained_in_a_lab_that_has_no_result_yet(stage: Stage) -> None:
    await choose(stage, "median")
    assert stage.app.active == "Lab"
    await stage.until(lambda: stage.table.statistic and stage.table.statistic.name == "grad_q_median")


@pytest.mark.slow
@played(settled=True)
async def test_a_model_is_shown_in_heads_and_a_claim_in_learn(stage: Stage) -> None:
    await choose(stage, "cost llama 3 8b")
    heads = stage.pane(HeadsPane)
    assert heads.preset is PRESETS["llama-3-8b"]
    for claim in (CLAIMS[7], CLAIMS[3]):
        await choose(stage, claim.id)
        await stage.at_rest()
        assert stage.pane(LearnPane).item.content is claim
