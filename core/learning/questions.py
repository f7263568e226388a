"""QUESTIONS: the questions most asked about the scale, in an order that a conversation would take."""

from __future__ import annotations

from .questions_layer import LAYER
from .questions_scale import SIZE
from .questions_use import USE
from .questions_variants import INPUTS, VARIANTS
from .step import InterviewQuestion

QUESTIONS: tuple[InterviewQuestion, ...] = SIZE + USE + VARIANTS + INPUTS + LAYER
