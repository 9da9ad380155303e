"""penstock.train: a run of a user's own module that continues from any of its steps
has the bits of one that was not stopped; rows that do not count leave no trace.
Some of the 48 pairs of `train.accumulate` and a step are drawn, or as many as
PENSTOCK_TEST_RESUMES says."""
import itertools
import os
import random
import shutil

from entry import main
from own_model import NET, Case, needs_torch, weights_of

RESUMES = int(os.environ.get("PENSTOCK_TEST_RESUMES", "4"))
STEPS = 12


@needs_torch
class Resumes(Case):
    def test_it_goes_on_from_every_step_with_the_same_bits(self):
        pairs = list(itertools.product(range(1, 5), range(1, STEPS + 1)))
        random.Random(11).shuffle(pairs)
        whole = {}
        for accumulate, step in pairs[:RESUMES]:
            with self.subTest(accumulate=accumulate, step=step):
                job = self.job(source={"where": "id < 100"}, train={
                    "accumulate": accumulate, "max_steps": STEPS,
                    "epochs": 9, "checkpoint_every_steps": 1000})
                if accumulate not in whole:
                    whole[accumulate] = weights_of(self.train(job).folder)
                again = self.resume(self.stopped_after(step, job))
                self.assertEqual(weights_of(again.folder), whole[accumulate])
                shutil.rmtree("runs")


@needs_torch
class RowsThatDoNotCount(Case):
    def weights(self, **sections):
        return weights_of(self.train(self.job(**sections)).folder)

    def test_padding_does_not_enter_batch_normalisation(self):
        short = {"source": {"where": "id < 101"}, "split": {"val": 0.0,
                                                            "train": 1.0}}
        self.write("net.py", NET.replace("torch.nn.Dropout(0.1)",
                                         "torch.nn.Identity()"))
        for accumulate in 1, 3:
            with self.subTest(accumulate=accumulate):
                padded, exact = (
                    self.weights(**short, loader={"tail": tail},
                                 train={"accumulate": accumulate})
                    for tail in ("pad", "exact"))
                self.assertEqual(padded, exact)

    def test_masked_rows_in_the_middle_do_not_enter_it(self):
        import torch
        from penstock._training.rows import Rows

        ids_of_rows = torch.tensor([4, 5, 6, 8, -1])

        class Made:
            """A batch of five rows of which the second is masked and the last
            is padding."""
            rows, rejected = 5, [{"row": 1, "substitute": None},
                                 {"row": 2, "substitute": 7}]
            ids = ids_of_rows

            @staticmethod
            def torch():
                return {"x": torch.arange(10.).reshape(5, 2),
                        "weight": torch.tensor([1., 0, 1, 1, 0])}

        normalises = torch.nn.Sequential(torch.nn.BatchNorm1d(2))
        found = Rows(torch, normalises).counted(Made)
        self.assertEqual(found["x"][:, 0].tolist(), [0, 4, 6])
        self.assertEqual(found["weight"].tolist(), [1, 1, 1])
        plain = Rows(torch, torch.nn.Linear(2, 2)).counted(Made)
        self.assertEqual(plain["x"].shape, (5, 2))


if __name__ == "__main__":
    main()
