"""QUESTIONS: the questions most asked about the scale, in an order that a conversation would take."""

from __future__ import annotations

from ..step import InterviewQuestion
from .layer import LAYER
from .scale import SIZE
from .use import USE
from .variants import INPUTS, VARIANTS

QUESTIONS: tuple[InterviewQuestion, ...] = SIZE + USE + VARIANTS + INPUTS + LAYER
