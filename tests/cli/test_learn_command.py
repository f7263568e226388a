"""attn-tui learn: the tour, printed."""

import json
import re
from xml.etree import ElementTree

import pytest
from attn_tui.core.learning.bugs import BUGS
from attn_tui.core.learning.claims import catalogue
from attn_tui.core.learning.claims.catalogue import CLAIMS
from attn_tui.core.learning.items import ITEMS
from attn_tui.core.learning.questions import QUESTIONS
from attn_tui.core.learning.tour import STEPS
from attn_tui.tui.cli.main import main
from cli_runner import Captured, assert_refused, printed


def test_without_a_step_the_list_is_printed_and_nothing_is_measured(capsys: Captured) -> None:
    lines = printed(["learn"], capsys).splitlines()
    assert [line[5:] for line in lines if line[:3].strip().isdigit()] == [step.title for step in STEPS]
    assert [line[5:] for line in lines if re.match(r" *b\d", line)] == [bug.title for bug in BUGS]
    assert [line.split()[0] for line in lines if "?" in line] == [f"q{n}" for n in range(1, len(QUESTIONS) + 1)]


def test_a_step_shows_its_question_and_its_answer(capsys: Captured) -> None:
    text = " ".join(printed(["learn", "1"], capsys).split())
    assert "what is the standard deviation of a score?" in text
    assert "▌score, standard deviation: √d_k" in text
    assert "Your guess" not in text


def test_a_guess_is_graded(capsys: Captured) -> None:
    assert "Your guess, 64, is 8 times the answer." in printed(["learn", "1", "--guess", "64"], capsys)
    assert "Your guess, 8, is exact." in printed(["learn", "1", "--guess", "sqrt(d_k)"], capsys)


def test_a_question_has_a_short_answer_the_usual_one_and_figures(capsys: Captured) -> None:
    text = " ".join(printed(["learn", "Q13"], capsys).split())
    assert "q13. Does the scale prevent overflow? Not in float32" in text
    assert "The usual answer: “Yes: large scores overflow in e^x.” Not as softmax is implemented." in text
    assert "measured exact e^z infinite" in text


def test_a_bug_has_symptoms_causes_to_choose_from_and_the_diagnosis(capsys: Captured) -> None:
    text = " ".join(printed(["learn", "b2"], capsys).split())
    assert "The diagnosis" not in text
    text = " ".join(printed(["learn", "b2", "--answer"], capsys).split())
    assert "2 the scale was applied twice" in text
    assert "returned as the file says" in text
    assert "The diagnosis: the scale was applied twice." in text


def test_a_claim_is_printed_as_among_all_claims(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "CLAIMS", [claim for claim in CLAIMS if claim.id == "three-matrices"])
    word = next(item.word for item in ITEMS if item.id == "three-matrices")  # which were numbered before
    assert f"{word:>3}  {catalogue.CLAIMS[0].title}" in printed(["learn"], capsys)
    text = printed(["learn", word], capsys).strip()
    assert text.splitlines()[0] in catalogue.CLAIMS[0].statement
    assert printed(["claims"], capsys).startswith(text)
    assert printed(["learn", word, "--format", "json"], capsys) == printed(["claims", "--format", "json"], capsys)
    assert "three-matrices" in printed(["learn", word, "--format", "python"], capsys)


@pytest.mark.slow
def test_flash_cards_have_a_front_and_a_back(capsys: Captured) -> None:
    assert main(["learn", "--format", "markdown"]) == 0
    cards = ("\n" + capsys.readouterr().out).split("\n## ")[1:]
    titles = [*(s.title for s in STEPS), *(q.question for q in QUESTIONS), *(bug.title for bug in BUGS)]
    for card, title in zip(cards, titles, strict=True):
        front, back = card.split("\n---\n")
        assert "{" in title or title in front
        assert "| :--" in back


def test_cards_are_in_the_chosen_language(capsys: Captured) -> None:
    for form in ("markdown", "anki"):
        english, chinese = (
            printed(["learn", "q4", "--format", form, "--lang", language], capsys) for language in ("en", "zh")
        )
        assert "梯度" in chinese.splitlines()[0] or form == "anki"
        assert "梯度" not in english
        assert english.count("\n") == chinese.count("\n")


def test_a_chinese_handout_asks_in_chinese(capsys: Captured) -> None:
    handout = printed(["learn", "--questions", "--format", "markdown", "--lang", "zh"], capsys)
    paragraphs = [line for line in handout.splitlines() if re.search(r"[A-Za-z]{3} [a-z]{3}", line)]
    assert [line for line in paragraphs if not re.search("[\u4e00-\u9fff]", line)] == []


def test_a_handout_has_questions_without_answers_or_figures(capsys: Captured) -> None:
    for words in (["learn", "1"], ["learn", "1", "--format", "markdown"]):
        whole = " ".join(printed(words, capsys).split())
        handout = " ".join(printed([*words, "--questions"], capsys).split())
        assert "what is the standard deviation of a score?" in handout
        assert "Variances add" in whole
        assert "Variances add" not in handout
        assert "7.99" not in handout
    everything = printed(["learn", "--questions"], capsys)
    assert "what is the standard deviation of a score?" in " ".join(everything.split())
    assert not {"Variances add", "The diagnosis"} & {*re.findall("Variances add|The diagnosis", everything)}
    bug = printed(["learn", "b2", "--questions"], capsys)
    assert "entropy" in bug  # a bug is found by its symptoms
    assert "The diagnosis" not in bug
    [card] = json.loads(printed(["learn", "1", "--questions", "--format", "json"], capsys))["cards"]
    assert (card["answer"], card["figures"], card["asked"]) == ([], [], None)


def test_what_has_no_answer_is_refused_as_a_handout_or_for_anki(capsys: Captured) -> None:
    assert_refused(["learn", "c1", "--questions"], "--questions", capsys)
    assert_refused(["learn", "1", "--questions", "--format", "python"], "--questions", capsys)
    assert_refused(["learn", "1", "--questions", "--format", "anki"], "anki", capsys)
    assert_refused(["learn", "c1", "--format", "anki"], "anki", capsys)


def test_anki_gets_a_line_for_each_card_with_as_many_fields_as_its_head_says(capsys: Captured) -> None:
    head: list[str] = []
    lines: list[list[str]] = []
    for item in ("1", "q4", "b2"):
        text = printed(["learn", item, "--format", "anki"], capsys).splitlines()
        head = [line for line in text if line.startswith("#")]
        lines += [line.split("\t") for line in text if not line.startswith("#")]
    assert "#separator:tab" in head
    columns = next(line for line in head if line.startswith("#columns:")).split("\t")
    assert [len(line) for line in lines] == [len(columns)] * 3
    for name, front, back, tag in lines:
        assert name.startswith("attn-tui-")
        assert tag.startswith("attn-tui::")
        for side in (front, back):
            root = ElementTree.fromstring(f"<card>{side}</card>")
            assert "".join(root.itertext())
    assert "<table>" in lines[0][2]
    assert "<table>" in lines[2][1]


def test_json_has_the_guess_and_whether_it_was_right(capsys: Captured) -> None:
    for guess, right in (("64", False), ("8", True)):
        [card] = json.loads(printed(["learn", "1", "--guess", guess, "--format", "json"], capsys))["cards"]
        assert (card["guess"], card["right"]) == (float(guess), right)
    [card] = json.loads(printed(["learn", "1", "--format", "json"], capsys))["cards"]
    assert (card["guess"], card["right"]) == (None, None)


def test_json_has_the_figure_that_was_asked_for(capsys: Captured) -> None:
    [card] = json.loads(printed(["learn", "2", "--format", "json"], capsys))["cards"]
    assert card["asked"]["exact"] == 1024
    assert card["asked"] in card["figures"]
