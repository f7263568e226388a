"""The parameter `model`: parameters as a model sets them, and whether they were changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from .message import message
from .models import MODELS, SET_BY_MODEL
from .parameters import NO_MODEL, Parameters, Value


def parameters_from(values: Mapping[str, Value], start: Parameters | None = None) -> Parameters:
    """Return parameters, by default those without a model, with these values; others override what a model sets."""
    start = start or Parameters()
    if "model" in values:
        start = start.with_value("model", values["model"])
    return replace(start, **cast(Any, values))


def usual_of(p: Parameters) -> Parameters:
    """Return the default parameters, with what the model of `p` sets."""
    return Parameters() if p.model == NO_MODEL else Parameters().with_value("model", p.model)


def context_note(p: Parameters) -> str:
    """Return that fewer keys are measured than the model's longest context has; empty if not, or without a model."""
    if p.model == NO_MODEL or p.n_keys >= MODELS[p.model].context:
        return ""
    context = MODELS[p.model].context
    return message("longest context {context:,}, measured at {keys:,} keys", context=context, keys=p.n_keys)


def model_title(p: Parameters) -> str:
    """Return the title of the model, marked as changed unless all is as the model sets it; empty without a model."""
    if p.model == NO_MODEL:
        return ""
    usual, title = usual_of(p), MODELS[p.model].title
    changed = any(getattr(p, name) != getattr(usual, name) for name in SET_BY_MODEL)
    return message("{title}, changed", title=title) if changed else title
