#!/usr/bin/env python3
"""Trains a small language model on packed rows: no token sees another document.

    python3 make_corpus.py
    python3 train.py [STEPS]
"""
import sys

import torch
from torch import nn
from torch.nn import functional

import penstock

VOCABULARY, SIZE, WIDTH = 259, 256, 64


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.looks = nn.Linear(WIDTH, 3 * WIDTH)
        self.joins = nn.Linear(WIDTH, WIDTH)
        self.thinks = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(),
                                    nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, hidden, mask):
        heads = [part.unflatten(-1, (4, -1)).transpose(1, 2) for part in
                 self.looks(self.norms[0](hidden)).chunk(3, dim=-1)]
        seen = functional.scaled_dot_product_attention(*heads, attn_mask=mask)
        hidden = hidden + self.joins(seen.transpose(1, 2).flatten(2))
        return hidden + self.thinks(self.norms[1](hidden))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Embedding(SIZE, WIDTH)
        self.layers = nn.ModuleList([Layer(), Layer()])
        self.out = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, batch):
        documents = batch["document_ids"]
        mask = (documents[:, None, :, None] == documents[:, None, None, :])
        mask = mask & torch.ones(SIZE, SIZE, dtype=torch.bool,
                                 device=mask.device).tril()
        hidden = (self.words(batch["input_ids"])
                  + self.places(batch["position_ids"]))
        for layer in self.layers:
            hidden = layer(hidden, mask)
        # What stands at i is to say what stands at i + 1.
        return functional.cross_entropy(
            self.out(hidden[:, :-1]).flatten(0, 1),
            batch["labels"][:, 1:].flatten(), ignore_index=-100)


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    torch.manual_seed(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Model().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    with penstock.Loader("corpus.jsonl", {"tokens": {"tokens": {
            "column": "text", "tokenizer": "tokenizer.json", "eos": True,
            "max_length": SIZE}}}, batch_size=16,
            device=device) as loader:
        print(f"{len(loader)} batches in an epoch")
        for step, batch in enumerate(loader.batches(steps)):
            loss = model(batch.torch())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 20 == 0 or step == steps - 1:
                print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
