#!/usr/bin/env python3
"""Does QLoRA learn what PEFT with bitsandbytes learns?

A random Qwen3 and a random Llama are quantised by bitsandbytes. From the same
first adapters, 50 steps are taken by `penstock train` and by PEFT, in float32,
over the same rows in the same order. Compared: the losses of all steps, and the
logits of both models in transformers after them. Adapters go both ways, and so
do quantised folders.

    python bench/peers/qlora.py PENSTOCK
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import bitsandbytes
import peft
import torch
import transformers
from safetensors.torch import load_file

from peer_result import print_result, torch_machine

STEPS, ROWS, LENGTH, VOCABULARY = 50, 4, 32, 128
RATE = 0.01
SIZES = {"vocab_size": VOCABULARY, "hidden_size": 128, "intermediate_size": 256,
         "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "head_dim": 32, "tie_word_embeddings": False,
         "initializer_range": 0.1, "pad_token_id": 0}
KINDS = {"qwen3": transformers.Qwen3Config, "llama": transformers.LlamaConfig}


def rows():
    """Sequences that count up by one of three strides."""
    generator = torch.Generator().manual_seed(7)
    first = torch.randint(VOCABULARY, (STEPS * ROWS, 1), generator=generator)
    stride = torch.randint(1, 4, (STEPS * ROWS, 1), generator=generator)
    return (first + stride * torch.arange(LENGTH)) % VOCABULARY


def four_bits(path):
    quantised = transformers.BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.float32)
    return transformers.AutoModelForCausalLM.from_pretrained(
        path, quantization_config=quantised, dtype=torch.float32)


def loaded(path):
    return transformers.AutoModelForCausalLM.from_pretrained(
        path, dtype=torch.float32)


def with_adapter(path, adapter):
    return peft.PeftModel.from_pretrained(loaded(path), adapter,
                                          is_trainable=True)


# In training mode (nothing here has dropout): outside it, bitsandbytes 0.50
# multiplies in bfloat16 on processors that can.
def logits(model, ids):
    model.train()
    with torch.no_grad():
        return model(input_ids=ids).logits


def trained_by_peft(model, ids):
    """The loss of each step."""
    learned = [one for one in model.parameters() if one.requires_grad]
    optimizer = torch.optim.AdamW(learned, lr=RATE, weight_decay=0.0)
    losses = []
    model.train()
    for batch in ids.split(ROWS):
        loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


class Penstock:
    """The program, in a folder with the rows."""

    def __init__(self, program, folder, ids):
        self.program, self.folder = pathlib.Path(program).resolve(), folder
        (folder / "rows.jsonl").write_text("".join(
            json.dumps({"ids": row}) + "\n" for row in ids.tolist()))

    def run(self, *arguments):
        done = subprocess.run(
            [self.program, *map(str, arguments), "--json"], cwd=self.folder,
            check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True)
        if done.returncode != 0:
            sys.exit(done.stdout + done.stderr)
        return json.loads(done.stdout)

    def train(self, model, output, **train):
        job = {"source": {"kind": "jsonl", "path": "rows.jsonl"},
               "fields": {"tokens": {"tokens": {
                   "column": "ids", "max_length": LENGTH, "pack": "none",
                   "vocab_size": VOCABULARY, "pad_id": 0}}},
               "loader": {"batch_size": ROWS, "shuffle": False},
               "device": "cpu",
               "model": {"kind": "causal_lm", "path": model,
                         "lora": {"r": 8, "alpha": 16,
                                  "target_modules": "all-linear"}},
               "train": {"lr": RATE, "schedule": "constant", "warmup_steps": 0,
                         "weight_decay": 0, "clip_norm": 0, **train}}
        (self.folder / "job.json").write_text(json.dumps(job))
        report = self.run("train", "job.json", "--output", output)
        steps = (self.folder / "runs/latest/steps.jsonl").read_text()
        return report, [json.loads(line)["loss"] for line in steps.splitlines()]

    def evaluate(self, folder):
        return self.run("evaluate", folder, "rows.jsonl")


def far(a, b):
    return (a - b).abs().max().item()


def loss_of(model, ids):
    model.train()
    with torch.no_grad():
        return model(input_ids=ids, labels=ids).loss.item()


def result_of(kind, program, scratch, ids):
    folder = scratch / kind
    folder.mkdir()
    torch.manual_seed(3)
    config = KINDS[kind](**SIZES)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(
        folder / "base")
    four_bits(folder / "base").save_pretrained(folder / "theirs4")
    ours = Penstock(program, folder, ids)
    ours.train("theirs4", "first", lr=0, max_steps=1)
    report, losses = ours.train("theirs4", "ours", epochs=1)

    model = with_adapter(folder / "theirs4", folder / "first")
    theirs = trained_by_peft(model, ids)
    model.save_pretrained(folder / "peft")
    our_model = with_adapter(folder / "theirs4", folder / "ours")

    # Their adapter, in the folder that our run left.
    shutil.copytree(folder / "ours", folder / "theirs_in_ours")
    shutil.copy(folder / "peft/adapter_model.safetensors",
                folder / "theirs_in_ours")
    ours.run("quantize", "base", "--out", "ours4")
    first, quantised = loaded(folder / "theirs4"), loaded(folder / "ours4")
    measured = ours.evaluate("theirs_in_ours")
    codes = [load_file(folder / name / "model.safetensors")
             for name in ("ours4", "theirs4")]
    layers = [name for name in codes[1] if name.endswith("_proj.weight")]
    sizes = report["model"]["quantized"]
    return {
        "workload": kind,
        "loss": {"ours": [losses[0], losses[-1]],
                 "peft": [theirs[0], theirs[-1]],
                 "largest_relative_difference": max(
                     abs(a - b) / b
                     for a, b in zip(losses, theirs, strict=True))},
        "logits_after_50_steps": far(logits(model, ids), logits(our_model, ids)),
        "peft_adapter_here": {
            "loss": measured["metrics"]["loss"],
            "loss_in_peft": loss_of(model, ids)},
        "our_folder_in_transformers": {
            "logits": far(logits(first, ids), logits(quantised, ids)),
            "different_codes": sum(
                (codes[0][name] != codes[1][name]).sum().item()
                for name in layers)},
        "quantized": {**sizes,
                      "of_bfloat16": sizes["bytes"] / (2 * sizes["parameters"])}}


def main(program):
    ids = rows()
    with tempfile.TemporaryDirectory() as scratch:
        results = [result_of(kind, program, pathlib.Path(scratch), ids)
                   for kind in KINDS]
    print_result("qlora", __doc__, f"python bench/peers/qlora.py {program}",
                 {"machine": torch_machine(),
                  "transformers": transformers.__version__,
                  "peft": peft.__version__,
                  "bitsandbytes": bitsandbytes.__version__,
                  "results": results})


if __name__ == "__main__":
    main(sys.argv[1])
