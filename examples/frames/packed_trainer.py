#!/usr/bin/env python3
"""Packed rows in Transformers' Trainer: a small Qwen3 learns from rows that
several documents share. `position_ids` begins again in each of them, from which
transformers sees that none may look at another; where attention is a kernel of
sequences (`flash_attention_2`), `cu_seqlens` are its boundaries.

Before anything is learnt a packed batch must give the loss of its documents one
by one."""
import argparse
import json
import pathlib
import tempfile

import torch
import transformers

import penstock

VOCABULARY, SIZE = 256, 128
# What the model takes; the rest of a batch is for other models and for tests.
TAKEN = ("input_ids", "labels", "position_ids")


class Rows:
    """The loader's batches as the dicts of tensors that Trainer wants."""

    def __init__(self, loader):
        self.loader = loader

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        for batch in self.loader:
            tensors = batch.torch()
            yield {name: tensors[name] for name in TAKEN}


class Trainer(transformers.Trainer):
    def __init__(self, model, args, loader):
        super().__init__(model, args)
        self.loader = loader

    def get_train_dataloader(self):
        return Rows(self.loader)


def make_documents(path, count):
    """Sentences of a tiny language: what follows a number is three more."""
    with open(path, "w") as file:
        for document in range(count):
            length = 5 + document * 13 % 90
            ids = [(document * 7 + 3 * i) % VOCABULARY for i in range(length)]
            file.write(json.dumps({"input_ids": ids}) + "\n")


def make_model():
    torch.manual_seed(1)
    return transformers.Qwen3ForCausalLM(transformers.Qwen3Config(
        vocab_size=VOCABULARY, hidden_size=64, intermediate_size=128,
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        head_dim=16, attn_implementation="sdpa",
        use_cache=False))  # with a cache position_ids are not looked at


def assert_kept_apart(model, batch):
    """The loss of a packed batch is that of its documents alone."""
    tensors = batch.torch()
    rows = {name: tensors[name].long() for name in TAKEN}
    with torch.no_grad():
        packed = model(**rows).loss.item()
        ends = tensors["cu_seqlens"].tolist()
        ids, labels = rows["input_ids"].flatten(), rows["labels"].flatten()
        total = count = 0
        for begin, end in zip(ends, ends[1:]):
            targets = labels[begin:end]
            learnt = int((targets[1:] != -100).sum())
            if learnt == 0:  # padding, or a document of one token
                continue
            alone = model(input_ids=ids[None, begin:end],
                          labels=targets[None]).loss.item()
            total += alone * learnt
            count += learnt
    apart = total / count
    assert abs(packed - apart) < 1e-4, (packed, apart)
    print(f"a packed batch has the loss {packed:.5f}, its documents one by one "
          f"{apart:.5f}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--steps", type=int, default=60)
    arguments.add_argument("--documents", type=int, default=400)
    args = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "documents.jsonl"
        make_documents(path, args.documents)
        fields = {"tokens": {"tokens": {"column": "input_ids",
                                        "max_length": SIZE,
                                        "vocab_size": VOCABULARY}}}
        with penstock.Loader(str(path), fields, 4, device="cpu") as loader:
            model = make_model()
            assert_kept_apart(model, loader.peek())
            settings = transformers.TrainingArguments(
                folder, max_steps=args.steps, learning_rate=3e-3,
                save_strategy="no", report_to="none", disable_tqdm=True,
                logging_steps=args.steps, use_cpu=True)
            trainer = Trainer(model, settings, loader)
            first = float(
                model(**next(iter(Rows(loader)))).loss.detach())
            trainer.train()
            last = float(model(**next(iter(Rows(loader)))).loss.detach())
    assert last < 0.8 * first, (first, last)
    print(f"learnt: the loss went from {first:.3f} to {last:.3f}")


if __name__ == "__main__":
    main()
