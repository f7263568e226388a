"""Presets: the attention layers of MODELS."""

from __future__ import annotations

from dataclasses import dataclass

from ..message import message
from ..models import MODELS, Model
from ..scales import SCALE_RULES, ScaleRule, Setting, multiplier
from .cost import SHAPE_FIELDS, Layer


@dataclass(frozen=True)
class Preset:
    """A model's layer, with its longest context, its scale, and the source of its numbers."""

    name: str
    model: str  # its title
    layer: Layer
    source: str
    note: str = ""  # a sentence on what the figures do not include
    scale: str = "sqrt_d_k"  # the name of its scale rule
    context_factor: float = Setting().context_factor

    @property
    def rule(self) -> ScaleRule:
        """The scale rule of the model."""
        return SCALE_RULES[self.scale]

    def multiplier(self, layer: Layer) -> float:
        """Return what the model's rule multiplies scores by in a layer that started from this preset."""
        return multiplier(self.scale, Setting(layer.width, layer.context, context_factor=self.context_factor))

    def changed(self, layer: Layer) -> bool:
        """Return whether a layer that started from this preset has another shape; its use does not matter."""
        return _shape(layer) != _shape(self.layer)

    def title(self, layer: Layer) -> str:
        """Return the model's name, marked as changed if the layer's shape is no longer the preset's."""
        return message("{model}, changed", model=self.model) if self.changed(layer) else self.model


def _shape(layer: Layer) -> tuple[object, ...]:
    """Return what the layer is, whatever it follows from, without its use."""
    followed = {"kv_heads": layer.key_heads, "d_k": layer.width, "d_v": layer.value_width}
    names = [field.name for field in SHAPE_FIELDS if field.group != "use"]
    return tuple(followed.get(name, getattr(layer, name)) for name in names)


def _preset(model: Model) -> Preset:
    layer = Layer(
        d_model=model.d_model,
        heads=model.heads,
        kv_heads=model.kv_heads,
        d_k=model.head_dim,
        d_v=model.value_dim,
        kv_latent=model.kv_latent,
        q_latent=model.q_latent,
        rotary=model.rotary,
        bias=model.bias,
        layers=model.layers,
        context=model.context,
        mask="causal" if model.causal else "none",
    )
    factor = float(model.more.get("context_factor", Setting().context_factor))
    return Preset(model.name, model.title, layer, model.source, model.note, model.scale, factor)


PRESETS: dict[str, Preset] = {model.name: _preset(model) for model in MODELS.values()}
