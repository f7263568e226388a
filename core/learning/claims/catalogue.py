"""CLAIMS: widely copied statements about √d_k, each tested in a few seconds.

Every verdict is computed from a new measurement and the theory; none is stored. This module does not need NumPy.
"""

from __future__ import annotations

from ..claim import Claim
from .about_layers import LAYERS
from .about_scales import SCALES
from .about_scores import SCORES
from .about_softmax import SOFTMAX
from .about_training import TRAINING

CLAIMS: tuple[Claim, ...] = SCORES + SOFTMAX + SCALES + TRAINING + LAYERS
