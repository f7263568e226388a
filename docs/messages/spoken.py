"""Messages of the claims, the tour, the questions and the bugs: sentences with their figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attn_tui.core.claims.about_layers import LAYERS
from attn_tui.core.claims.about_scales import SCALES
from attn_tui.core.claims.about_scores import SCORES
from attn_tui.core.claims.about_softmax import SOFTMAX
from attn_tui.core.claims.about_training import TRAINING
from attn_tui.core.claims.claim import VERDICT_WORDS, Claim
from attn_tui.core.learning.bugs.bug import CAUSES, SYMPTOMS
from attn_tui.core.learning.bugs.catalogue import BUGS
from attn_tui.core.learning.figures import Figure
from attn_tui.core.learning.question import Question
from attn_tui.core.learning.questions.about_size import SIZE
from attn_tui.core.learning.questions.about_use import USE
from attn_tui.core.learning.questions.about_variants import VARIANTS
from attn_tui.core.learning.step import Shown, Step
from attn_tui.core.learning.tour.about_models import MODELS
from attn_tui.core.learning.tour.about_scores import SCORES as TOUR_SCORES
from message import Message, messages

_CLAIMS = {"scores": SCORES, "softmax": SOFTMAX, "scales": SCALES, "training": TRAINING, "layers": LAYERS}
_TOUR = {"scores": TOUR_SCORES, "models": MODELS}
_QUESTIONS = {"size": SIZE, "use": USE, "variants": VARIANTS}


def from_texts() -> Iterator[Message]:
    """Yield the texts of the claims, the tour, the questions and the bugs."""
    yield from messages("core/claims/claim.py", (("VERDICT_WORDS", word) for word in VERDICT_WORDS.values()))
    for name, claims in _CLAIMS.items():
        yield from messages(f"core/claims/about_{name}.py", _of_claims(claims))
    for name, steps in _TOUR.items():
        yield from messages(f"core/learning/tour/about_{name}.py", _of_steps(steps))
    for name, questions in _QUESTIONS.items():
        yield from messages(f"core/learning/questions/about_{name}.py", _of_questions(questions))
    yield from messages("core/learning/bugs/catalogue.py", _of_bugs())
    words = [("CAUSES: of a bug", text) for text in CAUSES.values()]
    words += [("SYMPTOMS: label", symptom.label) for symptom in SYMPTOMS.values()]
    yield from messages("core/learning/bugs/bug.py", words)


def _of_claims(claims: Iterable[Claim]) -> Iterator[tuple[str, str]]:
    for claim in claims:
        yield f"claim {claim.id}: title", claim.title
        yield f"claim {claim.id}: statement", claim.statement
        yield f"claim {claim.id}: source", claim.source if "widely copied" in claim.source else ""
        yield f"claim {claim.id}: why", claim.why
        yield f"claim {claim.id}: limit, after “True”", claim.limit
        yield f"claim {claim.id}: why it cannot be tested", claim.untestable
        for figure in claim.figures:
            yield f"claim {claim.id}: label of a figure", figure.label
            yield f"claim {claim.id}: claimed value", figure.claimed.words
            yield f"claim {claim.id}: measure, after “True by”", figure.measure


def _of_steps(steps: Iterable[Step]) -> Iterator[tuple[str, str]]:
    for step in steps:
        yield f"step {step.id}: title", step.title
        yield f"step {step.id}: source", step.source
        yield from ((f"step {step.id}: introduction", text) for text in step.introduction)
        yield f"step {step.id}: question", step.guess.question
        yield from ((f"step {step.id}: explanation", text) for text in step.explanation)
        yield from _of_evidence(f"step {step.id}", step.figures, step.shown, step.given)


def _of_questions(questions: Iterable[Question]) -> Iterator[tuple[str, str]]:
    for each in questions:
        yield f"question {each.id}", each.question
        yield f"question {each.id}: short answer", each.short
        yield from ((f"question {each.id}: long answer", text) for text in each.long)
        yield f"question {each.id}: the usual answer", each.usual
        yield f"question {each.id}: what is wrong with it", each.verdict
        yield from _of_evidence(f"question {each.id}", each.figures, each.shown, each.given)


def _of_bugs() -> Iterator[tuple[str, str]]:
    for bug in BUGS:
        yield f"bug {bug.id}: title", bug.title
        yield f"bug {bug.id}: how it was noticed", bug.story
        yield f"bug {bug.id}: what gives it away", bug.lesson


def _of_evidence(
    name: str, figures: Mapping[str, Figure], shown: Shown, given: Mapping[str, float | str]
) -> Iterator[tuple[str, str]]:
    yield from ((f"{name}: label of a figure", figure.label) for figure in figures.values())
    yield f"{name}: what to look at", shown.what
    yield from ((f"{name}: value of {{{key}}}", value) for key, value in given.items() if isinstance(value, str))
