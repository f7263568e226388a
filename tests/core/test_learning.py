"""The tour: its texts, its figures, the grading of guesses, and the bugs to find, which the diagnosis must name."""

import re
from pathlib import Path
from string import Formatter
from typing import TypeAlias

import numpy as np
import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.head import read_head
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.learning.bug_evidence import examine_bug, write_safetensors
from attn_tui.core.learning.bugs import BUGS, CAUSES, D_K, D_MODEL, SYMPTOMS, Bug, facts
from attn_tui.core.learning.card import bug_card, question_card, step_card
from attn_tui.core.learning.claim import ClaimFigure
from attn_tui.core.learning.claims.catalogue import CLAIMS
from attn_tui.core.learning.items import ITEMS as LISTED
from attn_tui.core.learning.measure import TRIALS, stream
from attn_tui.core.learning.questions import QUESTIONS
from attn_tui.core.learning.sources import Difference, FromLab, FromTrial, Quotient, Reading, Source
from attn_tui.core.learning.step import (
    GuessError,
    InterviewQuestion,
    TourFigure,
    TourStep,
    best,
    filled,
    grade,
    graded,
    measured_text,
    number_text,
    parse_choice,
    parse_guess,
    usual_guesses,
)
from attn_tui.core.learning.tour import STEPS, trials
from attn_tui.core.models import MODELS
from attn_tui.core.statistics.measurement import Estimate
from cases import for_each
from golden import learning_numbers
from safetensors.numpy import load_file  # pyright: ignore[reportUnknownVariableType]

Item: TypeAlias = TourStep | InterviewQuestion
NUMBERS = {id_: {row["name"]: row["value"] for row in rows} for id_, rows in learning_numbers().items()}
ITEMS: tuple[Item, ...] = (*STEPS, *QUESTIONS)
every = for_each("item", ITEMS)
# Names with digits in them, worked examples, and the numbers of formulas. Other numbers are placeholders.
_NAMES = r"b?float(16|32)|T5|MiniLM-L6-v2|Gemma [24]|Qwen3|Llama 4|softmax\([\d., ]+\)|of [\d.]+, [\d.]+, [\d.]+"
_FORMULAS = r"[1-4](?=[ ·√/]|$|\)|,|:|\.|;)|\b[0-4]\b|±1|W_Q|q₁|k₁"


def texts_of(item: Item) -> dict[str, str]:
    """All texts of a step or question, by where they are."""
    named = {f"figure {name}": figure.label for name, figure in item.figures.items()}
    if isinstance(item, InterviewQuestion):
        named |= {f"long {number}": text for number, text in enumerate(item.long)}
        named |= {"question": item.question, "short": item.short, "usual": item.usual, "verdict": item.verdict}
    else:
        named |= {f"introduction {number}": text for number, text in enumerate(item.introduction)}
        named |= {f"explanation {number}": text for number, text in enumerate(item.explanation)}
        named |= {f"usual {usual.value}": usual.meaning for usual in item.guess.usual}
        named |= {"title": item.title, "question": item.guess.question}
    return named | {"shown": item.shown.what}


DERIVED = {
    "narrow_root",
    "keys",
    "largest_power",
    "smallest_power",
    "short",
    "long",
    "flat",
}  # figures of other numbers


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def sources(figure: TourFigure | ClaimFigure) -> list[Source]:
    source = figure.source
    return [source.one, source.other] if isinstance(source, Quotient | Difference) else [source]


@for_each("step", STEPS)
def test_texts_ask_for_numbers_that_exist_and_reveal_none_before_the_guess(step: TourStep) -> None:
    for text in (*step.introduction, step.guess.question, *(figure.label for figure in step.figures.values())):
        assert placeholders(text) <= set(step.given), text
    for text in step.explanation:
        assert placeholders(text) <= {*step.given, *step.figures}, text
    assert {*step.table, step.guess.figure} <= set(step.figures)
    assert step.guess.figure in step.table
    assert not set(step.given) & set(step.figures)


@for_each("question", QUESTIONS)
def test_questions_ask_for_numbers_that_exist(question: InterviewQuestion) -> None:
    for text in (question.question, *(figure.label for figure in question.figures.values())):
        assert placeholders(text) <= set(question.given), text
    for text in (question.short, *question.long):
        assert placeholders(text) <= {*question.given, *question.figures}, text
    assert not placeholders(question.usual + question.verdict)
    assert bool(question.usual) == bool(question.verdict)
    assert not set(question.given) & set(question.figures)


@every
def test_texts_hold_no_typed_figures(item: Item) -> None:
    for where, text in texts_of(item).items():
        left = re.sub(_FORMULAS, "", re.sub(_NAMES, "", re.sub(r"\{\w+\}", "", text)))
        assert not re.search(r"\d", left), f"{where}: {text}"


@every
def test_every_given_value_and_every_figure_is_used(item: Item) -> None:
    used = {name for text in texts_of(item).values() for name in placeholders(text)}
    assert set(item.given) <= used
    assert used <= {*item.given, *item.figures, "guess"}
    shown = {*item.table, item.guess.figure} if isinstance(item, TourStep) else set(item.figures)
    assert set(item.figures) <= used | shown


@every
def test_the_label_of_a_figure_has_numbers_of_what_is_measured(item: Item) -> None:
    numbers = {name: value for name, value in item.given.items() if not isinstance(value, str)}
    for name, figure in item.figures.items():
        if name not in DERIVED:
            used = [*map(float, re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", repr(figure.source)))]
            assert all(numbers[each] in used for each in placeholders(figure.label) & {*numbers}), name


@every
def test_measured_figures_agree_with_exact_ones_and_no_number_has_changed(item: Item) -> None:
    found = dict(stream(item.figures))
    known = NUMBERS[item.id]
    assert [*known] == [*item.given, *found]
    for name, value in item.given.items():
        assert value == (known[name] if isinstance(value, str) else pytest.approx(float(known[name]), rel=1e-6)), name
    for name, (measured, exact) in found.items():
        assert measured is not None or exact is not None, name
        if measured is not None and exact is not None:
            assert measured.value is not None
            assert measured.stderr is not None
            assert abs(measured.value - exact) <= 4 * measured.stderr + 1e-12, name
        if exact is not None:
            assert exact == pytest.approx(float(known[name]), rel=1e-6), name
        elif measured is not None:
            assert measured.value == pytest.approx(float(known[name]), rel=1e-3), name
    card = step_card(1, item, found) if isinstance(item, TourStep) else question_card(1, item, found)
    assert all("{" not in text for text in (*card.introduction, card.question, *card.answer, card.title))


@every
def test_what_is_shown_exists(item: Item) -> None:
    shown = item.shown
    assert shown.pane in ("Lab", "Rules", "Softmax", "Capture", "Learn", "Train")
    assert (shown.race is not None) == (shown.pane == "Train")
    assert bool(shown.scores) == (shown.pane == "Softmax")
    assert (shown.head is not None) == (shown.pane == "Capture")
    assert shown.item in {claim.id for claim in CLAIMS} or shown.pane != "Learn"


def test_questions_with_different_names() -> None:
    assert len(QUESTIONS) == 24
    assert len({item.id for item in ITEMS}) == len(ITEMS)
    assert sum(bool(question.usual) for question in QUESTIONS) >= 8


def test_every_trial_of_the_tour_exists_and_every_trial_is_used() -> None:
    named = {
        source.trial
        for item in LISTED
        for figure in item.figures.values()
        for source in sources(figure)
        if isinstance(source, FromTrial)
    }
    assert named == set(TRIALS)


def test_the_values_that_steps_choose_are_those_that_are_measured() -> None:
    steps = {step.id: step for step in STEPS}
    for step in STEPS:
        d_ks = {source.parameters.d_k for figure in step.figures.values() for source in sources(figure)
                if isinstance(source, FromLab)}  # fmt: skip
        if "d_k" in step.given and d_ks:
            assert step.given["d_k"] in d_ks, step.id
    layers = open_capture(sample_path()).layers
    trained = steps["trained"].given
    assert trained["heads"] == sum(layer.heads for layer in layers)
    assert {trained["d_k"]} == {layer.d_k for layer in layers}
    heads = steps["heads"].given
    assert {heads["together"]} == {layer.heads for layer in layers}
    assert {item.given["largest"] for item in ITEMS if "largest" in item.given} == {65504.0}
    gemma = MODELS["gemma-2-27b"].parameters["softcap"]
    assert {item.given["gemma"] for item in ITEMS if "gemma" in item.given} == {gemma}
    assert steps["formats"].given["largest"] == float(np.finfo(np.float16).max)
    assert steps["formats"].given["bound"] == pytest.approx(float(np.log(np.finfo(np.float16).max.astype(float))))
    assert steps["formats"].given["bound32"] == pytest.approx(float(np.log(np.finfo(np.float32).max)))


def test_rotary_embedding_changes_no_score_at_distance_0_and_no_spread_at_any() -> None:
    here, far = trials.rotary(8, 0, 1e4), trials.rotary(8, 50, 1e4)
    assert here["same"].exact == 1
    assert far["variance"].exact == 8
    assert far["same"].exact == pytest.approx(np.cos(50 * 1e4 ** -(np.arange(4) / 4)).mean())


def test_heads_are_apart_by_a_share_of_their_weight() -> None:
    found = TRIALS["heads_apart"]()
    assert 0 < found["least"].measured.value < found["most"].measured.value < 1


def test_heads_that_look_up_keys_are_those_beyond_saturation_without_a_sink() -> None:
    found = TRIALS["all_heads"]()
    saturated, sinks, looking = (found[name].measured.value for name in ("saturated", "sinks", "looking"))
    assert 0 < looking < saturated <= looking + sinks


def test_the_tour_says_what_attention_returns_and_defines_what_it_measures() -> None:
    texts = " ".join(text for step in STEPS for text in texts_of(step).values())
    for formula in ("softmax(QKᵀ/√d_k)·V", "−Σ p ln p", "p(1 − p)", "{inside} of scores lie within three"):
        assert formula in texts


@for_each(
    ("text", "unit", "number"),
    [("8", "number", 8), ("1/4", "number", 0.25), ("−2.5", "number", -2.5), ("1e-3", "number", 0.001),
     ("12 %", "share", 0.12), ("12", "share", 0.12), ("0.5%", "share", 0.005), ("1,048,576", "count", 1_048_576),
     ("1,024", "number", 1024), ("1 000 000", "number", 1e6), ("1_024.5", "number", 1024.5),
     ("1 / 3", "number", 1 / 3), ("sqrt(64)", "number", 8), ("√64", "number", 8), ("√(8·8)", "number", 8),
     ("sqrt(d_k)", "number", 8), ("√d_k / 2", "number", 4), ("2*ln(e)", "number", 2), ("8²", "number", 64),
     ("2^10", "count", 1024), ("~8", "number", 8), ("≈ 8", "number", 8), ("８", "number", 8), ("π", "number", np.pi),
     ("8 %", "number", 0.08), ("12％", "share", 0.12), ("12 percent", "share", 0.12), ("100/8", "share", 0.125),
     ("none", "number", 0), ("None", "count", 0), ("zero", "share", 0), ("all", "share", 1), ("half", "share", 0.5)],
)  # fmt: skip
def test_guesses_are_read_as_people_write_them(text: str, unit: str, number: float) -> None:
    given = {"d_k": 64, "limit": "1 %"}
    assert parse_guess(text, unit, given) == pytest.approx(number)  # pyright: ignore[reportArgumentType]


@for_each(
    "text",
    ["", "x", "1/0", "inf", "nan", "1,5", "8 8", "1,0000", "9" * 50, "all", "sqrt(-1)", "sqrt(", "limit", "exp(1e6)",
     "__import__('os')", "d_k.real", "2%3"],
)  # fmt: skip
def test_what_is_no_number_is_refused_with_what_is_accepted(text: str) -> None:
    with pytest.raises(GuessError, match="must be a number or a formula, such as"):
        parse_guess(text, "number", {"d_k": 64, "limit": "1 %"})


def test_a_count_is_no_percentage() -> None:
    with pytest.raises(GuessError):
        parse_guess("8 %", "count")


def test_words_of_a_guess_count_as_the_interface_says_them() -> None:
    assert parse_guess("零", "number", say=lambda text: "零" if text == "zero" else text) == 0


@pytest.mark.parametrize(("text", "choice"), [("2", 2), ("２", 2), ("mask", 2), (" TWICE ", 3), ("missing", 1)])
def test_a_cause_is_chosen_by_its_number_or_by_words_of_it(text: str, choice: int) -> None:
    causes = ["the scale is missing", "the causal mask was lost", "the scale was applied twice"]
    assert parse_choice(text, causes) == choice


@pytest.mark.parametrize(
    ("text", "reason"), [("0", "1 to 3"), ("4", "1 to 3"), ("", "1 to 3"), ("rope", "1 to 3"), ("scale", "1, 3")]
)
def test_a_cause_that_is_not_there_or_not_the_only_one_is_refused(text: str, reason: str) -> None:
    with pytest.raises(GuessError, match=reason):
        parse_choice(text, ["the scale is missing", "the causal mask was lost", "the scale was applied twice"])


@for_each(
    ("guess", "answer", "compare", "unit", "sentence", "close"),
    [
        (8, 8, "ratio", "number", "Your guess, 8, is exact.", True),
        (256, 64, "ratio", "number", "Your guess, 256, is 4 times the answer.", False),
        (2, 8, "ratio", "number", "Your guess, 2, is too low: the answer is 4 times that.", False),
        (105, 100, "ratio", "number", "Your guess, 105, is within 5 % of the answer.", True),
        (101.26, 100, "ratio", "number", "Your guess, 101, is within 1.3 % of the answer.", True),
        (95.3, 100, "ratio", "number", "Your guess, 95.3, is within 4.9 % of the answer.", True),
        (106, 100, "ratio", "number", "Your guess, 106, is 1.06 times the answer.", False),
        (-1, 8, "ratio", "number", "Your guess, −1, is 9 too low.", False),
        (0, 8, "ratio", "number", "Your guess, 0, is 8 too low.", False),
        (0.5, 0.998, "difference", "share", "Your guess, 50 %, is 49.8 percentage points too low.", False),
        (1, 0.998, "difference", "share", "Your guess, 100 %, is 0.2 percentage points too high.", True),
        (20, 2, "difference", "number", "Your guess, 20, is 18 too high.", False),
        (2, 2, "difference", "number", "Your guess, 2, is exact.", True),
        (-105, -100, "difference", "number", "Your guess, −105, is 5 too low.", True),
        (-95, -100, "difference", "number", "Your guess, −95, is 5 too high.", True),
        (0.519, 0.5, "difference", "share", "Your guess, 51.9 %, is 1.9 percentage points too high.", True),
        (0.479, 0.5, "difference", "share", "Your guess, 47.9 %, is 2.1 percentage points too low.", False),
    ],
)  # fmt: skip
def test_a_guess_is_graded_in_terms_that_fit(
    guess: float, answer: float, compare: str, unit: str, sentence: str, close: bool
) -> None:
    found = grade(guess, answer, compare, unit)  # pyright: ignore[reportArgumentType]
    assert found.sentence == sentence
    assert found.close is close


@for_each("step", STEPS)
def test_usual_wrong_answers_are_wrong_and_told_what_they_mean(step: TourStep) -> None:
    """Each is a number of its own, which is not close to the answer, and its meaning follows the grade."""
    answer = step.figures[step.guess.figure]
    readings = {step.guess.figure: stream_of(answer)}
    meanings = usual_guesses(step, readings)
    assert 2 <= len(meanings) == len(step.guess.usual)
    for value, meaning in meanings.items():
        found = graded(step, value, readings)
        assert found is not None
        assert not found.close
        assert found.sentence.endswith(meaning)
        assert found.sentence != meaning
        nearly = graded(step, value * 1.1 + 1e-6, readings)
        assert nearly is not None
        assert meaning not in nearly.sentence


def stream_of(figure: TourFigure) -> Reading:
    return dict(stream({"answer": figure}))["answer"]


def test_the_usual_answer_to_the_first_step_is_called_the_variance() -> None:
    readings = {"deviation": stream_of(STEPS[0].figures["deviation"])}
    found = graded(STEPS[0], 64, readings)
    assert found is not None
    assert found.sentence == (
        "Your guess, 64, is 8 times the answer. 64 is the variance; the standard deviation is its square root."
    )


def test_a_card_of_a_step_lists_the_usual_wrong_answers() -> None:
    card = step_card(1, STEPS[0], dict(stream(STEPS[0].figures)))
    assert [text.split()[0] for text in card.usual] == ["64", "1", "24"]


def test_numbers_in_texts_have_three_digits_and_shares_a_sign() -> None:
    assert [number_text(value) for value in (3.11462, 64, -0.5, None)] == ["3.11", "64", "−0.5", "–"]
    assert number_text(0.8857, "share") == "88.6 %"
    assert number_text(1_048_576, "count") == "1,048,576"
    assert filled("{a} and {b}", {"a": 2}, {"b": STEPS[0].figures["mean"]}) == "2 and …"


def test_a_measured_value_has_the_decimals_of_its_error() -> None:
    reading = dict(stream({"x": STEPS[0].figures["deviation"]}))["x"]
    assert reading.measured is not None
    assert re.fullmatch(r"\d\.\d{3} ± 0\.0\d\d", measured_text(reading, "number"))
    assert measured_text(reading._replace(measured=Estimate(0.0, 0.0)), "number") == "0"
    assert measured_text(reading._replace(measured=None), "number") == "–"
    assert measured_text(Reading(Estimate(None, None), 1.0), "number") == "–"
    assert measured_text(Reading(Estimate(-2.0, None), None), "number") == "−2"
    assert measured_text(Reading(Estimate(0.1234, 0.0123), None), "share") == "12.3 ± 1.2 %"
    assert measured_text(Reading(Estimate(12345.6, 10.4), None), "count") == "12,346 ± 10"
    assert [best(Reading(Estimate(2, 0), exact)) for exact in (0.0, None)] == [0, 2]
    assert best(Reading(None, None)) is None


EXPECTED = {
    "port": "scale-missing",
    "fused": "scale-twice",
    "decoder": "causal-lost",
    "tutorial": "scale-d-model",
    "sharp": "healthy",
    "grouped": "gqa-tiled",
    "by-hand": "future-key",
    "served": "softcap-missing",
    "booleans": "mask-added",
    "rewrite": "scale-d-model+future-key",
    "quarrel": "undecided",
}


def test_what_cannot_be_known_is_said_with_all_that_fits(tmp_path: Path) -> None:
    [bug] = [bug for bug in BUGS if EXPECTED[bug.id] == "undecided"]
    found = examine_bug(bug, tmp_path / "bug.safetensors")
    assert {"scale-twice", "scale-d-model"} <= {*found.also}
    assert bug.multiplier(bug.done) == pytest.approx(bug.d_model**-0.5)
    card = bug_card(11, bug, found)
    assert all(CAUSES[cause] in card.answer[1] for cause in ("scale-twice", "scale-d-model"))


@pytest.mark.parametrize("bug", BUGS, ids=[bug.id for bug in BUGS])
def test_the_diagnosis_names_the_defect_and_the_learner_can_choose_it(bug: Bug, tmp_path: Path) -> None:
    found = examine_bug(bug, tmp_path / "bug.safetensors")
    assert found.cause == EXPECTED[bug.id]
    assert found.cause in bug.choices
    assert ("no mask" in facts(bug)) == (bug.said.sees is None)
    undecided = found.cause == "undecided"
    assert bool(set(found.also) & set(bug.choices)) == undecided, "two choices would be right"
    assert set(bug.choices) | set(found.also) <= set(CAUSES)
    assert len(set(bug.choices)) == len(bug.choices) <= 9


@pytest.mark.parametrize("bug", BUGS, ids=[bug.id for bug in BUGS])
def test_what_is_returned_differs_from_what_the_file_says_only_if_there_is_a_defect(bug: Bug, tmp_path: Path) -> None:
    found = examine_bug(bug, tmp_path / "bug.safetensors")
    assert list(found.symptoms) == list(SYMPTOMS)
    differs = False
    for name, keys in (("later", 0), ("beyond", 1)):
        measured, exact = found.symptoms[name]
        assert measured is not None
        for value, sees in ((measured.value, bug.done.sees), (exact, bug.said.sees)):
            assert (value == 0) == (sees is not None and sees <= keys), name
    for name, (measured, exact) in found.symptoms.items():
        assert measured is not None
        assert measured.value is not None
        assert exact is not None
        assert SYMPTOMS[name].unit != "share" or all(0 <= each <= 1 + 1e-6 for each in (measured.value, exact))
        differs |= abs(measured.value - exact) > 1e-6
    assert differs == (bug.said != bug.done)


def test_the_slope_is_the_multiplier_that_was_used(tmp_path: Path) -> None:
    slopes = {bug.id: examine_bug(bug, tmp_path / "bug.safetensors").symptoms["slope"].measured for bug in BUGS}
    wanted = {"port": 1.0, "fused": 1 / 32, "tutorial": 384**-0.5, "sharp": 32**-0.5, "decoder": 32**-0.5}
    for name, slope in wanted.items():
        found = slopes[name]
        assert found is not None
        assert found.value == pytest.approx(slope, rel=1e-4)


def test_the_facts_are_those_of_the_sample_and_of_the_capture(tmp_path: Path) -> None:
    layer = open_capture(sample_path()).layers[0]
    assert (layer.d_k, layer.heads * layer.d_k) == (D_K, D_MODEL)
    for bug in BUGS:
        examine_bug(bug, tmp_path / "bug.safetensors")
        capture = open_capture(tmp_path / "bug.safetensors")
        [made] = capture.layers
        assert (made.heads, made.kv_heads, made.d_k, capture.d_model) == (bug.heads, bug.kv_heads, D_K, bug.d_model)
        assert (made.causal is not None) == (bug.said.sees is not None)
        assert made.softcap == bug.said.softcap
        assert not capture.unused
        assert f"d_k {D_K}" in facts(bug)
        assert read_head(capture, made, bug.head).q.shape[-1] == D_K


def test_titles_and_stories_do_not_give_the_cause_away() -> None:
    for bug in BUGS:
        shown = f"{bug.id} {bug.title}".lower()
        assert not any(
            word in shown for word in ("scale", "twice", "d_model", "tiled", "soft-cap", "healthy", "causal")
        )


def test_a_card_has_the_symptoms_and_the_lesson(tmp_path: Path) -> None:
    card = bug_card(3, BUGS[2], examine_bug(BUGS[2], tmp_path / "bug.safetensors"))
    assert card.place == "b3"
    assert card.answer[0].startswith("The diagnosis: the causal mask was lost.")
    assert card.answer[-1] == BUGS[2].lesson
    assert "2 the causal mask was lost" in card.introduction[-1]


def test_the_file_is_one_that_safetensors_reads(tmp_path: Path) -> None:
    arrays = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.ones((1, 2), np.float32).T}
    write_safetensors(tmp_path / "x.safetensors", arrays, {"schema": "x"})
    read = load_file(tmp_path / "x.safetensors")
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name], array)
