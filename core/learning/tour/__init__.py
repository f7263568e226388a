"""STEPS: the tour, in order. Command line, pane and flash cards show these declarations."""

from __future__ import annotations

from ..step import TourStep
from .models import MODELS
from .scores import SCORES

STEPS: tuple[TourStep, ...] = SCORES + MODELS
