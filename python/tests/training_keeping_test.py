"""penstock.train: which weights of a module of your own a run keeps, when it
ends early, and what it measures of the side test."""
import json
import pathlib
import struct

from entry import main
from own_model import Case, needs_torch

SPLIT = {"train": 0.4, "val": 0.4, "test": 0.2}

# Each step moves the one weight by a unit at most; the loss is least at 3.
WALK = """
import torch

class Walk(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.at = torch.nn.Parameter(torch.zeros(1))
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x):
        if self.training:
            self.seen += 1
            return -self.at.sum()
        return {"loss": (self.at - 3).abs().sum(), "mae": self.at.abs().sum(),
                "accuracy": self.at.sum() / 100}
"""


def tensors_of(path):
    """The float32 tensors of a safetensors file, by name."""
    raw = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + length])
    header.pop("__metadata__", None)
    data = raw[8 + length:]
    return {name: [number for (number,) in struct.iter_unpack(
        "<f", data[slice(*entry["data_offsets"])])]
        for name, entry in header.items()}


@needs_torch
class Keeping(Case):
    def walk(self, **train):
        self.write("walk.py", WALK)
        return self.job(
            "walk.py:Walk", split=SPLIT, loader={"batch_size": 64},
            model={"target": None},
            train={"epochs": 9, "lr": 1.0, "warmup_steps": 0, "clip_norm": 0,
                   "weight_decay": 0, **train})

    def weights(self, run, name="best"):
        return tensors_of(pathlib.Path(run.folder) / "weights"
                          / f"{name}.safetensors")

    def test_the_module_has_the_weights_of_the_best_validation(self):
        run = self.train(self.walk(), output="out")
        losses = [epoch["val_loss"] for epoch in run.report["epochs"]]
        best = losses.index(min(losses))
        self.assertTrue(0 < best < 8, losses)
        self.assertEqual(run.report["best"]["epoch"], best)
        kept = self.weights(run)
        self.assertEqual(set(kept), {"at", "seen"})
        self.assertEqual(kept["at"], run.module.at.tolist())
        self.assertEqual(kept["seen"], [run.report["best"]["step"]])
        self.assertEqual(tensors_of("out/model.safetensors"), kept)
        self.assertAlmostEqual(abs(kept["at"][0] - 3), losses[best], 5)
        self.assertAlmostEqual(run.report["test"]["loss"], losses[best], 5)

    def test_the_last_weights_are_kept_where_the_job_says_so(self):
        run = self.train(self.walk(keep="last"))
        self.assertEqual(self.weights(run, "last")["at"],
                         run.module.at.tolist())
        self.assertEqual(self.weights(run, "last")["seen"],
                         [run.report["steps"]])
        both = self.train(self.walk(keep="both"))
        self.assertEqual(self.weights(both, "last"),
                         self.weights(run, "last"))
        self.assertEqual(self.weights(both)["at"], both.module.at.tolist())

    def test_averaged_weights_are_kept(self):
        run = self.train(self.walk(ema=0.5))
        self.assertEqual(self.weights(run)["at"], run.module.at.tolist())

    def test_a_number_of_the_module_decides(self):
        run = self.train(self.walk(metric="accuracy"))
        self.assertEqual(run.report["best"]["epoch"], 8)
        run = self.train(self.walk(metric="mae"))
        self.assertEqual(run.report["best"]["epoch"], 0)
        with self.refused("request", "train.metric", "loss, mae, accuracy"):
            self.train(self.walk(metric="auc"))
        with self.refused("request", "settings.value", "perplexity"):
            self.train(self.walk(metric="beauty"))

    def test_patience_ends_it_and_the_best_is_that_of_the_whole_run(self):
        whole = self.train(self.walk())
        short = self.train(self.walk(patience=2))
        best = whole.report["best"]
        self.assertEqual(short.report["best"], best)
        self.assertEqual(len(short.report["epochs"]), best["epoch"] + 3)
        rest = self.resume(short.folder, train__patience=None)
        self.assertEqual(rest.report["best"], best)
        self.assertEqual(self.weights(rest), self.weights(whole))
        self.assertEqual(rest.module.at.tolist(), whole.module.at.tolist())
        self.assertEqual(rest.report["test"], whole.report["test"])


@needs_torch
class Sides(Case):
    def test_a_loader_of_the_side_test_has_its_rows_alone(self):
        import penstock
        ids = {}
        for side in ("train", "val", "test"):
            loader = penstock.open(self.job(split=SPLIT), side=side,
                                   loader__tail="exact")
            ids[side] = [number for _, batch in
                         zip(range(len(loader)), loader)
                         for number in batch.ids.tolist()]
            loader.close()
        self.assertEqual(sorted(sum(ids.values(), [])), list(range(200)))
        self.assertGreater(len(ids["test"]), 20)
        with self.refused("request", "loader.side", '"test"'):
            penstock.open(self.job(), side="other")


if __name__ == "__main__":
    main()
