"""Weights of four bits: `penstock quantize`, adapters that are trained beside
them, and `penstock merge`."""
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import unittest

from penstock_cli import Case, floats, has_part, read_safetensors

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "text"
LAYER = "model.layers.0.mlp.up_proj.weight"
PARTS = {"", ".absmax", ".quant_map", ".nested_absmax", ".nested_quant_map",
         ".quant_state.bitsandbytes__nf4"}


def shapes_in(path):
    return {name: (dtype, shape)
            for name, (dtype, shape, _) in read_safetensors(path).items()}


@unittest.skipUnless(has_part("trainer"), "the trainer was not built")
class Quantize(Case):
    def setUp(self):
        super().setUp()
        for path in EXAMPLE.iterdir():
            if path.is_file():
                shutil.copy(path, self.folder)
        for script, count in (("make_corpus.py", 100), ("make_chats.py", 60)):
            name = script[5:-3] + ".jsonl"
            subprocess.run([sys.executable, "-B", script, name, str(count)],
                           cwd=self.folder, check=True, capture_output=True)
        self.set = ["--json", "--set", "loader.cache_dir=stores",
                    "--set", "device=cpu", "--set", "train.threads=1"]
        self.succeed("train", "pretrain.json", "--output", "tiny",
                     "--set", "train.epochs=1", *self.set)

    def losses(self, *arguments):
        report = self.succeed("train", "lora.json", "--set", "train.epochs=1",
                              *self.set, *arguments).json()
        return [epoch["train_loss"] for epoch in report["epochs"]], report

    def test_a_model_is_quantised_trained_and_merged(self):
        done = self.succeed("quantize", "tiny", "--out", "tiny4",
                            "--json").json()
        self.assertEqual(done["layers"], 2 * 7)
        # Of float32; small layers have few scales for the 1 KiB of their map.
        self.assertLess(done["bytes_after"], done["bytes_before"] / 3)
        whole = shapes_in(self.folder / "tiny" / "model.safetensors")
        small = shapes_in(self.folder / "tiny4" / "model.safetensors")
        self.assertEqual({name for name in small if name.startswith(LAYER)},
                         {LAYER + part for part in PARTS})
        rows, width = whole[LAYER][1]
        self.assertEqual(small[LAYER], ("U8", [rows * width // 2, 1]))
        self.assertEqual(small["model.norm.weight"], whole["model.norm.weight"])
        config = json.loads((self.folder / "tiny4/config.json").read_text())
        self.assertEqual(
            (config["quantization_config"]["quant_method"],
             config["quantization_config"]["bnb_4bit_quant_type"]),
            ("bitsandbytes", "nf4"))

        # The same numbers, whether the folder has four bits or gets them.
        stored, _ = self.losses("--set", "model.path=tiny4")
        quantised, report = self.losses(
            "--set", "model.path=tiny", "--set", "model.quantize=nf4",
            "--output", "adapter")
        self.assertEqual(stored, quantised)
        self.assertEqual(report["model"]["quantized"]["layers"], 2 * 7)
        adapter = shapes_in(self.folder / "adapter/adapter_model.safetensors")
        self.assertTrue(all(".lora_" in name for name in adapter))

        done = self.succeed("merge", "runs/latest", "--out", "merged",
                            "--json").json()
        self.assertEqual(done["layers"], 2 * 7)
        merged = shapes_in(self.folder / "merged" / "model.safetensors")
        self.assertEqual(merged, {name: ("BF16", shape)
                                  for name, (_, shape) in whole.items()})
        config = json.loads((self.folder / "merged/config.json").read_text())
        self.assertNotIn("quantization_config", config)
        self.assertEqual(config["dtype"], "bfloat16")

    def test_a_merged_weight_is_the_sum(self):
        self.losses("--set", "model.path=tiny", "--output", "adapter")
        self.succeed("merge", "adapter", "--out", "merged", "--dtype",
                     "float16")
        base = read_safetensors(self.folder / "tiny/model.safetensors")
        adapter = read_safetensors(
            self.folder / "adapter/adapter_model.safetensors")
        merged = read_safetensors(self.folder / "merged/model.safetensors")
        config = json.loads(
            (self.folder / "adapter/adapter_config.json").read_text())
        rank, scale = config["r"], config["lora_alpha"] / config["r"]
        name = "base_model.model." + LAYER.removesuffix(".weight")
        rows, width = base[LAYER][1]
        up = floats(adapter[name + ".lora_B.weight"])
        down = floats(adapter[name + ".lora_A.weight"])
        before = floats(base[LAYER])
        after = [number for (number,) in
                 struct.iter_unpack("<e", merged[LAYER][2])]
        for row, column in ((0, 0), (rows - 1, width - 1), (3, 5)):
            wanted = before[row * width + column] + scale * sum(
                up[row * rank + k] * down[k * width + column]
                for k in range(rank))
            self.assertAlmostEqual(after[row * width + column], wanted,
                                   delta=abs(wanted) * 2**-10 + 1e-7)

    def test_what_cannot_be_done_is_named(self):
        def refused(code, *arguments):
            self.refused(self.run_it(*arguments, "--json"), "request", code)
        self.succeed("quantize", "tiny", "--out", "tiny4", "--single")
        refused("model.out_exists", "quantize", "tiny", "--out", "tiny4")
        refused("model.weights", "quantize", "tiny4", "--out", "again")
        refused("model.config", "quantize", "nowhere", "--out", "again")
        refused("settings.value", "merge", "runs/latest", "--out", "again",
                "--dtype", "float32")
        refused("model.no_adapters", "merge", "runs/latest", "--out", "again")
        refused("predict.no_run", "merge", "nowhere", "--out", "again")
        self.assertFalse((self.folder / "again").exists())
        whole = ["train", "pretrain.json", "--set", "model.config=", "--set",
                 "device=cpu", "--set"]
        refused("model.quantize_needs_lora", *whole, "model.path=tiny4")
        refused("model.quantize_needs_lora", *whole, "model.path=tiny",
                "--set", "model.quantize=nf4")


if __name__ == "__main__":
    unittest.main()
