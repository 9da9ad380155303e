"""Every kind of model with every kind of target, in the program as
installed, with the plugins that it loads: what trains, what can be resumed, and
what is refused."""
import csv
import itertools
import json
import pathlib
import random
import re
import shutil
import subprocess
import unittest

from penstock_cli import PROGRAM, Case, has_part, read_safetensors

ROWS = 44
PIXELS = 3 * 16 * 16
TARGETS = {
    "category": {"category": {"column": "class", "unknown": "error"}},
    "multi_hot": {"multi_hot": {"column": "labels", "size": 4,
                                "separator": "|"}},
    "number": {"column": "number"},
    "yes_or_no": {"column": "yes", "dtype": "bool"},
    "one_hot": {"category": {"column": "class", "one_hot": 4}},
    "place": {"columns": ["lat", "lon"]},
    "tokens": {"tokens": {"column": "ids", "max_length": 12, "pack": "none",
                          "vocab_size": 20}}}
# The field that a model reads besides the target, and its settings.
MODELS = {
    "tabular": ({"columns": ["a", "b"]}, {"target": "y", "width": 8,
                                          "depth": 1}),
    "image_classifier": (
        {"array": {"column": "pixels", "shape": [3, 16, 16],
                   "dtype": "uint8"}}, {"image": "x", "target": "y"}),
    "spectrogram_classifier": (
        {"array": {"column": "pixels", "shape": [16, 48]}},
        {"spectrogram": "x", "target": "y", "width": 8, "depth": 2}),
    "set_position": (
        {"json_set": {"column": "heard", "keys": ["lat", "lon", "db"],
                      "max": 3}},
        {"set": "x", "target": "y", "latitude": "lat", "longitude": "lon",
         "strength": "db", "width": 8}),
    "causal_lm": ({"columns": ["a"]}, {"tokens": "y", "config": "conf.json"})}
TRAINS = {("tabular", "category"), ("tabular", "number"),
          ("tabular", "yes_or_no"),
          ("image_classifier", "category"), ("image_classifier", "multi_hot"),
          ("spectrogram_classifier", "category"),
          ("spectrogram_classifier", "multi_hot"),
          ("set_position", "place"), ("causal_lm", "tokens")}
MEASURES = {"category": "val_accuracy", "multi_hot": "val_micro_f1",
            "number": "val_rmse", "yes_or_no": "val_accuracy",
            "place": "val_median_km", "tokens": "val_perplexity"}
DECODER = {"model_type": "llama", "vocab_size": 20, "hidden_size": 16,
           "intermediate_size": 24, "num_hidden_layers": 1,
           "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8,
           "rms_norm_eps": 1e-6, "tie_word_embeddings": True,
           "hidden_act": "silu"}


class ModelJobs(Case):
    """A table with an input and a target for each kind of model."""

    def setUp(self):
        super().setUp()
        draw = random.Random(7)
        with open(self.folder / "rows.csv", "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["a", "b", "class", "labels", "number", "yes", "lat",
                           "lon", "ids", "heard", "pixels"])
            for i in range(ROWS):
                of = i % 3
                heard = [{"lat": 50 + draw.random(), "lon": 8 + draw.random(),
                          "db": 10 * draw.random()} for _ in range(1 + of)]
                rows.writerow([
                    draw.random() + of, draw.random(), "abc"[of],
                    "|".join(["abc"[of], "d"][:1 + i % 2]),
                    of + draw.random(), i % 2, 50 + draw.random(),
                    8 + draw.random(),
                    json.dumps([(i + at) % 20 for at in range(4 + i % 8)]),
                    json.dumps(heard),
                    json.dumps([draw.randrange(80) + 80 * of
                                for _ in range(PIXELS)])])
        (self.folder / "conf.json").write_text(json.dumps(DECODER))

    def model_job(self, kind, target, **train):
        field, settings = MODELS[kind]
        return self.write_job({
            "source": {"kind": "csv", "path": "rows.csv"},
            "fields": {"x": field, "y": TARGETS[target]},
            "split": {"val": 0.25},
            "loader": {"batch_size": 4, "seed": 3, "tail": "drop"},
            "device": "cpu", "model": {"kind": kind, **settings},
            "train": {"epochs": 1, "warmup_steps": 2, "threads": 1, **train},
            "output": {"dir": "runs"}})


@unittest.skipUnless(has_part("csv") and has_part("trainer"),
                     "the parts for CSV or models were not built")
class Models(ModelJobs):
    def test_each_trains_with_its_targets_and_refuses_the_others(self):
        for kind, target in itertools.product(MODELS, TARGETS):
            with self.subTest(kind=kind, target=target):
                self.model_job(kind, target, checkpoint_every_steps=100000)
                answer = self.run_it("train", "job.json", "--json")
                if (kind, target) not in TRAINS:
                    self.assertEqual(answer.code, 2, answer.out + answer.err)
                    error = answer.json()["error"]
                    self.assertEqual(error["kind"], "request")
                    self.assertIn("model", error["where"])
                    continue
                self.assertEqual(answer.code, 0, answer.out + answer.err)
                epoch = answer.json()["epochs"][-1]
                self.assertGreater(epoch["val_loss"], 0)
                self.assertIsInstance(epoch[MEASURES[target]], float)

    def weights(self, run):
        state = json.loads((self.folder / run / "state.json").read_text())
        return read_safetensors(self.folder / run / state["checkpoint"])

    def test_each_can_be_resumed_where_steps_moved_the_weights_together(self):
        for kind, target in sorted(TRAINS):
            if target not in ("category", "place", "tokens"):
                continue
            with self.subTest(kind=kind):
                # 8 steps an epoch, of which four move the weights together.
                self.model_job(kind, target, accumulate=4, epochs=2)
                whole = self.train()
                self.model_job(kind, target, accumulate=4, epochs=2,
                               checkpoint_every_steps=whole["steps"] // 2)
                folder = self.train()["run"]
                state = self.folder / folder / "state.json"
                document = json.loads(state.read_text())
                state.write_text(json.dumps(document["before"]))
                resumed = self.succeed("train", "--resume", folder,
                                       "--json").json()
                self.assertEqual(self.weights(resumed["run"]),
                                 self.weights(whole["run"]))


def torches():
    """The folder that holds torch/, for each PyTorch that there is a trainer
    for, out of the trainers' run paths."""
    found = {}
    parts = pathlib.Path(PROGRAM).resolve().parents[1] / "lib/penstock"
    for part in parts.glob("libpenstock_trainer_*.so"):
        told = subprocess.run(["readelf", "-d", part], text=True, check=False,
                              capture_output=True).stdout
        for folder in re.findall("(?<=[:[])([^:[]*)/torch/lib(?=[]:])", told):
            found[part.stem.rpartition("_")[2]] = folder
    return found


@unittest.skipUnless(shutil.which("readelf") and len(torches()) > 1,
                     "there is one trainer at most: PENSTOCK_TORCH_DIR of CMake "
                     "names the folders of several PyTorch")
class Torches(ModelJobs):
    def test_each_is_used_by_the_trainer_that_was_built_for_it(self):
        for release, folder in torches().items():
            with self.subTest(release):
                parts = self.succeed("doctor", "--parts", "--json",
                                     PENSTOCK_TORCH_DIR=folder).json()["parts"]
                self.assertTrue([part for part in parts
                                 if f"libtorch {release}." in str(part)], parts)

    def test_each_gives_the_losses_of_the_others(self):
        for kind, target in sorted(TRAINS):
            if target not in ("category", "place", "tokens"):
                continue
            self.model_job(kind, target, epochs=2)
            first = None
            for release, folder in sorted(torches().items()):
                report = self.succeed("train", "job.json", "--json",
                                      PENSTOCK_TORCH_DIR=folder).json()
                losses = [epoch[name] for epoch in report["epochs"]
                          for name in ("train_loss", "val_loss")]
                first = first or losses
                with self.subTest(kind=kind, target=target, release=release):
                    for one, other in zip(first, losses, strict=True):
                        self.assertAlmostEqual(one, other, delta=1e-5)


@unittest.skipUnless(has_part("csv") and has_part("trainer"),
                     "the parts for CSV or models were not built")
class NotFinite(Case):
    """33 rows in batches of eight: the last has one, of which batch
    normalisation makes a variance of one value."""

    def write_rows(self):
        with open(self.folder / "rows.csv", "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["x", "class"])
            for i in range(33):
                rows.writerow([json.dumps([i % 3, i % 5, i % 7, 1]),
                               "abc"[i % 3]])
        return self.write_job({
            "source": {"kind": "csv", "path": "rows.csv"},
            "fields": {"x": {"array": {"column": "x", "shape": [4]}},
                       "y": {"category": {"column": "class",
                                          "unknown": "error"}}},
            "split": {"train": 1},
            "loader": {"batch_size": 8, "tail": "exact"}, "device": "cpu",
            "model": {"kind": "spectrogram_classifier", "spectrogram": "x",
                      "target": "y", "width": 8, "depth": 3},
            "train": {"epochs": 2, "threads": 1, "warmup_steps": 0},
            "output": {"dir": "runs"}})

    def test_a_batch_of_one_row_ends_the_run_and_says_where(self):
        self.write_rows()
        self.refuse("transform", "train.not_finite", "epoch 0, step 4",
                    "stage2.bn1", "one value per channel", "loader.tail")
        # What was learned before is kept, and all of it is numbers.
        run = max((self.folder / "runs").iterdir())
        state = json.loads((run / "state.json").read_text())
        self.assertEqual(state["steps_taken"], 4)
        for name, (dtype, _, data) in read_safetensors(
                run / state["checkpoint"]).items():
            if dtype == "F32":
                self.assertNotIn(b"\x00\x00\xc0\x7f", data, name)
        answer = self.succeed("train", "job.json", "--json", "--set",
                              "loader.tail=drop").json()
        self.assertEqual(answer["steps"], 8)

    def test_padding_gives_the_weights_that_a_shorter_batch_gives(self):
        # Batches of 9, 9, 9 and 6 rows, the last with three of padding.
        self.write_rows()
        made = []
        for tail in "exact", "pad":
            run = self.train("--set", "loader.batch_size=9", "--set",
                             f"loader.tail={tail}")["run"]
            state = json.loads((self.folder / run / "state.json").read_text())
            made.append(read_safetensors(self.folder / run /
                                         state["checkpoint"]))
        self.assertEqual(*made)


if __name__ == "__main__":
    unittest.main()
