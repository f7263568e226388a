"""STEPS: the tour, in order. Command line, pane and flash cards show these declarations."""

from __future__ import annotations

from ..step import Step
from .about_models import MODELS
from .about_scores import SCORES

STEPS: tuple[Step, ...] = SCORES + MODELS
