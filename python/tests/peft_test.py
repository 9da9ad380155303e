"""The adapters that `penstock train` leaves, in PEFT: it loads them, adds what
they say, and has the loss that the run reported."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from entry import main
from frames import needs

PROGRAM = os.environ.get("PENSTOCK", "penstock")
EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "text"


def trains():
    """Whether the program is there, with its trainer."""
    try:
        done = subprocess.run([PROGRAM, "doctor", "--parts", "--json"],
                              capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return any(part["part"] == "trainer" and part["there"]
               for part in json.loads(done.stdout)["parts"])


@needs("peft")
@unittest.skipUnless(trains(), "PENSTOCK names no program with the trainer")
class Adapters(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="penstock-py-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        for path in EXAMPLE.iterdir():
            if path.is_file():
                shutil.copy(path, cls.folder)
        cls.call(sys.executable, "-B", "make_corpus.py", "corpus.jsonl", "200")
        cls.call(sys.executable, "-B", "make_chats.py", "chats.jsonl", "100")
        cls.train("pretrain.json", "tiny", "train.epochs=1")
        cls.report = cls.train("lora.json", "adapter", "train.epochs=2")

    @classmethod
    def call(cls, *command):
        done = subprocess.run(command, cwd=cls.folder, capture_output=True,
                              text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @classmethod
    def train(cls, job, to, *sets):
        sets = ("device=cpu", "loader.cache_dir=stores", *sets)
        return json.loads(cls.call(
            PROGRAM, "train", job, "--output", to, "--json",
            *sum((("--set", one) for one in sets), ())))

    def loaded(self):
        """The model, and the same with its adapter."""
        import peft
        import transformers

        def base():
            return transformers.AutoModelForCausalLM.from_pretrained(
                self.folder / "tiny", attn_implementation="sdpa").eval()
        return base(), peft.PeftModel.from_pretrained(
            base(), self.folder / "adapter").eval()

    def test_peft_adds_what_the_files_say(self):
        import torch
        from safetensors.torch import load_file
        base, adapted = self.loaded()
        ids = torch.arange(96).reshape(2, 48) * 5 % 259
        with torch.no_grad():
            before = base(ids).logits
            found = adapted(ids).logits
            config = json.loads(
                (self.folder / "adapter/adapter_config.json").read_text())
            learned = load_file(
                self.folder / "adapter/adapter_model.safetensors")
            scale = config["lora_alpha"] / config["r"]
            for name, weight in base.named_parameters():
                name = f"base_model.model.{name.removesuffix('.weight')}"
                if (a := learned.pop(f"{name}.lora_A.weight", None)) is None:
                    continue
                weight += scale * learned.pop(f"{name}.lora_B.weight") @ a
            expected = base(ids).logits
        self.assertFalse(learned)
        self.assertGreater((found - before).abs().max(), 0.01)
        self.assertLess((found - expected).abs().max(), 1e-4)

    def test_it_has_the_loss_of_the_run(self):
        import torch
        import penstock
        _, adapted = self.loaded()
        job = json.loads("\n".join(
            line for line in (self.folder / "lora.json").read_text()
            .splitlines() if not line.strip().startswith("//")))
        job["source"]["path"] = str(self.folder / "chats.jsonl")
        job["fields"]["tokens"]["tokens"]["tokenizer"] = str(
            self.folder / "tokenizer.json")
        del job["model"], job["train"]
        job["device"] = "cpu"
        total, tokens = 0.0, 0
        with penstock.open(job, side="val") as loader, torch.no_grad():
            for batch in loader:
                of = batch.torch()
                documents, size = of["document_ids"], of["input_ids"].shape[1]
                mask = documents[:, None, :, None] == documents[:, None, None]
                mask &= torch.ones(size, size, dtype=torch.bool).tril()
                logits = adapted(input_ids=of["input_ids"],
                                 position_ids=of["position_ids"],
                                 attention_mask=mask).logits
                labels = of["labels"][:, 1:].flatten()
                total += torch.nn.functional.cross_entropy(
                    logits[:, :-1].flatten(0, 1), labels, ignore_index=-100,
                    reduction="sum").item()
                tokens += (labels != -100).sum().item()
        self.assertGreater(tokens, 0)
        self.assertAlmostEqual(total / tokens,
                               self.report["epochs"][-1]["val_loss"], delta=1e-4)


if __name__ == "__main__":
    main()
