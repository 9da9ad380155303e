"""Side by side with torch's own DataLoader: the same batches."""
import unittest

from dataloader_case import Case, needs_torch, numbers, torch
from entry import main

if torch is not None:
    from torch.utils.data import (ChainDataset, ConcatDataset, StackDataset,
                                  RandomSampler, Subset, TensorDataset,
                                  WeightedRandomSampler, random_split)
    from torch.utils.data import DataLoader as TorchLoader
    from torch.utils.data.distributed import DistributedSampler

    import dataloader_torch_sets as sets
    from dataloader_torch_sets import Draws, Infos, Shares, Tensors


@needs_torch
class SideBySide(Case):
    def assert_as_torch(self, data, workers=(0, 1), **named):
        """The same batches as torch's loader, types and values."""
        for count in workers:
            with self.subTest(workers=count, **named):
                # torch's workers are forked here: they start quickly.
                torch.manual_seed(11)
                theirs = list(TorchLoader(
                    data, num_workers=count, **named,
                    **{"multiprocessing_context": "fork"} if count else {}))
                torch.manual_seed(11)
                ours = list(self.loader(data, num_workers=count, **named))
                self.assert_same(ours, theirs)

    def test_plain_batches(self):
        self.assert_as_torch(Tensors(10), batch_size=4)
        self.assert_as_torch(Tensors(10), (0, 2), batch_size=4, drop_last=True)

    def test_items_without_batches(self):
        self.assert_as_torch(Tensors(3), batch_size=None)

    def test_samplers_of_torch(self):
        self.assert_as_torch(
            Tensors(10), batch_size=3,
            sampler=torch.utils.data.RandomSampler(range(10)))
        self.assert_as_torch(
            Tensors(10), batch_size=4,
            sampler=WeightedRandomSampler([1.0] * 10, 7))
        self.assert_as_torch(
            Tensors(10), batch_size=2,
            sampler=DistributedSampler(range(10), num_replicas=2, rank=1))
        self.assert_as_torch(
            Tensors(10), batch_sampler=torch.utils.data.BatchSampler(
                range(9, -1, -1), 3, False))

    def test_a_generator_shuffles_as_torchs(self):
        def loader(maker):
            return maker(Tensors(20), batch_size=6, shuffle=True,
                         generator=torch.Generator().manual_seed(5))
        ours, theirs = loader(self.loader), loader(TorchLoader)
        for _ in range(3):
            self.assert_same(list(ours), list(theirs))

    def test_with_a_generator_random_numbers_are_torchs(self):
        def loader(maker, **more):
            return maker(Draws(12), batch_size=3, num_workers=2,
                         generator=torch.Generator().manual_seed(5), **more)
        self.assert_same(
            list(loader(self.loader)),
            list(loader(TorchLoader, multiprocessing_context="fork")))

    def test_iterable_data_sets(self):
        self.assert_as_torch(Shares(3, 14), (0, 2, 3), batch_size=2)
        self.assert_as_torch(Shares(3, 14), (0, 2), batch_size=3,
                             drop_last=True)
        self.assert_as_torch(Shares(3, 7), (0, 2), batch_size=None)
        self.assert_as_torch(ChainDataset([Shares(0, 3), Shares(7, 9)]),
                             batch_size=2)

    def test_data_sets_of_torch(self):
        rows = TensorDataset(torch.arange(12).view(6, 2), torch.arange(6))
        self.assert_as_torch(rows, batch_size=4)
        self.assert_as_torch(Subset(Tensors(9), [8, 1, 5]), batch_size=2)
        self.assert_as_torch(ConcatDataset([Tensors(3), Tensors(2)]),
                             batch_size=2)
        self.assert_as_torch(StackDataset(a=rows, b=Tensors(6)), batch_size=4)
        part = random_split(Tensors(10), [7, 3],
                            torch.Generator().manual_seed(1))[0]
        self.assert_as_torch(part, batch_size=3)

    def test_a_collate_fn(self):
        self.assert_as_torch(Tensors(7), batch_size=3,
                             collate_fn=sets.sum_rows)

    def test_lengths(self):
        for named in ({"batch_size": 3}, {"batch_size": 3, "drop_last": True},
                      {"batch_size": None}, {"sampler": [1, 2]},
                      {"batch_sampler": [[1, 2], [3]]},
                      {"sampler": RandomSampler(range(10), True, 15),
                       "batch_size": 6},
                      {"sampler": RandomSampler(range(10), num_samples=15),
                       "batch_size": 6, "drop_last": True}):
            self.assertEqual(len(self.loader(Tensors(10), **named)),
                             len(TorchLoader(Tensors(10), **named)))

    def test_attributes_that_frames_look_at(self):
        ours = self.loader(Tensors(10), batch_size=3, drop_last=True,
                           num_workers=2)
        theirs = TorchLoader(Tensors(10), batch_size=3, drop_last=True,
                             num_workers=2)
        for name in ("batch_size", "drop_last", "num_workers", "timeout",
                     "prefetch_factor", "persistent_workers", "pin_memory",
                     "in_order", "generator", "worker_init_fn",
                     "multiprocessing_context", "pin_memory_device"):
            self.assertEqual(getattr(ours, name), getattr(theirs, name), name)
        self.assertEqual(list(ours.batch_sampler), list(theirs.batch_sampler))
        self.assertEqual(list(ours.sampler), list(theirs.sampler))
        self.assertNotIsInstance(ours, TorchLoader)


@needs_torch
class InWorkers(Case):
    def test_torchs_get_worker_info_answers(self):
        loader = self.loader(Infos(8), batch_size=4, num_workers=2,
                             generator=torch.Generator().manual_seed(3))
        ids, counts, seeds, sizes, initial, threads = (
            numbers(torch.cat(column)) for column in zip(*loader))
        self.assertEqual(ids, [0] * 4 + [1] * 4)
        self.assertEqual((set(counts), set(sizes), set(threads)),
                         ({2}, {8}, {1}))
        self.assertEqual(seeds, initial)
        self.assertEqual(seeds[4] - seeds[0], 1)
        self.assertIsNone(torch.utils.data.get_worker_info())

    def test_batches_of_tensors_can_be_written_and_kept(self):
        kept = []
        for rows, fields in self.loader(Tensors(3000), batch_size=1000,
                                        num_workers=2):
            kept.append((rows, rows.clone()))
            rows += 1
        for rows, before in kept:
            self.assertTrue(torch.equal(rows, before + 1))

    def test_batches_are_no_shared_memory_of_torch_until_asked(self):
        rows, _ = next(iter(self.loader(Tensors(2000), batch_size=2000,
                                        num_workers=1)))
        self.assertFalse(rows.is_shared())
        expected = rows.clone()
        self.assertTrue(rows.share_memory_().is_shared())
        self.assertTrue(torch.equal(rows, expected))

    def test_a_worker_writes_to_a_copy_of_the_data_set(self):
        data = sets.Writes(300)
        data.rows.share_memory_()
        before = data.rows.clone()
        for batch in self.loader(data, batch_size=100, num_workers=1):
            self.assertTrue((batch == -1).all())
        self.assertTrue(torch.equal(data.rows, before))

    def test_nested_tensors_travel_and_are_not_stacked(self):
        data = sets.Nested(3)
        for workers in (0, 1):
            loader = self.loader(data, num_workers=workers,
                                 collate_fn=sets.clones)
            for i, (batch,) in enumerate(loader):
                self.assertTrue(batch.is_nested)
                for ours, theirs in zip(batch.unbind(), data[i].unbind()):
                    self.assertTrue(torch.equal(ours, theirs))
            with self.assertRaises(RuntimeError):
                list(self.loader(data, num_workers=workers))

    def test_packed_sequences_travel(self):
        got = [next(iter(self.loader(Tensors(3), batch_size=3,
                                     num_workers=workers,
                                     collate_fn=sets.packed)))
               for workers in (0, 1)]
        for ours, theirs in zip(*got):
            self.assertTrue(torch.equal(ours, theirs))
        self.assertIs(type(got[1]), torch.nn.utils.rnn.PackedSequence)

    def test_torchs_threads_of_the_loop_do_not_reach_workers(self):
        threads = torch.get_num_threads()
        self.addCleanup(torch.set_num_threads, threads)
        torch.set_num_threads(max(4, threads))
        (batch,) = self.loader(sets.Convolved(), num_workers=1)
        self.assertEqual(tuple(batch.shape), (1, 1, 1, 23_999))

    def test_data_pipes_are_iterables(self):
        from torch.utils.data.datapipes.iter import IterableWrapper

        for workers in (0, 1):
            pipe = IterableWrapper(range(6)).map(sets.double)
            loader = self.loader(pipe, batch_size=4, num_workers=workers)
            self.assertEqual([numbers(batch) for batch in loader],
                             [[0, 2, 4, 6], [8, 10]])
        with self.assertRaisesRegex(ValueError, "expected unspecified"):
            self.loader(pipe, shuffle=True)

    def test_a_data_set_on_the_gpu_is_refused(self):
        if not torch.cuda.is_available():
            self.skipTest("there is no GPU")
        loader = self.loader(sets.OnGpu(), num_workers=1)
        with self.assertRaisesRegex(RuntimeError, "initialised CUDA"):
            list(loader)


@needs_torch
class Pinning(Case):
    def setUp(self):
        super().setUp()
        if not torch.cuda.is_available():
            self.skipTest("there is no GPU")

    def test_batches_are_pinned_in_order(self):
        for workers in (0, 2):
            loader = self.loader(Tensors(10), batch_size=4, pin_memory=True,
                                 num_workers=workers)
            for _ in range(2):
                got = []
                for rows, fields in loader:
                    self.assertTrue(rows.is_pinned())
                    self.assertTrue(fields["index"].is_pinned())
                    got += numbers(fields["index"])
                self.assertEqual(got, list(range(10)))

    def test_a_type_of_the_user_is_asked_to_pin_itself(self):
        loader = self.loader(Tensors(4), batch_size=2, pin_memory=True,
                             num_workers=1, collate_fn=sets.Pinnable)
        self.assertTrue(next(iter(loader)).rows.is_pinned())

    def test_leaving_early_and_errors_end_the_thread(self):
        loader = self.loader(Tensors(100), batch_size=1, pin_memory=True,
                             num_workers=2)
        for _ in range(3):
            next(iter(loader))
        broken = self.loader(Tensors(4), batch_size=1, pin_memory=True,
                             num_workers=1, sampler=[0, 99])
        with self.assertRaises(IndexError):
            list(broken)


if __name__ == "__main__":
    main()
