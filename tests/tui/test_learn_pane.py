"""The Learn pane: steps with a guess before each answer, and the field that the guess is typed into."""

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from attn_tui.core.learning import bug_evidence
from attn_tui.core.learning.bug_evidence import examine_bug
from attn_tui.core.learning.bugs import Bug
from attn_tui.core.learning.items import AT, ITEMS, Attempt, Found, Item, count, is_right, remembered, to_remember
from attn_tui.core.learning.measure import stream
from attn_tui.core.learning.questions import QUESTIONS
from attn_tui.core.learning.step import TourStep, usual_guesses
from attn_tui.core.learning.tour import STEPS
from attn_tui.core.parameters import Parameters
from attn_tui.core.questions.learn import ReadItems
from attn_tui.tui.panes.catalogue import PANES, TABS
from attn_tui.tui.panes.learn.pane import LearnPane
from attn_tui.tui.panes.train.pane import TrainPane
from attn_tui.tui.settings.declared import Settings
from attn_tui.tui.views.glyphs import ASCII, UNICODE
from attn_tui.tui.views.lines import line_width
from attn_tui.tui.views.results.cards import item_lines
from stage import Stage, play, played

ANSWER = "Variances add because"  # how the answer to the first step begins


def at(item: str) -> dict[str, Any]:
    """Return what the app is given to start at an item."""
    return {"progress": {"at": item}}


def test_an_item_names_the_tab_that_shows_it_and_the_view_as_the_screen_does() -> None:
    for shown in (item.shown for item in ITEMS if item.shown.pane):
        tab = PANES[shown.pane].tab
        views = [view for title, view in TABS[tab] if title == shown.pane and len(TABS[tab]) > 1]
        assert shown.place == " · ".join([tab, *views])


async def learn(stage: Stage) -> LearnPane:
    """Open the pane and wait for the figures of its step."""
    pane = await stage.opened(LearnPane)
    await stage.until(lambda: pane.is_current, "the figures")
    await stage.still()
    return pane


@played(size=(80, 24))
async def test_a_guess_is_asked_for_before_the_answer_is_shown(stage: Stage) -> None:
    pane = await learn(stage)
    assert "what is the standard deviation of a score?" in stage.words(pane.text)
    assert ANSWER not in stage.text
    await stage.press("1", "6", "enter")
    assert "Your guess, 16, is 2 times the answer." in stage.text
    assert ANSWER in stage.text
    await stage.press("enter")
    assert f"step 2 of 12: {STEPS[1].title}" in stage.text


@played(size=(80, 24))
async def test_enter_without_a_guess_shows_the_answer_and_backspace_goes_back(stage: Stage) -> None:
    pane = await learn(stage)
    await stage.press("enter")
    assert "Your guess" not in stage.text
    assert ANSWER in stage.text
    await stage.press("enter", "backspace")
    assert pane.at == 0
    assert ANSWER in stage.text
    await stage.press("backspace")
    assert "Your guess: _" in stage.text


@played(size=(80, 24))
async def test_what_is_not_a_number_is_refused_and_can_be_mended(stage: Stage) -> None:
    pane = await learn(stage)
    await stage.press("8", "-", "enter")
    assert "must be a number or a formula, such as 20, 1/3 or sqrt(2), not '8-'" in stage.words(pane.text)
    assert ANSWER not in stage.text
    await stage.press("backspace", "enter")
    assert "Your guess, 8, is exact." in stage.text


def found_of(item: Item, folder: Path) -> Found:
    """What the engine finds out about an item."""
    if isinstance(item.content, Bug):
        return examine_bug(item.content, folder / "bug.safetensors")
    return dict(stream(item.figures))


@pytest.mark.parametrize(
    "item",
    [item if number % 7 == 5 else pytest.param(item, marks=pytest.mark.slow) for number, item in enumerate(ITEMS)],
    ids=lambda item: item.id,
)
def test_each_item_fits_80_by_24_at_every_stage(item: Item, tmp_path: Path) -> None:
    found = found_of(item, tmp_path)
    for stage in range(item.stages + 1):
        guesses: Mapping[float, str] = {}
        if isinstance(item.content, TourStep) and isinstance(found, Mapping) and stage:
            guesses = usual_guesses(item.content, found)
        attempts = [Attempt("3", guess, stage) for guess in (3.0, *guesses)]
        for attempt, so_far in product(attempts, (None, found)):
            lines = item_lines(item, attempt, so_far, 78, 21, UNICODE)
            assert len(lines) <= 21 or item.kind == "claim"  # which scrolls
            assert all(line_width(line) <= 78 for line in lines)
            in_ascii, in_full = (item_lines(item, attempt, so_far, 78, 99, glyphs) for glyphs in (ASCII, UNICODE))
            assert all(text.isascii() for line in in_ascii for text, _ in line)
            marks = [sum(text.count("?") for line in each for text, _ in line) for each in (in_ascii, in_full)]
            assert marks[0] == marks[1], "a character has no ASCII form"


@played(size=(80, 24))
async def test_a_bug_is_named_by_number_and_the_diagnosis_grades_it(stage: Stage) -> None:
    pane = await learn(stage)
    await stage.press("escape", "M", "M", "down", "down")
    assert pane.item.word == "b3"
    await stage.until(lambda: pane.is_current, "the capture")
    await stage.still()
    words = stage.words(pane.text)
    assert "2 the causal mask was lost" in words
    assert "diagnosis" not in words
    await stage.press("9", "1", "2")  # there is no cause 9, and 2 replaces 1
    assert "Your answer: 2_" in stage.text
    await stage.press("enter")
    words = stage.words(pane.text)
    assert "Right: the causal mask was lost." in words
    assert "The diagnosis: the causal mask was lost." in words
    await stage.press("r", "4", "enter")
    assert "No. You said: query heads read the wrong key heads." in stage.words(pane.text)


@played(size=(80, 24))
async def test_a_folder_that_cannot_be_written_is_explained(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bug_evidence, "write_capture", full)
    await learn(stage)
    await stage.press("escape", "M", "M")
    await stage.until(lambda: "cannot be written: No space left on device." in " ".join(stage.text.split()))


@played(hold=True)
async def test_typing_does_not_start_the_measurement_again(stage: Stage) -> None:
    await stage.opened(LearnPane)
    await stage.press("1", "6", "backspace")
    assert [asked.kind for asked in stage.engine.asked].count(ReadItems) == 1
    await stage.press("down", "up")
    assert [asked.kind for asked in stage.engine.asked].count(ReadItems) == 3


@played()
async def test_e_opens_the_capture_of_a_bug(stage: Stage) -> None:
    pane = await learn(stage)
    await stage.press("escape", "M", "M")
    await stage.until(lambda: pane.is_current, "the capture")
    await stage.press("escape", "E")
    assert stage.app.active == "Capture"
    capture: Any = stage.app.pane
    await stage.until(lambda: capture.measurement or capture.results.why_stale, "the head")
    assert capture.heads.capture.model == f"find the bug: {pane.item.title}"
    assert capture.heads.cursor == (0, 0)
    await stage.until(lambda: "not scaled" in stage.text or "scale-missing" in stage.text, "the verdict")


@played(size=(80, 24), given=at(STEPS[-1].id))
async def test_the_last_step_shows_everything_at_80_by_24(stage: Stage) -> None:
    pane = await learn(stage)
    await stage.press("7", "enter")
    assert "more lines" not in stage.text
    words = stage.words(pane.text)
    assert "Your guess, 7, is too low" in words
    assert "E opens Model · capture." in words


@played(parameters=Parameters(d_k=8, n_keys=16, n_queries=8, batch=2))
async def test_e_opens_the_lab_in_the_state_of_the_step_and_undo_brings_the_own_one_back(stage: Stage) -> None:
    pane = await learn(stage)
    await stage.press("enter", "enter", "escape", "E")
    assert stage.app.active == "Lab"
    assert stage.asked == STEPS[1].shown.parameters
    await stage.still()
    assert "Alt+6 returns" in stage.text
    await stage.press("u")
    assert stage.asked.d_k == 8
    await stage.press("alt+6")
    assert stage.app.active == "Learn"
    assert pane.at == 1


@played(given=at(STEPS[4].id))
async def test_e_opens_rules_where_a_step_speaks_of_them(stage: Stage) -> None:
    await learn(stage)
    await stage.press("escape", "E")
    assert stage.app.active == "Rules"
    assert stage.asked.d_k == 64
    await stage.press("alt+6")
    assert stage.app.active == "Learn"


@played(given=at(STEPS[-1].id))
async def test_e_opens_the_head_of_the_sample_that_a_step_speaks_of(stage: Stage) -> None:
    await learn(stage)
    await stage.press("escape", "E")
    assert stage.app.active == "Capture"
    capture: Any = stage.app.pane
    await stage.until(lambda: capture.measurement or capture.results.why_stale, "the head")
    assert capture.heads.cursor == STEPS[-1].shown.head
    await stage.press("escape")
    assert stage.app.active == "Learn"


@played(size=(80, 24))
async def test_progress_is_saved_and_restored(stage: Stage) -> None:
    await learn(stage)
    assert "learn" not in stage.app.changed_settings()
    await stage.press("enter", "enter", "enter", "enter")
    kept = stage.app.changed_settings()["learn"]
    assert kept == {"at": STEPS[2].id, "done": [STEPS[0].id, STEPS[1].id]}
    assert remembered(kept) == (2, {STEPS[0].id, STEPS[1].id})


def test_progress_that_no_longer_exists_is_forgotten() -> None:
    strange: list[object] = ["gone", [1], 3]
    assert remembered({"at": "gone", "done": strange}) == (0, set())
    assert remembered({}) == (0, set())


def test_an_item_looked_at_is_kept_and_nothing_if_nothing_was() -> None:
    assert to_remember(2, ()) == {"learn": {"at": ITEMS[2].id, "done": []}}
    assert to_remember(0, {ITEMS[1].id}) == {"learn": {"at": ITEMS[0].id, "done": [ITEMS[1].id]}}
    assert to_remember(0, ()) == {}


def test_a_bug_shown_without_a_guess_gets_no_tick(tmp_path: Path) -> None:
    item = next(item for item in ITEMS if isinstance(item.content, Bug))
    assert isinstance(item.content, Bug)
    found = examine_bug(item.content, tmp_path / "bug.safetensors")
    causes = [float(number) for number in range(1, len(item.content.choices) + 1)]
    assert sum(is_right(item, Attempt(guess=cause), found) for cause in causes) == 1
    assert not is_right(item, Attempt(), found)


def test_the_pane_starts_where_it_was_left() -> None:
    async def script(stage: Stage) -> None:
        pane = await stage.opened(LearnPane)
        assert pane.item.id == "gradients"
        await stage.press("escape", "n")
        assert pane.item.id == "scales"

    progress = {"at": "gradients", "done": ["gradients"]}
    play(script, given={"progress": progress}, settings=Settings(learn=progress))


@played(size=(80, 24), given=at(QUESTIONS[12].id))
async def test_a_question_is_answered_in_two_steps_and_e_shows_the_evidence(stage: Stage) -> None:
    pane = await learn(stage)
    assert f"question 13 of {len(QUESTIONS)}" in stage.text
    assert "Not in float32" not in stage.text
    await stage.press("5", "enter")  # digits type nothing here
    assert "Not in float32" in stage.words(pane.text)
    assert "The usual answer:" in stage.words(pane.text)
    assert "measured" not in stage.text
    await stage.press("enter")
    assert "measured" in stage.text
    await stage.press("E")
    assert pane.item.id == "float-overflow"
    await stage.press("u")
    assert pane.item.id == QUESTIONS[12].id
    await stage.press("M", "escape", "M", "M")
    assert pane.at == 0


@played(size=(80, 24), given=at(QUESTIONS[3].id))
async def test_a_question_is_done_once_its_answer_was_known_and_asked_again_if_not(stage: Stage) -> None:
    pane = await learn(stage)
    question, following = QUESTIONS[3].id, QUESTIONS[4].id
    await stage.press("1")  # nothing to judge yet
    assert pane.item.id == question
    await stage.press("enter", "enter")
    assert "1 knew it" in stage.lines[-1]
    assert question not in pane.done
    await stage.press("2")
    assert pane.item.id == following
    assert question not in pane.done
    await stage.press("up")
    assert "Answer aloud" in stage.text, "the answer is hidden again"
    await stage.press("enter", "1")
    assert pane.item.id == following
    assert question in pane.done
    await stage.press("u")
    assert question not in pane.done
    await stage.press("up", "enter", "1", "up", "r", "enter", "2")
    assert question not in pane.done


@played(size=(80, 24))
async def test_an_export_has_the_guess(stage: Stage) -> None:
    pane = await learn(stage)
    assert pane.answered()[0].card.guess is None
    await stage.press("6", "4")
    assert pane.answered()[0].card.guess is None, "it is not given yet"
    await stage.press("enter")
    card = pane.answered()[0].card
    assert (card.guess, card.right) == (64, False)


@played(size=(80, 24), given=at(QUESTIONS[9].id))
async def test_e_on_a_question_or_step_about_training_runs_its_race(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    pane = await learn(stage)
    monkeypatch.setattr(stage.engine, "send", stage.engine.asked.append)  # measure nothing more
    before = (await stage.opened(TrainPane)).race
    await stage.press("alt+6", "E")
    train = stage.pane(TrainPane)
    assert train.race == pane.item.shown.race
    assert (train.race.optimiser, train.race.rules) == ("adam", ("none", "sqrt_d_k"))
    await stage.press("u")
    assert train.race == before
    await stage.press("alt+6", *["up"] * (pane.at - AT["training"]), "escape", "E")
    assert stage.app.active == "Train"
    assert train.race == ITEMS[AT["training"]].shown.race
    assert (train.race.optimiser, train.race.rate) == ("sgd", 4)


@pytest.mark.parametrize("size", [(40, 12), (80, 24), (120, 40), (200, 60)])
@played()
async def test_the_list_is_a_key_away_where_it_does_not_stand_beside(stage: Stage, size: tuple[int, int]) -> None:
    await learn(stage)
    beside = STEPS[6].title in stage.text
    assert beside == (size[0] >= 100)
    if not beside:
        await stage.press("escape", "v")
        assert STEPS[6].title in stage.text


@played(size=(120, 40), given=at("softmax"))
async def test_the_picture_comes_with_the_answer_and_never_before(stage: Stage) -> None:
    pane = await learn(stage)
    for item in ("softmax", "gradients", "too-peaked"):
        pane.show_item(item)
        await stage.until(lambda: pane.is_current, "the figures")
        await stage.still()
        assert "does softmax saturate?" not in stage.text
        await stage.press("enter")
        await stage.until(lambda: pane.page.shown == pane.item.shown.parameters, "the Lab's measurement")
        await stage.still()
        assert "does softmax saturate?" in stage.text
        assert "attention weights" in stage.text
    pane.show_item(next(item.id for item in ITEMS if item.kind == "bug"))
    await stage.until(lambda: pane.is_current, "the capture")
    await stage.still()
    assert "does softmax saturate?" not in stage.text


@played(size=(120, 40))
async def test_the_first_steps_show_walks_whose_ends_are_named_with_the_answer(stage: Stage) -> None:
    pane = await learn(stage)
    assert "12 scores, product by product" in stage.text
    assert "√d_k = +8" not in stage.text
    await stage.press("6", "4", "enter")
    assert "+√d_k = +8" in stage.text
    assert "does softmax saturate?" not in stage.text
    pane.show_item("laws")
    await stage.until(lambda: pane.is_current, "the figures")
    await stage.press("enter")
    await stage.still()
    assert "0.5·d_k = 32" in stage.text


@played(size=(80, 24))
async def test_guess_and_answer_stand_on_one_axis_and_the_introduction_folds(stage: Stage) -> None:
    pane = await learn(stage)
    introduction = " ".join(STEPS[0].introduction[0].split()[:4])
    assert introduction in stage.words(pane.text)
    await stage.press("6", "4", "enter")
    assert introduction not in stage.words(pane.text)
    above = next(line for line in stage.lines if "you said 64" in line)
    axis = stage.lines[stage.lines.index(above) + 1]
    assert above.index("it is 8") < above.index("you said 64")
    assert axis.index("◆") < axis.index("━") < axis.index("●")


@played(size=(40, 12))
async def test_a_small_screen_has_the_title_of_the_step(stage: Stage) -> None:
    await learn(stage)
    assert "step 1 of 12: A score and its size" in stage.text


@played(size=(80, 24))
async def test_letters_type_into_the_field_and_are_nothing_else(stage: Stage) -> None:
    pane = await learn(stage)
    for text, shown in (
        ("sqrt(64)", "sqrt(64)_  = 8"),
        ("none", "none_  = 0"),
        ("quit", "quit_"),
        ("1/8", "1/8_  = 0.125"),
    ):
        await stage.press(*text)
        assert f"Your guess: {shown}" in stage.text
        assert (stage.app.active, pane.at) == ("Learn", 0)
        await stage.press("ctrl+u")
    await stage.press(*"sqrt(d_k)", "enter")
    assert "Your guess, 8, is exact." in stage.text


@played(size=(80, 24))
async def test_a_guess_and_enter_in_one_burst_show_the_answer_to_that_guess(stage: Stage) -> None:
    pane = await learn(stage)
    await stage.press("escape")
    assert "m list" in stage.lines[-1]
    stage.send(*"64", "enter")
    await stage.answered()
    assert "Enter next " in stage.lines[-1]
    assert "m list" in stage.lines[-1]
    assert "Your guess, 64, is 8 times the answer." in stage.text
    assert pane.attempt.stage == 1


@played(size=(80, 24))
async def test_the_message_after_the_last_item_names_keys_that_lead_to_the_list_from_any_field(stage: Stage) -> None:
    pane = await learn(stage)
    await stage.press("end")
    await stage.until(lambda: pane.is_current, "the claim")
    await stage.press("enter")
    assert "That was the last one. Esc, then v, lists them all." in stage.text
    await stage.press("escape", "v")
    assert f"of {count('claim')} claims tested" in stage.text
    await stage.press("M")
    assert f"of {len(ITEMS) - count('claim')} done" in stage.text


@played(size=(80, 24), idle=True)
async def test_the_field_does_not_take_the_focus_from_a_pane_opened_at_once_after_it(stage: Stage) -> None:
    for pane in ("Learn", "Watch"):
        await stage.show(pane)
    await stage.press("S", ">", ">")
    assert stage.app.active == "Learn"
    assert "Your guess: _" in stage.text


@played(size=(80, 24))
async def test_esc_erases_the_guess_then_leaves_the_field_and_letters_are_shortcuts_again(stage: Stage) -> None:
    pane = await learn(stage)
    assert "Esc leave the field" in stage.lines[-1]
    await stage.press("n")
    assert "Esc erase" in stage.lines[-1]
    await stage.press("escape")
    assert "Your guess: _" in stage.text
    await stage.press("escape")
    assert "Your guess: _" not in stage.text
    assert "q quit" in stage.lines[-1]
    assert "Tab type a guess" in stage.lines[-1]
    await stage.press("n", "n")  # the field of the next step has the focus
    assert (pane.at, pane.attempt.text) == (1, "n")
    await stage.press("escape", "escape", "tab", "n")
    assert (pane.at, pane.attempt.text) == (1, "n")
    await stage.press("escape", "escape", "1", "2")
    assert pane.attempt.text == "12"
    assert pane.text.has_focus


@played(size=(80, 24))
async def test_the_key_bar_offers_the_field_only_where_there_is_one(stage: Stage) -> None:
    await learn(stage)
    await stage.press("escape")
    assert "Tab type a guess" in stage.lines[-1]
    await stage.press("enter")
    assert "Tab" not in stage.lines[-1]
    await stage.press("M")
    assert "Tab" not in stage.lines[-1]


@played(size=(80, 24))
async def test_backspace_erases_and_in_an_empty_field_goes_back(stage: Stage) -> None:
    pane = await learn(stage)
    await stage.press("down", "1", "2", "backspace", "backspace")
    assert (pane.at, pane.attempt.text) == (1, "")
    await stage.press("backspace")
    assert pane.at == 0


@played(size=(80, 24))
async def test_roots_digits_of_full_width_and_shares_below_1_per_cent_are_typed(stage: Stage) -> None:
    pane = await learn(stage)
    await stage.press("√", "６", "４")
    assert pane.attempt.guess == 8
    assert "Your guess: √６４_  = 8" in stage.text
    await stage.press("ctrl+u")
    await stage.press(*["down"] * 4, *"0.12")
    assert pane.item.id == "scales"
    assert "Your guess: 0.12_  = 0.12 %; for 12 %, type 12" in stage.text
    await stage.press(*" %")
    assert "Your guess: 0.12 %_  = 0.12 %  " in stage.text


@played(size=(120, 40))
async def test_clicks_show_an_item_and_go_to_the_field(stage: Stage) -> None:
    pane = await learn(stage)
    await stage.press("escape")
    assert not pane.text.has_focus
    await stage.click((4, 4), pane.text)
    await stage.press(*"1/2")
    assert pane.attempt.guess == 0.5
    await stage.click((6, 0), pane.list)  # a title
    assert pane.at == 0
    await stage.click((6, 4), pane.list)
    assert pane.at == 3
    assert f"step 4 of 12: {STEPS[3].title}" in stage.text


@played(size=(80, 24))
async def test_a_cause_is_chosen_by_its_words_too(stage: Stage) -> None:
    pane = await learn(stage)
    pane.show_item(next(item.id for item in ITEMS if item.word == "b3"))
    await stage.until(lambda: pane.is_current, "the capture")
    await stage.press(*"mask")
    assert "Your answer: mask_" in stage.text
    await stage.press("enter")
    assert "'mask' could be 2, 3; type more of it" in stage.words(pane.text)
    await stage.press(*" was lost", "enter")
    assert "Right: the causal mask was lost." in stage.words(pane.text)


@played(size=(80, 24))
async def test_a_guess_that_was_erased_is_no_step_of_undo(stage: Stage) -> None:
    await stage.press("right")
    pane = await learn(stage)
    await stage.press("6", "escape", "escape", "u")
    assert pane.undo_state == (0, {}, frozenset())
    assert stage.app.active == "Lab", "the step before was to open the pane"
    await stage.press("ctrl+r")
    assert (stage.app.active, pane.has_focus) == ("Learn", True), "the next key is not typed into the field"
