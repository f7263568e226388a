"""The row of a list of scale rules that makes a rule of the formula in its filter."""

from __future__ import annotations

from ....core.errors import ParameterError
from ....core.message import message
from ....core.parameters import Parameters
from ....core.scales import FORMULA_ACCEPTED, is_formula, multiplier
from .choices import Choice

_SIGNS = frozenset("()+*/^×÷−·")  # that only formulas contain
USE = message("use this formula")


def is_like_formula(text: str) -> bool:
    """Return whether a text has signs of a formula, or is a number with a point."""
    return bool(_SIGNS & {*text}) or (text.strip().replace(".", "", 1).isdecimal() and "." in text)


def formula_rows(text: str, parameters: Parameters | None = None) -> list[Choice]:
    """Return the row of a formula, with its multiplier under parameters; none if the text is a word.

    Raise ParameterError if the formula is faulty.
    """
    formula, here = text.strip(), ""
    if not formula or not is_formula(formula):
        return []
    if parameters is not None:
        try:
            here = message(
                "× {multiplier:.4g} with the present parameters. ",
                multiplier=multiplier(formula, parameters.setting),
            )
        except ParameterError as error:
            here = message("{error}. ", error=error)
    return [
        Choice(
            formula,
            USE,
            formula,
            message(
                "{here}It may contain {formula_accepted}.",
                here=here,
                formula_accepted=FORMULA_ACCEPTED,
            ),
            "you",
        )
    ]
