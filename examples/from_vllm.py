"""Generate with vLLM, to be recorded:

attn-tui record -o heads.safetensors --values -- python examples/from_vllm.py MODEL
"""

import os
import sys

os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")  # or the engine's process records


def main(model: str, text: str = "The capital of France is") -> None:
    """Read a text, and generate eight tokens: one rectangle of the prompt's queries and those of each new token."""
    from vllm import LLM, SamplingParams

    llm = LLM(model, enforce_eager=True, enable_prefix_caching=False)  # a cached prefix has no queries
    [found] = llm.generate([text], SamplingParams(max_tokens=8, temperature=0))
    print(found.outputs[0].text)


if __name__ == "__main__":
    main(*sys.argv[1:])
