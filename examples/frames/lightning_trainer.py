#!/usr/bin/env python3
"""Lightning's Trainer. Its checkpoints hold the loader's state by themselves,
since the loader has state_dict() and load_state_dict()."""
import logging
import pathlib
import tempfile

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

import penstock
from network import Network
from positions import arguments, assert_resumed, make_job, rows_of


class Module(lightning.LightningModule):
    def __init__(self, job):
        super().__init__()
        self.job, self.rows, self.network = job, [], Network()

    def train_dataloader(self):
        # Here, not before fit(): with several ranks, the process group is
        # there by now, and the loader takes its rank from it.
        return penstock.open(self.job)

    def training_step(self, batch, _):
        # Lightning has called batch.to(device): a dict of tensors.
        self.rows.append(rows_of(batch))
        return self.network(**batch)["loss"]

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=2e-3)


def train(job, args, folder, checkpoint=None):
    module = Module(job)
    save = ModelCheckpoint(folder, "{step}", every_n_train_steps=args.stop,
                           save_top_k=-1)
    trainer = lightning.Trainer(
        max_steps=args.steps, callbacks=[save], devices=1, logger=False,
        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(module, ckpt_path=checkpoint)
    return module.rows, module.state_dict()


def main():
    args = arguments(__doc__)
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    job = make_job(args.rows)
    with tempfile.TemporaryDirectory() as folder:
        whole, weights = train(job, args, folder)
        saved = pathlib.Path(folder) / f"step={args.stop}.ckpt"
        rest, resumed = train(job, args, folder, saved)
    assert_resumed(args.stop, whole, rest, weights, resumed)


if __name__ == "__main__":
    main()
