"""QUESTIONS: the twenty questions most asked about the scale, in an order that a conversation would take."""

from __future__ import annotations

from ..question import Question
from .about_size import SIZE
from .about_use import USE
from .about_variants import VARIANTS

QUESTIONS: tuple[Question, ...] = SIZE + USE + VARIANTS
