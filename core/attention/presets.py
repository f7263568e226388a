"""Presets: the attention layers of MODELS."""

from __future__ import annotations

from typing import Any

from ..message import message
from ..models import MODELS, Model
from ..scales import SCALE_RULES, RuleSetting, ScaleRule, multiplier
from .cost import SHAPE_FIELDS, LayerShape


class Preset(Model):
    """A model with its layer, whose context is the model's longest."""

    @property
    def layer(self) -> LayerShape:
        """The layer."""
        values: dict[str, Any] = {name: value for name, value in self._asdict().items() if name in _NAMES}
        return LayerShape(mask="causal" if self.causal else "none", **values)

    @property
    def rule(self) -> ScaleRule:
        """The scale rule of the model."""
        return SCALE_RULES[self.scale]

    @property
    def context_factor(self) -> float:
        """By how much its rotary embeddings stretch the context; some scale rules need it."""
        return float(self.more.get("context_factor", RuleSetting().context_factor))

    def multiplier(self, layer: LayerShape) -> float:
        """Return what the model's rule multiplies scores by in a layer that started from this preset."""
        return multiplier(self.scale, RuleSetting(layer.width, layer.context, context_factor=self.context_factor))

    def changed(self, layer: LayerShape) -> bool:
        """Return whether a layer that started from this preset has another shape; its use does not matter."""
        ours = self.layer.shape
        return any(layer.shape[field.name] != ours[field.name] for field in SHAPE_FIELDS if field.group != "use")

    def heading(self, layer: LayerShape) -> str:
        """Return the model's name, marked as changed if the layer's shape is no longer the preset's."""
        return message("{model}, changed", model=self.title) if self.changed(layer) else self.title


_NAMES = {field.name for field in SHAPE_FIELDS}
PRESETS: dict[str, Preset] = {name: Preset(*model) for name, model in MODELS.items()}
