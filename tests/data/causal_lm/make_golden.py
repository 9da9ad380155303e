#!/usr/bin/env python3
"""Writes small random models of transformers, what they say of some tokens, and
how PEFT names an adapter of one, for the tests of the causal_lm model.

    python3 make_golden.py        (torch 2.11.0, transformers 5.24.0, peft 0.21.2)
"""
import json
import pathlib
import shutil

import peft
import torch
import transformers
from safetensors import safe_open
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).parent
SIZES = {"vocab_size": 40, "hidden_size": 16, "intermediate_size": 24,
         "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "head_dim": 8, "rms_norm_eps": 1e-5}
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "rope_theta": 10000.0,
          "original_max_position_embeddings": 16}
MODELS = {
    "qwen3": transformers.Qwen3Config(
        **SIZES, tie_word_embeddings=True, rope_theta=1e6),
    "llama": transformers.LlamaConfig(
        **SIZES, tie_word_embeddings=False, attention_bias=True, mlp_bias=True,
        rope_parameters=LLAMA3),
    "qwen2": transformers.Qwen2Config(
        **{k: v for k, v in SIZES.items() if k != "head_dim"},
        tie_word_embeddings=False),
}


def spread(model):
    """Weights that are far from their beginning, so that each of them counts."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1:
                weight.normal_(0, 0.3)
            else:
                weight.add_(torch.randn_like(weight) * 0.3)


def main():
    for name, config in MODELS.items():
        torch.manual_seed(len(name))
        model = transformers.AutoModelForCausalLM.from_config(config).float()
        spread(model)
        folder = HERE / name
        shutil.rmtree(folder, ignore_errors=True)
        model.save_pretrained(
            folder, max_shard_size="8KB" if name == "llama" else "1GB")
        (folder / "generation_config.json").unlink(missing_ok=True)
        ids = torch.randint(0, SIZES["vocab_size"], (3, 21))
        answer = model(input_ids=ids, labels=ids)
        answer.loss.backward()
        first = model.model.layers[0].self_attn.q_proj.weight
        save_file({"ids": ids, "logits": answer.logits.detach().contiguous(),
                   "loss": answer.loss.detach().reshape(1),
                   "gradient": first.grad.clone()},
                  HERE / f"{name}_expected.safetensors")
    adapted = peft.get_peft_model(
        transformers.AutoModelForCausalLM.from_pretrained(HERE / "qwen3"),
        peft.LoraConfig(r=4, lora_alpha=8, task_type="CAUSAL_LM",
                        target_modules=["q_proj", "v_proj", "down_proj"]))
    for name, weight in adapted.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(weight, 0, 0.2)
    ids = torch.randint(0, SIZES["vocab_size"], (3, 21))
    with torch.no_grad():
        logits = adapted(input_ids=ids).logits
    save_file({"ids": ids, "logits": logits.contiguous(),
               **{name.replace(".default", ""): weight.detach().clone()
                  for name, weight in adapted.named_parameters()
                  if "lora_" in name}},
              HERE / "adapter_expected.safetensors")
    folder = HERE / "adapter"
    adapted.save_pretrained(folder)
    with safe_open(folder / "adapter_model.safetensors", "pt") as file:
        shapes = {key: file.get_slice(key).get_shape() for key in file.keys()}
    config = json.loads((folder / "adapter_config.json").read_text())
    # Not the folder of the machine that this ran on.
    base = pathlib.Path(config["base_model_name_or_path"])
    config["base_model_name_or_path"] = base.name
    (HERE / "adapter.json").write_text(json.dumps(
        {"config": config, "tensors": shapes}, indent=1, sort_keys=True) + "\n")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
