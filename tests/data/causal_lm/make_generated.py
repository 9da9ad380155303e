#!/usr/bin/env python3
"""Writes how transformers continues some tokens, always by the likeliest one,
for the models that make_golden.py has made: generated.json.

    python3 make_generated.py               (torch 2.15.0, transformers 5.24.0)
"""
import json
import pathlib

import torch
import transformers

HERE = pathlib.Path(__file__).parent
PROMPTS = [[7], [3, 1, 4, 1, 5], list(range(20, 39))]
TOKENS = 64


def main():
    made = {}
    for name in ("qwen3", "llama", "qwen2"):
        model = transformers.AutoModelForCausalLM.from_pretrained(
            HERE / name, dtype=torch.float32)
        model.generation_config.eos_token_id = None
        made[name] = [
            {"prompt": prompt,
             "tokens": model.generate(
                 torch.tensor([prompt]), do_sample=False,
                 max_new_tokens=TOKENS, pad_token_id=0)[0, len(prompt):].tolist()}
            for prompt in PROMPTS]
    (HERE / "generated.json").write_text(
        json.dumps(made).replace("}, ", "},\n ") + "\n")


if __name__ == "__main__":
    main()
