#!/usr/bin/env python3
"""Transformers' Trainer. A callback puts the loader's state into the
checkpoint's trainer_state.json, and takes it from there."""
import tempfile

import transformers
from transformers.trainer_callback import ExportableState

import penstock
from network import Network
from positions import arguments, assert_resumed, make_job, rows_of


class Tensors:
    """The loader's batches as the dicts of tensors that Trainer wants."""

    def __init__(self, loader):
        self.loader = loader

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        return (batch.torch() for batch in self.loader)


class LoaderState(transformers.TrainerCallback, ExportableState):
    def __init__(self, loader):
        self.loader = loader

    def state(self):
        return {"args": {}, "attributes": self.loader.state_dict()}

    def on_train_begin(self, args, state, control, **others):
        saved = state.stateful_callbacks["LoaderState"]
        self.loader.load_state_dict(saved["attributes"])


class Trainer(transformers.Trainer):
    def __init__(self, model, args, loader):
        super().__init__(model, args, callbacks=[LoaderState(loader)])
        self.loader, self.rows = loader, []

    def get_train_dataloader(self):
        return Tensors(self.loader)

    def compute_loss(self, model, inputs, *others, **named):
        self.rows.append(rows_of(inputs))
        return super().compute_loss(model, inputs, *others, **named)


def train(job, args, folder, checkpoint=None):
    model = Network()
    settings = transformers.TrainingArguments(
        folder, max_steps=args.steps, learning_rate=2e-3, save_steps=args.stop,
        save_strategy="no" if checkpoint else "steps", report_to="none",
        disable_tqdm=True, logging_strategy="no",
        ignore_data_skip=True)  # the loader does it, at once
    trainer = Trainer(model, settings, penstock.open(job))
    trainer.train(resume_from_checkpoint=checkpoint)
    return trainer.rows, model.state_dict()


def main():
    args = arguments(__doc__)
    job = make_job(args.rows)
    with tempfile.TemporaryDirectory() as folder:
        whole, weights = train(job, args, folder)
        saved = f"{folder}/checkpoint-{args.stop}"
        rest, resumed = train(job, args, folder, saved)
    assert_resumed(args.stop, whole, rest, weights, resumed)


if __name__ == "__main__":
    main()
