"""The example of text, in short: its files, a model from nothing, and adapters
on chats that its own template renders."""
import json
import pathlib
import shutil
import subprocess
import sys
import unittest

from penstock_cli import Case, has_part, read_safetensors

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "text"


class TextExample(Case):
    def setUp(self):
        super().setUp()
        for path in EXAMPLE.iterdir():
            if path.is_file():
                shutil.copy(path, self.folder)
        for script, count in (("make_corpus.py", 300), ("make_chats.py", 120)):
            name = script[5:-3] + ".jsonl"
            subprocess.run([sys.executable, "-B", script, name, str(count)],
                           cwd=self.folder, check=True, capture_output=True)
        self.set = ["--set", "loader.cache_dir=stores", "--set", "device=cpu"]

    def test_its_corpus_is_prepared(self):
        done = self.succeed("prepare", "job.json", "--json", *self.set).json()
        self.assertEqual(done["documents"], 300)
        self.assertGreater(done["packing"]["efficiency"], 0.9)

    def test_its_chats_are_rendered_and_the_assistant_is_the_target(self):
        done = self.succeed("prepare", "lora.json", "--json", *self.set).json()
        found = done["statistics"]["tokens"]
        chats = [json.loads(line)["messages"] for line in
                 (self.folder / "chats.jsonl").read_text().splitlines()]
        self.assertEqual(found["documents"], len(chats))
        # The answer's bytes, and <|im_end|>.
        self.assertEqual(found["targets"], sum(
            len(answer["content"].encode()) + 1 for _, answer in chats))

    @unittest.skipUnless(has_part("trainer"), "the trainer was not built")
    def test_a_model_from_nothing_and_adapters_on_chats(self):
        short = ["--json", *self.set, "--set", "train.threads=1"]
        report = self.succeed(
            "train", "pretrain.json", "--output", "tiny", *short,
            "--set", "train.epochs=2", "--set", "train.lr=0.005").json()
        losses = [epoch["train_loss"] for epoch in report["epochs"]]
        self.assertLess(losses[-1], losses[0])
        base = (self.folder / "tiny" / "model.safetensors").read_bytes()
        report = self.succeed("train", "lora.json", "--output", "adapter",
                              *short).json()
        losses = [epoch["train_loss"] for epoch in report["epochs"]]
        self.assertLess(losses[-1], losses[0])
        self.assertEqual(
            (self.folder / "tiny" / "model.safetensors").read_bytes(), base)
        config = json.loads(
            (self.folder / "adapter" / "adapter_config.json").read_text())
        self.assertEqual((config["peft_type"], config["task_type"],
                          config["r"], config["lora_alpha"]),
                         ("LORA", "CAUSAL_LM", 8, 16))
        tensors = read_safetensors(
            self.folder / "adapter" / "adapter_model.safetensors")
        # Two of each of the seven linear layers of both decoder layers.
        self.assertEqual(len(tensors), 2 * 7 * 2)
        self.assertIn("base_model.model.model.layers.0.self_attn.q_proj."
                      "lora_A.weight", tensors)


if __name__ == "__main__":
    unittest.main()
