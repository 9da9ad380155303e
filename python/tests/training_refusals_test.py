"""What a user may get wrong with a user's own model, told by name."""
import json
import os
import pathlib

import penstock
from entry import main
from own_model import NET, Case, needs_torch, run_train


class Refusals(Case):
    """What a user may get wrong, told by name."""

    @needs_torch
    def test_of_a_name_that_leads_nowhere(self):
        for named, words in (
                ("Net", "FILE.py:NAME"), ("net.txt:Net", "FILE.py:NAME"),
                ("gone.py:Net", "there is no file 'gone.py'"),
                ("net.py:Nett", "did you mean 'Net'?"),
                ("net.py:torch", "the model is a module"),
                ("other.py:Other", "is not a torch.nn.Module"),
                ("other.py:made", "the function returned a int")):
            self.write("other.py", "class Other: pass\ndef made(): return 3\n")
            with self.subTest(named), self.refused(
                    "request", "model.class", words):
                self.train(self.job(named))

    @needs_torch
    def test_of_a_file_that_cannot_be_imported(self):
        self.write("broken.py", "import torch\nimport nowhere_to_be_found\n")
        with self.refused("request", "model.class", "nowhere_to_be_found",
                          "line 2"):
            self.train(self.job("broken.py:Net"))
        self.write("syntax.py", "class Net(\n")
        with self.refused("request", "model.class", "SyntaxError"):
            self.train(self.job("syntax.py:Net"))

    @needs_torch
    def test_of_a_constructor(self):
        self.write("net.py", NET.replace("kind, width=8", "kinds, width=8"))
        with self.refused("request", "model.arguments", "'kinds'", "kind"):
            self.train(self.job())
        self.write("other.py", NET.replace("super().__init__()",
                                           "super().__init__(); 1 / 0"))
        with self.refused("request", "model.raised", "ZeroDivisionError",
                          "other.py"):
            self.train(self.job("other.py:Net"))
        with self.refused("request", "model.arguments", "widht",
                          "did you mean 'width'?"):
            self.train(self.job("other.py:Net",
                                model={"arguments": {"widht": 3}}))

    def returning(self, text, code, *words, error="request", **model):
        name = f"r{abs(hash(text))}.py"
        self.write(name, f"""
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 3)
    def forward(self, x, y, kind):
        return {text}
""")
        with self.subTest(text), self.refused(error, code, *words):
            self.train(self.job(f"{name}:Net", model=model))

    @needs_torch
    def test_of_what_forward_returns(self):
        none = {"target": None}
        self.returning("self.layer(x)", "model.loss", "shape [16, 3]",
                       "one number", **none)
        self.returning("None", "model.loss", "a NoneType", **none)
        self.returning("y.mean()", "model.loss", "no trainable weight", **none)
        self.returning("kind.sum()", "model.loss", "int64", **none)
        self.returning("self.layer(x)", "model.loss", "[16, 3]", "'y' [16]")
        self.returning("3.0", "model.loss", "a float", "predictions")
        self.returning("kind", "model.loss", "int64")
        self.returning("self.layer(x)[:, :2]", "model.loss", "2 classes",
                       "'kind' has 3", target="kind")
        self.returning("self.layer(x)", "model.loss", "needs classes",
                       loss="cross_entropy")
        self.returning("self.layer(x) @ self.layer(x)", "model.raised",
                       "RuntimeError")
        self.returning("(self.layer(x) * float('inf')).mean()", "train.not_finite",
                       error="transform", **none)

    @needs_torch
    def test_of_what_forward_takes(self):
        self.write("net.py", NET.replace("def forward(self, x, kind):",
                                         "def forward(self, x, sort):"))
        with self.refused("request", "model.forward", "'sort'", "x, kind"):
            self.train(self.job())

    @needs_torch
    def test_of_a_module_without_weights_or_with_odd_ones(self):
        self.write("net.py", """
import torch
class Net(torch.nn.Module):
    def forward(self, x): return x[:, 0]
class Odd(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(2))
        self.register_buffer("c", torch.ones(2, dtype=torch.complex64))
    def forward(self, x): return x @ self.w
class Extra(Net):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(2))
    def get_extra_state(self): return {1, 2}
    def set_extra_state(self, state): pass
    def forward(self, x): return x @ self.w
class Own(Extra):
    def configure_optimizers(self): return 3
""")
        with self.refused("request", "model.class", "no parameters to train"):
            self.train(self.job())
        with self.refused("request", "model.state", "complex64"):
            self.train(self.job("net.py:Odd"))
        with self.refused("request", "model.state", "a set"):
            self.train(self.job("net.py:Extra"))
        with self.refused("request", "model.class", "configure_optimizers"):
            self.train(self.job("net.py:Own"))

    @needs_torch
    def test_of_a_target_that_no_batch_has(self):
        job = self.job(model={"target": "y"},
                       fields={"y": {"time": {"column": "y",
                                              "parts": ["hour"]}}})
        job["fields"]["list"] = {"array": {"column": "kind"}}
        with self.refused("request", "settings.value", "model.target"):
            self.train(self.job(model={"target": "z"}))

    def test_of_a_python_without_torch(self):
        folder = self.folder / "no_torch"
        folder.mkdir()
        (folder / "torch.py").write_text("raise ImportError('none here')\n")
        self.write("job.json", json.dumps(self.job()))
        done = run_train("job.json", "--json", env={"PYTHONPATH": os.pathsep.join(
            [str(folder), str(pathlib.Path(penstock.__file__).parent.parent),
             os.environ.get("PYTHONPATH", "")])})
        error = json.loads(done.stdout)["error"]
        self.assertEqual((done.returncode, error["code"]), (2, "model.no_torch"))
        self.assertIn("pip install torch", error["next"])

    def test_of_settings_that_the_job_cannot_have(self):
        for sections, words in (
                ({"model": {"loss": "mse", "target": None}}, "model.loss"),
                ({"model": {"loss": "square"}}, "square"),
                ({"model": {"arguments": [1]}}, "model.arguments"),
                ({"train": {"precision": "float8"}}, "train.precision"),
                ({"train": {"accumulate": 0}}, "train.accumulate"),
                ({"train": {"ema": 1}}, "train.ema"),
                ({"loader": {"val_batch_size": 0}}, "loader.val_batch_size")):
            with self.subTest(words), self.refused("request", "settings.value",
                                                   words):
                self.train(self.job(**sections))


if __name__ == "__main__":
    main()
