"""Random numbers: the same for any number of workers, and after a resume."""
import random
import sys
import unittest
from unittest import mock

import numpy as np

import dataloader_sets as sets
from dataloader_case import Case, needs_torch, numbers, torch
from dataloader_sets import Drawn
from entry import main


def drawn(loader):
    """index -> numbers that were drawn for it."""
    return {int(i): tuple(np.asarray(row).tolist())
            for ids, rows, _ in loader for i, row in zip(ids, rows)}


class ByBatch(Case):
    """The default: generators are seeded by epoch and batch."""

    def test_any_number_of_workers_draws_the_same(self):
        runs = [drawn(self.loader(Drawn(50), batch_size=16, shuffle=True,
                                  seed=4, num_workers=workers))
                for workers in (1, 2, 3)]
        self.assertEqual(len(runs[0]), 50)
        self.assertEqual(runs[0], runs[1])
        self.assertEqual(runs[0], runs[2])

    def test_batches_of_a_batch_sampler_are_drawn_the_same_too(self):
        batches = [list(range(0, 17)), list(range(17, 50)), [50]]
        runs = [drawn(self.loader(Drawn(51), batch_sampler=batches, seed=4,
                                  num_workers=workers))
                for workers in (1, 2, 4)]
        self.assertEqual(len(runs[0]), 51)
        self.assertEqual(runs[0], runs[1])
        self.assertEqual(runs[0], runs[2])

    def test_items_epochs_and_seeds_draw_differently(self):
        seen = set()
        for seed in (1, 2):
            loader = self.loader(Drawn(30), batch_size=8, seed=seed,
                                 num_workers=2)
            for _ in range(2):
                seen |= set(drawn(loader).values())
        self.assertEqual(len(seen), 120)

    def test_a_resume_in_the_middle_draws_the_same(self):
        def loader():
            return self.loader(Drawn(40), batch_size=4, shuffle=True, seed=2,
                               num_workers=2)
        whole = drawn(loader())
        first, loop = loader(), None
        loop = iter(first)
        begun = drawn(next(loop) for _ in range(3))
        second = loader()
        second.load_state_dict(first.state_dict())
        self.assertEqual({**begun, **drawn(second)}, whole)

    def test_collate_fn_draws_the_same_whoever_runs_it(self):
        def run(workers):
            return list(self.loader(
                sets.Numbers(20), batch_size=5, num_workers=workers, seed=1,
                collate_fn=sets.draws))
        self.assertEqual(run(1), run(2))

    def test_the_generators_of_the_loop_are_left_alone(self):
        random.seed(5), np.random.seed(5)
        expected = random.random(), np.random.random()
        random.seed(5), np.random.seed(5)
        for workers in (0, 2):
            list(self.loader(sets.Numbers(20), shuffle=True, batch_size=4,
                             num_workers=workers))
        self.assertEqual((random.random(), np.random.random()), expected)


class WithoutASeed(Case):
    """Where torch, whose generator would be asked, is not there."""

    def test_each_loader_has_an_order_of_its_own(self):
        with mock.patch.dict(sys.modules):
            sys.modules.pop("torch", None)
            loaders = [self.loader(sets.Numbers(50), shuffle=True,
                                   batch_size=50) for _ in range(3)]
            orders = {tuple(numbers(next(iter(loader))))
                      for loader in loaders}
        self.assertEqual(len(orders), 3)
        first, second, third = (loader.seed for loader in loaders)
        self.assertEqual((second, third), (first + 1, first + 2))


class ByWorker(Case):
    """As torch: once per worker, batches dealt out in turn."""

    def test_batches_are_dealt_out_in_turn(self):
        loader = self.loader(sets.Who(16), batch_size=2, num_workers=2,
                             seeds="worker")
        self.assertEqual([set(numbers(who)) for _, _, who in loader],
                         [{0}, {1}] * 4)

    def test_the_same_seed_draws_the_same_again(self):
        def run(seed):
            return drawn(self.loader(Drawn(24), batch_size=4, num_workers=2,
                                     seeds="worker", seed=seed))
        self.assertEqual(run(3), run(3))
        self.assertNotEqual(run(3), run(4))

    def test_worker_init_fn_seeds_for_good(self):
        loader = self.loader(Drawn(8), batch_size=4, num_workers=2,
                             worker_init_fn=sets.seed_all)
        rows = list(drawn(loader).values())
        self.assertEqual([row[:2] for row in rows[:4]],
                         [row[:2] for row in rows[4:]])
        self.assertEqual(len(set(rows[:4])), 4)

    def test_each_epoch_seeds_the_workers_anew(self):
        loader = self.loader(Drawn(8), batch_size=4, num_workers=2,
                             seeds="worker")
        self.assertFalse(set(drawn(loader).values())
                         & set(drawn(loader).values()))


@needs_torch
class WithTorch(Case):
    def test_any_number_of_workers_draws_the_same_for_a_subset(self):
        from torch.utils.data import Subset, random_split

        part, _ = random_split(Drawn(50), [40, 10],
                               torch.Generator().manual_seed(1))
        for data in (part, Subset(part, range(30))):
            runs = [drawn(self.loader(data, batch_size=16, shuffle=True,
                                      seed=4, num_workers=workers))
                    for workers in (1, 2)]
            self.assertEqual(len(runs[0]), len(data))
            self.assertEqual(runs[0], runs[1])

    def order(self):
        loader = self.loader(sets.Numbers(50), batch_size=50, shuffle=True)
        return numbers(next(iter(loader)))

    def test_our_order_follows_manual_seed(self):
        orders = []
        for seed in (1, 2, 1):
            torch.manual_seed(seed)
            orders.append(self.order())
        self.assertEqual(orders[0], orders[2])
        self.assertNotEqual(orders[0], orders[1])

    def test_another_loader_has_another_order_and_other_draws(self):
        def run():
            torch.manual_seed(3)
            seen = []
            for _ in range(3):
                loader = self.loader(Drawn(8), batch_size=8, num_workers=1)
                seen.append((self.order(), drawn(loader)[0]))
            return seen
        orders, draws = zip(*run())
        self.assertEqual((len(set(map(tuple, orders))), len(set(draws))),
                         (3, 3))
        self.assertEqual(run(), run())

    def test_a_loader_draws_from_torch_once(self):
        loader = self.loader(sets.Numbers(6), shuffle=True)
        before = torch.get_rng_state()
        self.assertEqual((len(loader), len(loader.sampler)), (6, 6))
        self.assertTrue(torch.equal(before, torch.get_rng_state()))
        list(loader)
        between = torch.get_rng_state()
        self.assertFalse(torch.equal(before, between))
        list(loader), loader.state_dict()
        self.assertTrue(torch.equal(between, torch.get_rng_state()))


if __name__ == "__main__":
    main()
