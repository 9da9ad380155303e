"""Settings files of transformers, Axolotl and LLaMA-Factory run unchanged."""
import csv
import json
import pathlib
import random
import shutil
import subprocess
import sys
import unittest

from penstock_cli import Case, has_part

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "text"

# What TrainingArguments.to_json_string() writes, in short.
TRAINING_ARGUMENTS = {
    "output_dir": "out", "per_device_train_batch_size": 16,
    "per_device_eval_batch_size": 64, "num_train_epochs": 3.0,
    "max_steps": -1, "learning_rate": 0.004, "lr_scheduler_type": "linear",
    "lr_scheduler_kwargs": None, "warmup_steps": 0, "warmup_ratio": 0.1,
    "optim": "adamw_torch_fused", "weight_decay": 0.02,
    "adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-08,
    "gradient_accumulation_steps": 1, "max_grad_norm": 0.5,
    "label_smoothing_factor": 0.0, "bf16": False, "fp16": False,
    "gradient_checkpointing": False, "torch_compile": False,
    "logging_strategy": "steps", "logging_steps": 10, "report_to": ["none"],
    "eval_strategy": "epoch", "eval_steps": None, "save_strategy": "epoch",
    "save_steps": 500, "save_total_limit": 2, "load_best_model_at_end": False,
    "metric_for_best_model": None, "greater_is_better": None, "seed": 42,
    "data_seed": None, "dataloader_drop_last": True,
    "dataloader_num_workers": 0, "dataloader_pin_memory": True,
    "remove_unused_columns": True, "push_to_hub": False,
    "hub_token": "<HUB_TOKEN>", "deepspeed": None, "fsdp": [],
    "accelerator_config": {"split_batches": False}, "group_by_length": False}

AXOLOTL = """\
base_model: tiny
adapter: lora
lora_r: 4
lora_alpha: 8
lora_dropout: 0.0
lora_target_modules:
  - q_proj
  - v_proj
load_in_8bit: false
load_in_4bit: false
strict: false

datasets:
  - path: chats.jsonl
    type: chat_template
val_set_size: 0.1
output_dir: ./out

sequence_len: 256
sample_packing: true
pad_to_sequence_len: true

gradient_accumulation_steps: 2
micro_batch_size: 4
max_steps: 3
optimizer: adamw_torch
lr_scheduler: cosine
learning_rate: 0.002
bf16: auto
tf32: false
gradient_checkpointing: true
logging_steps: 1
flash_attention: true
warmup_steps: 1
weight_decay: 0.0
wandb_project: chats
"""

LLAMA_FACTORY = """\
### model
model_name_or_path: tiny
trust_remote_code: false

### method
stage: sft
do_train: true
finetuning_type: lora
lora_rank: 8
lora_target: all
quantization_bit: 4

### dataset
dataset: chats
template: qwen3
cutoff_len: 256
max_samples: 40
overwrite_cache: true
preprocessing_num_workers: 16
dataloader_num_workers: 2

### output
output_dir: out
logging_steps: 10
save_steps: 2
plot_loss: true
overwrite_output_dir: true
report_to: tensorboard

### train
per_device_train_batch_size: 2
gradient_accumulation_steps: 1
learning_rate: 1.0e-4
num_train_epochs: 1.0
lr_scheduler_type: cosine
warmup_ratio: 0.1
bf16: true
ddp_timeout: 180000000
"""


class OtherPrograms(Case):
    def told(self, report):
        """What became of the keys of the manifest, by name."""
        return {entry["key"]: entry for entry in report["manifest"]}

    def train_manifest(self, *arguments):
        return self.succeed("train", *arguments, "--json", "--set",
                            "device=cpu", "--set", "train.threads=1").json()

    @unittest.skipUnless(has_part("csv") and has_part("trainer"),
                         "the parts for CSV or models were not built")
    def test_training_arguments_of_transformers(self):
        draw = random.Random(3)
        with open(self.folder / "rows.csv", "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["a", "b", "kind"])
            for i in range(240):
                rows.writerow([draw.random() + i % 2, draw.random(),
                               "xy"[i % 2]])
        self.write_job({
            "source": "rows.csv", "fields": {"x": ["a", "b"], "y": "kind"},
            "split": {"train": 0.8, "val": 0.2},
            "model": {"kind": "tabular", "target": "y", "width": 8}})
        (self.folder / "training_args.json").write_text(
            json.dumps(TRAINING_ARGUMENTS))
        report = self.train_manifest("job.json", "--manifest",
                                     "training_args.json")
        told = self.told(report)
        self.assertEqual(set(told), set(TRAINING_ARGUMENTS))
        self.assertEqual([key for key, entry in told.items()
                          if not entry["understood"]], [])
        train = report["settings"]["train"]
        self.assertEqual(
            [train[key] for key in ("epochs", "lr", "schedule", "warmup_ratio",
                                    "weight_decay", "clip_norm")],
            [3, 0.004, "linear", 0.1, 0.02, 0.5])
        self.assertEqual(report["settings"]["loader"]["batch_size"], 16)
        self.assertEqual(report["settings"]["loader"]["val_batch_size"], 64)
        self.assertEqual(len(report["epochs"]), 3)
        self.assertTrue((self.folder / "out").is_dir())

    @unittest.skipUnless(has_part("trainer"), "the trainer was not built")
    def test_axolotl_and_llama_factory(self):
        for path in EXAMPLE.iterdir():
            if path.is_file():
                shutil.copy(path, self.folder)
        for script, count in (("make_corpus.py", 60), ("make_chats.py", 60)):
            subprocess.run(
                [sys.executable, "-B", script, script[5:-3] + ".jsonl",
                 str(count)], cwd=self.folder, check=True, capture_output=True)
        self.succeed("train", "pretrain.json", "--output", "tiny", "--set",
                     "device=cpu", "--set", "train.max_steps=1")
        for name in ("tokenizer.json", "tokenizer_config.json",
                     "chat_template.jinja"):
            shutil.copy(self.folder / name, self.folder / "tiny")

        (self.folder / "axolotl.yaml").write_text(AXOLOTL)
        report = self.train_manifest("--manifest", "axolotl.yaml", "--output",
                                     "adapter")
        left = [key for key, entry in self.told(report).items()
                if not entry["understood"]]
        self.assertEqual(left, ["wandb_project"])
        self.assertEqual(report["steps"], 6)  # three updates of two batches
        model = report["settings"]["model"]
        self.assertEqual((model["kind"], model["lora"]["r"]), ("causal_lm", 4))
        self.assertTrue(
            (self.folder / "adapter" / "adapter_config.json").is_file())

        (self.folder / "data").mkdir()
        shutil.copy(self.folder / "chats.jsonl", self.folder / "data")
        (self.folder / "data" / "dataset_info.json").write_text(json.dumps({
            "chats": {"file_name": "chats.jsonl", "formatting": "sharegpt",
                      "columns": {"messages": "messages"}}}))
        (self.folder / "lf.yaml").write_text(LLAMA_FACTORY)
        report = self.train_manifest("--manifest", "lf.yaml")
        told = self.told(report)
        left = [key for key, entry in told.items() if not entry["understood"]]
        self.assertEqual(left, ["template"])
        self.assertEqual(report["settings"]["model"]["lora"]["r"], 8)
        self.assertEqual(report["settings"]["model"]["quantize"], "nf4")
        self.assertGreater(report["model"]["quantized"]["bytes"], 0)
        self.assertEqual(
            report["settings"]["train"]["checkpoint_every_steps"], 2)
        self.assertTrue(report["settings"]["output"]["tensorboard"])

    def test_a_pickle_is_refused_with_what_to_do(self):
        self.good_start()
        (self.folder / "training_args.bin").write_bytes(b"PK\x03\x04data.pkl")
        self.refuse("request", "manifest.value", "to_json_string",
                    arguments=["train", "job.json", "--manifest",
                               "training_args.bin"])


if __name__ == "__main__":
    unittest.main()
