"""Words that readers and study notes use for what the texts call otherwise, in English and in Chinese."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

# By the word of the texts: other words for it, or for what the texts say of it.
TERMS: Mapping[str, tuple[str, ...]] = {
    "overflow": (
        "numerical stability", "numerically stable", "floating point", "数值稳定性", "数值稳定", "数值溢出", "溢出",
        "数值爆炸", "浮点数",
    ),
    "vanish": (
        "vanishing gradient", "vanishing gradients", "gradient stability", "梯度消失", "梯度接近0", "梯度健康",
        "梯度稳定性", "梯度优化",
    ),
    "root mean square": ("exploding gradient", "exploding gradients", "gradient norm", "梯度爆炸", "梯度范数"),
    "variance": ("方差增长", "线性增长", "方差控制", "标准化"),
    "independent": ("i.i.d.", "iid", "random variable", "random variables", "独立同分布", "随机变量"),
    "mean": ("expectation", "expected value", "期望"),
    "width": (
        "dimensionality", "curse of dimensionality", "high-dimensional", "特征维度", "维度无关性", "高维空间",
        "维度灾难",
    ),
    "saturat": ("extreme distribution", "极端分布", "数值极端化", "数值示例"),
    "spread": ("smooth", "smoother", "平滑", "过于集中", "分布退化", "概率分布", "未归一化"),
    "entropy": ("information entropy", "信息熵"),
    "uniform": ("too flat", "过于平均", "区分性", "选择性"),
    "largest weight": ("最大注意力权重",),
    "one-hot": ("hard attention", "独热分布", "独热", "硬注意力", "尖锐"),
    "temperature": ("温度参数",),
    "scale": ("scaling factor", "scaling", "缩放因子"),
    "sqrt": ("square root", "根号"),
    "ln d_k": ("log(dk)", "log(d_k)", "log dk"),
    "√d_k": ("sqrt(d_k)", "sqrt(dk)", "sqrt(d)", "sqrt(dim)"),
    "product": ("inner product", "内积", "数学推导", "推导"),
    "length": ("模长",),
    "initialis": ("initialization", "initialisation", "weight init"),
    "normalis": ("batch normalization", "batch normalisation", "batchnorm", "批归一化", "归一化"),
    "layernorm": ("layer normalization", "layer normalisation", "layer norm", "层归一化"),
    "position": ("positional encoding", "relative position", "相对位置编码", "位置编码"),
    "additive": ("bahdanau", "前馈网络", "feed-forward"),
    "several heads": (
        "multi-head", "multihead", "subspace", "subspaces", "concat", "concatenation", "output projection",
        "local and global", "多头注意力", "多头", "子空间", "拼接", "全连接层", "局部与全局", "全局依赖", "参数效率",
    ),
    "w_q": ("linear projection", "linear layer", "线性变换", "参数矩阵"),
    "parameters": ("parameter count", "number of parameters", "参数量"),
    "attention": ("self-attention", "attention mechanism", "自注意力", "注意力机制", "软性关注", "soft attention"),
    "training": (
        "backpropagation", "back propagation", "convergence", "converge", "robustness", "overfitting", "反向传播",
        "收敛", "难以收敛", "训练困难", "训练稳定", "训练不稳定", "参数更新", "鲁棒性", "过拟合",
    ),
    "inference": ("推理阶段", "推理"),
    "optim": ("optimal", "最优解", "最优"),
    "cheap": ("efficiency", "computational cost", "计算效率", "开销"),
    "number of keys": ("long sequence", "long sequences", "长序列", "context length"),
}  # fmt: skip


@lru_cache(1)
def _pattern() -> tuple[re.Pattern[str], Mapping[str, str]]:
    """Return a pattern of all other words, the longest first, and the word of the texts for each."""
    word_of = {other: word for word, others in TERMS.items() for other in others}
    longest = sorted(word_of, key=len, reverse=True)
    whole = (rf"(?<!\w){re.escape(other)}(?!\w)" if other.isascii() else re.escape(other) for other in longest)
    return re.compile("|".join(whole)), word_of


def in_texts(words: str) -> str:
    """Return what is searched for, with the words of the texts for others: `梯度消失` is `vanish`."""
    pattern, word_of = _pattern()
    return pattern.sub(lambda found: f" {word_of[found[0]]} ", words.casefold()).strip()
