"""SCALE_KEYS: the keys of configurations that change the scale of attention, and types that do not need them.

They are those of the configurations and modeling files of transformers 5.24, and of a few models whose code is beside
their weights. A key that is not applied makes the expected scale unknown: see `unapplied`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ScaleKey:
    """Keys that together change the scale in one way."""

    keys: tuple[str, ...]  # a dot follows the key of an object that has them
    models: str
    effect: str  # in Markdown
    applied: bool = True


def _row(keys: str, models: str, effect: str, applied: bool = True) -> ScaleKey:
    return ScaleKey(tuple(keys.split()), models, effect, applied)


SCALE_KEYS: tuple[ScaleKey, ...] = (
    _row("head_dim d_kv hidden_size num_attention_heads", "almost all", "1/√(width of a head)"),
    _row("qk_nope_head_dim qk_rope_head_dim", "DeepSeek-V2 and V3, Mistral 4, …", "1/√(their sum)"),
    _row("query_pre_attn_scalar", "Gemma 2 and 3, T5Gemma, VaultGemma, Step 3.7", "1/√(it)"),
    _row("attention_multiplier", "Granite, HyperCLOVA X", "the scale"),
    _row("attn_config.softmax_scale", "MPT", "the scale"),
    _row("scale_attn_weights", "GPT-2, GPT-BigCode, ImageGPT, Decision Transformer", "`false`: no scale"),
    _row("scale_attn_by_inverse_layer_idx", "GPT-2, ImageGPT, Decision Transformer", "÷ (layer + 1)"),
    _row("pos_att_type", "DeBERTa", "1/√(width × terms of a score)"),
    _row("rope_parameters.mscale_all_dim rope_parameters.factor kv_lora_rank", "DeepSeek-V2 and V3, Mistral 4, …",
         "× (1 + 0.1·mscale_all_dim·ln factor)²"),
    _row("rope_parameters.attention_factor rope_parameters.mscale", "YaRN, LongRoPE",
         "a factor inside q and k, if they are known to contain it"),
    _row("key_multiplier", "Falcon-H1", "k × it"),
    _row("qk_scale_factor", "Muse Glimmer, Muse Spark", "q × it"),
    _row("attn_temperature_tuning attn_scale floor_scale no_rope_layers no_rope_layer_interval", "Llama 4",
         "q × (1 + attn_scale·ln(1 + ⌊(position + 1)/floor_scale⌋)) in layers without rotary embedding"),
    _row("rope_parameters.llama_4_scaling_beta rope_parameters.original_max_position_embeddings",
         "Ministral 3, Mistral 4", "q × (1 + beta·ln(1 + ⌊position/original_max_position_embeddings⌋))"),
    _row("log_scaling_n_floor log_scaling_alpha layer_types", "Inkling",
         "q × (1 + alpha·ln max(1, (position + 1)/n_floor)) in layers without a window"),
    _row("attn_logit_softcapping attention_logit_cap conf_attention_logit_cap",
         "Gemma 2, VideoPrism, audio of Gemma 3n and 4", "a soft-cap of the logits"),
    _row("use_logn_attn", "Qwen", "q × the logarithm of the position to the base seq_length", applied=False),
    _row("mup_use_scaling mup_attn_multiplier", "Phi-3-small", "1/(width of a head), times a number", applied=False),
    _row("scale_qk_dot_by_d mup_scale_qk_dot_by_d", "Cerebras-GPT, BTLM", "1/(width of a head)", applied=False),
)  # fmt: skip

# Types whose models learn their scale: Swin 2 a temperature of each head, TimesFM and the audio encoders of Gemma 3n
# and 4 a factor of each component, Mistral Large 4 one of each head that grows with ln(position + 1).
LEARNED = ("swinv2", "swin2sr", "timesfm", "timesfm2_5", "gemma3n_audio", "gemma4_audio", "mistral_large4")


def unapplied(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the keys of a configuration that change the scale in a way that is not applied.

    A key without effect does not count: one that is missing, null, false, 0 or 1.
    """
    named = (key for row in SCALE_KEYS if not row.applied for key in row.keys)
    return tuple(key for key in named if values.get(key) not in (None, False, 0, 1) or values.get(key) is True)


# Types whose attention is known to multiply by 1/√(width of a head), and by what their configuration says: in their
# modeling files, no class of attention has another factor, such as a learned one, one of the whole width, or none.
_NAMES = """
afmoe aimv2 albert align altclip apertus apertus1p5 arcee aria audio_spectrogram_transformer audioflamingo3
autoformer axk1 axk2 bailing_hybrid bamba bark bart beam beit bert big_bird bigbird_pegasus biogpt bitnet
blenderbot blip bloom blt bridgetower bros camembert canary canine chameleon chinese_clip clap clip clipseg clvp
coarse_acoustics codegen cohere cohere2 conditional_detr convbert cosmos3_edge cpmant csm ctrl cwm d_fine
dab_detr data2vec_audio data2vec_text data2vec_vision dbrx deberta decision_transformer deepseek_ocr2
deepseek_v2 deepseek_v3 deepseek_v32 deepseek_v4 deformable_detr deimv2 deit detr diffllama dinat dinov2
dinov3_vit distilbert doge donut_swin dots1 dpt edgetam efficientloftr electra emu3 eomt ernie ernie4_5 esm esmc
esmfold2 eurobert exaone4 exaone_moe falcon fine_acoustics flaubert flava flex_olmo flint fsmt fun_asr_nano
funnel gemma git glm glm4 glm4v glm5_next glmasr glpn got_ocr2 gpt2 gpt_bigcode gpt_neox gpt_oss gptj
gradium_phonon_tts granite_speech granite_speech5_ctc granite_speech5_encoder grounding_dino gte helium hiera
higgs_audio_v2 hrm_text hubert hunyuan_v1_dense hunyuan_v1_moe hunyuan_vl hy_v3 hy_v4 ibert idefics idefics2
idefics3 ijepa imagegpt informer inkling_audio inkling_vision instructblip
instructblipvideo internvl jais2 jamba janus jetmoe jina_embeddings_v3 kimi_k25 kimi_linear kolibri1 kosmos_2
kosmos_2.5 kyutai_speech_to_text laguna lara_mini lasr_ctc lasr_encoder layoutlm layoutlmv2 layoutlmv3 led levit
lfm2 lfm3 lightglue llama llama4 longformer luke lw_detr lxmert m2m_100 marian markuplm mask2former maskformer
mbart megatron_bert mellum metaclip_2 mgp_str mimi mimo_v2_flash minicpm3 minicpm_ocr minicpmv4_6 minicpmv4_7
minimax ministral ministral3 mistral mistral4 mixtral mlcd_vision_model mllama mm_grounding_dino mobilebert
mobilevit modernbert molmo2 moonshine moshi moss_transcribe_diarize mpnet mpt
musicgen_decoder musicgen_melody mvp nanochat nemo_speechlm nemotron nemotron3_5_transcribe_asr_audio
nemotron3_5_transcribe_audio nemotron3_5_transcribe_word_timestamp nemotron3_diarization neomme neucodec
nllb_moe nomic_bert olmo olmo2 olmo3 olmoe omdet_turbo omniasr oneformer openai_gpt opt ovis2 owlv2 owlvit
paddleocr_vl parakeet_ctc parakeet_encoder parakeet_rnnt parakeet_tdt patchtsmixer patchtst pe_audio pe_video
pegasus perceiver persimmon phi phi3 phi4_multimodal phimoe pixio pixtral plbart pocket_tts pp_doclayout_v2
pp_doclayout_v3 pp_doclayout_v4 pp_formulanet pp_ocrv5_mobile_rec pp_ocrv5_server_rec pp_ocrv6_small_rec
prophetnet pvt qianfan_ocr qwen2 qwen3 qwen4_exp radio recurrent_gemma rembert rf_detr roberta roc_bert roformer
rt_detr sam2 sam3 sapiens2 seamless_m4t seed_oss segformer seggpt semantic sew siglip siglip2 slanext smollm3
smolvlm solar_open speech_to_text speecht5 splinter squeezebert stablelm starcoder2 superglue swin
table_transformer tapas time_series_transformer timesformer tipsv2 trocr tvp ultrabert unispeech unlimited_ocr
video_llama_3 videomae videomt vilt visual_bert vit vitdet vitpose_backbone vits vivit vjepa2 voxtral wav2vec2
wavlm whisper xclip xcodec2 xglm xlm xlnet xmod yolos youtu zaya zoedepth
"""
_SCALED = frozenset(_NAMES.split())


def is_scaled(model_type: str) -> bool:
    """Return whether a type, such as `qwen2_vl_text`, or one that its name begins with is known."""
    name = model_type.replace("-", "_")
    while name and name not in _SCALED:
        name = name.rpartition("_")[0]
    return bool(name)
