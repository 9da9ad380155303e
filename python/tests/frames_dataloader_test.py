"""penstock.DataLoader, the drop-in, in frames that were given torch's before:
they take it, every sample comes once per epoch, and their checkpoints resume
it exactly."""
import json
import logging
import pathlib
import tempfile
import unittest
import warnings

import penstock
from entry import main
from frames import needs, versions

SAMPLES, BATCH, EPOCHS = 50, 8, 3
STEPS = 7  # of an epoch
STOPS = (1, STEPS, STEPS + 3, 2 * STEPS)

if versions("torch"):
    import torch

    class Points(torch.utils.data.Dataset):
        def __len__(self):
            return SAMPLES

        def __getitem__(self, i):
            return {"x": torch.full((2,), i / SAMPLES), "i": i}

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.layer = torch.nn.Linear(2, 1)
            self.seen = []

        def forward(self, x, i):
            self.seen.append(i.tolist())
            return {"loss": (self.layer(x) ** 2).mean()}


def epochs_of(seen):
    return [sorted(i for step in seen[begin:begin + STEPS] for i in step)
            for begin in range(0, len(seen), STEPS)]


class Case(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        self.addCleanup(logging.disable, logging.NOTSET)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def loader(self, **named):
        loader = penstock.DataLoader(Points(), BATCH, shuffle=True, seed=5,
                                     **named)
        self.addCleanup(loader.close)
        return loader

    def expected(self):
        """The samples of each step, as a plain loop gets them."""
        loader = self.loader()
        return [batch["i"].tolist() for _ in range(EPOCHS) for batch in loader]

    def assert_whole(self, seen):
        self.assertEqual(seen, self.expected())
        self.assertEqual(epochs_of(seen), EPOCHS * [list(range(SAMPLES))])
        self.assertNotEqual(seen[:STEPS], seen[STEPS:2 * STEPS])


class Lightning(Case):
    def fit(self, loader, stop=None, checkpoint=None):
        import lightning
        from lightning.pytorch.callbacks import ModelCheckpoint

        class Module(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.network = Network()

            def training_step(self, batch, _):
                return self.network(**batch)["loss"]

            def configure_optimizers(self):
                return torch.optim.AdamW(self.parameters())

        module = Module()
        save = ModelCheckpoint(self.folder, "{step}", save_top_k=-1,
                               every_n_train_steps=stop or 10**6)
        lightning.Trainer(
            accelerator="cpu", max_epochs=EPOCHS, callbacks=[save],
            logger=False, enable_progress_bar=False,
            enable_model_summary=False).fit(module, loader,
                                            ckpt_path=checkpoint)
        return module.network.seen

    @needs("lightning")
    def test_every_sample_comes_once_per_epoch_and_its_checkpoint_resumes(self):
        tried = [(stop, {}) for stop in STOPS] + [
            (STEPS, {"num_workers": 2}),
            (STEPS + 3, {"num_workers": 1, "persistent_workers": True})]
        for stop, named in tried:
            with self.subTest(stop=stop, **named):
                seen = self.fit(self.loader(**named), stop)
                self.assert_whole(seen)
                checkpoint = self.folder / f"step={stop}.ckpt"
                rest = self.fit(self.loader(**named), checkpoint=checkpoint)
                self.assertEqual(rest, seen[stop:])
                checkpoint.unlink()

    @needs("lightning")
    def test_a_generator_is_resumed_too(self):
        def loader():
            return penstock.DataLoader(
                Points(), BATCH, shuffle=True,
                generator=torch.Generator().manual_seed(3))
        seen = self.fit(loader(), STEPS + 3)
        self.assertEqual(epochs_of(seen), EPOCHS * [list(range(SAMPLES))])
        rest = self.fit(loader(), checkpoint=(
            self.folder / f"step={STEPS + 3}.ckpt"))
        self.assertEqual(rest, seen[STEPS + 3:])

    @needs("lightning")
    def test_a_loader_of_rows_resumes_epochs_too(self):
        table = f"sqlite:{self.folder}/positions.sqlite"
        from positions import run_program

        run_program("demo", "positions", "--rows", SAMPLES, "--to", table)

        def loader():
            made = penstock.Loader(
                table + "#measurements",
                {"x": ["tx_lat", "tx_lon"],
                 "i": {"columns": ["id"], "dtype": "int64"}},
                BATCH, shuffle=True, device="cpu")
            self.addCleanup(made.close)
            return made

        for stop in STOPS:
            with self.subTest(stop=stop):
                seen = self.fit(loader(), stop)
                self.assertEqual(len(seen), EPOCHS * STEPS)
                rest = self.fit(loader(), checkpoint=(
                    self.folder / f"step={stop}.ckpt"))
                self.assertEqual(rest, seen[stop:])


class Transformers(Case):
    def fit(self, loader, stop=None, checkpoint=None, own_state=False):
        import transformers
        from transformers.trainer_callback import ExportableState

        class LoaderState(transformers.TrainerCallback, ExportableState):
            def state(self):
                return {"args": {}, "attributes": loader.state_dict()}

            def on_train_begin(self, args, state, control, **others):
                loader.load_state_dict(
                    state.stateful_callbacks["LoaderState"]["attributes"])

        class Trainer(transformers.Trainer):
            def get_train_dataloader(self):
                return loader

        network = Network()
        trainer = Trainer(network, transformers.TrainingArguments(
            str(self.folder), num_train_epochs=EPOCHS, report_to="none",
            use_cpu=True, disable_tqdm=True, logging_strategy="no",
            save_strategy="steps" if stop else "no", save_steps=stop or 10**6,
            ignore_data_skip=own_state),
            callbacks=[LoaderState()] if own_state else [])
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train(resume_from_checkpoint=checkpoint)
        return network.seen

    @needs("transformers")
    def test_every_sample_comes_once_per_epoch_and_it_resumes_both_ways(self):
        tried = [(stop, 0) for stop in STOPS] + [(STEPS + 3, 2)]
        for own_state in (False, True):
            for stop, workers in tried:
                with self.subTest(own_state=own_state, stop=stop,
                                  workers=workers):
                    self.resumes(own_state, stop, workers)

    def resumes(self, own_state, stop, workers):
        seen = self.fit(self.loader(num_workers=workers), stop,
                        own_state=own_state)
        self.assert_whole(seen)
        rest = self.fit(self.loader(num_workers=workers), own_state=own_state,
                        checkpoint=f"{self.folder}/checkpoint-{stop}")
        self.assertEqual(rest, seen[stop:])


class Accelerate(Case):
    @needs("accelerate")
    def test_it_is_handed_back_and_its_checkpoint_resumes(self):
        import accelerate

        expected = self.expected()
        for stop in STOPS:
            with self.subTest(stop=stop):
                parts = []
                for _ in range(2):
                    keeper = accelerate.Accelerator(cpu=True)
                    mine = self.loader(num_workers=2)
                    given = keeper.prepare(mine)
                    self.assertIs(given, mine)
                    keeper.register_for_checkpointing(given)
                    parts.append((keeper, given))
                (keeper, loader), (other, resumed) = parts
                self.assertEqual(self.taken(loader, stop), expected[:stop])
                keeper.save_state(str(self.folder))
                other.load_state(str(self.folder))
                self.assertEqual(
                    self.taken(resumed, len(expected) - stop), expected[stop:])

    @staticmethod
    def taken(loader, steps):
        taken = []
        while len(taken) < steps:
            for batch in loader:
                taken.append(batch["i"].tolist())
                if len(taken) == steps:
                    break
        return taken


if __name__ == "__main__":
    main()
