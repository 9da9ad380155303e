"""Loops over map-style and iterable data sets, with and without workers."""
import os
import pickle
import sys
import tempfile
import unittest
import warnings
from unittest import mock

import numpy as np

import dataloader_sets as sets
from dataloader_case import (Case, DataLoader, all_numbers, descendants,
                             numbers)
from dataloader_sets import Many, Numbers, Rows, Shares, Stream
from entry import main
from penstock._dataloader import threads
from penstock._dataloader.assembly_table import ENTRIES
from penstock.dataloader import get_worker_info

WORKERS = (0, 1, 2)


class MapStyle(Case):
    def test_every_item_comes_once_in_order(self):
        for workers in WORKERS:
            with self.subTest(workers=workers):
                loader = self.loader(Rows(10), batch_size=4,
                                     num_workers=workers)
                batches = list(loader)
                self.assertEqual([len(x) for x, _ in batches], [4, 4, 2])
                self.assertEqual(sum((numbers(y) for _, y in batches), []),
                                 list(range(10)))
                for x, y in batches:
                    self.assertEqual(x[:, 0].tolist(), numbers(y))

    def test_drop_last_leaves_out_the_short_batch(self):
        for workers in WORKERS:
            loader = self.loader(Numbers(10), batch_size=4, drop_last=True,
                                 num_workers=workers)
            self.assertEqual(len(loader), 2)
            self.assertEqual(all_numbers(loader), list(range(8)))

    def test_without_batches_items_come_one_by_one(self):
        for workers in WORKERS:
            loader = self.loader(Rows(3), batch_size=None, num_workers=workers)
            got = list(loader)
            self.assertEqual(len(loader), 3)
            self.assertEqual([y for _, y in got], [0, 1, 2])
            self.assertEqual([tuple(x.shape) for x, _ in got], [(3,)] * 3)

    def test_shuffled_items_without_batches(self):
        loader = self.loader(Numbers(20), batch_size=None, shuffle=True,
                             seed=3)
        first = list(loader)
        self.assertEqual(sorted(first), list(range(20)))
        self.assertNotEqual(first, list(range(20)))

    def test_an_empty_data_set_has_no_batch(self):
        for workers in WORKERS:
            for shuffle in (False, True):
                loader = self.loader(Numbers(0), batch_size=4, shuffle=shuffle,
                                     num_workers=workers)
                self.assertEqual(len(loader), 0)
                self.assertEqual(list(loader), [])

    def test_a_list_and_a_dict_are_data_sets(self):
        self.assertEqual(all_numbers(self.loader([5, 6, 7], batch_size=2)),
                         [5, 6, 7])
        by_name = self.loader({"a": 1, "b": 2}, sampler=["b", "a"],
                              num_workers=1)
        self.assertEqual(all_numbers(by_name), [2, 1])

    def test_indices_are_integers_of_python(self):
        for more in {}, {"shuffle": True}, {"batch_size": None}:
            for workers in (0, 1):
                loader = self.loader(sets.Kinds(3), num_workers=workers,
                                     collate_fn=list, **more)
                self.assertEqual({"".join(kinds) for kinds in loader},
                                 {"int"})

    def test_a_data_set_may_grow(self):
        for workers in (0, 1):
            for shuffle in (False, True):
                data = list(range(4))
                loader = self.loader(data, shuffle=shuffle,
                                     num_workers=workers)
                self.assertEqual(sorted(all_numbers(loader)), data)
                data.append(4)
                self.assertEqual(len(loader), 5)
                self.assertEqual(sorted(all_numbers(loader)), data)

    def test_a_data_set_is_asked_for_many_at_a_time(self):
        for workers in WORKERS:
            loader = self.loader(Many(10), batch_size=4, num_workers=workers,
                                 collate_fn=sets.keep)
            self.assertEqual([count for batch in loader
                              for _, count in batch], [4] * 8 + [2] * 2)

    def test_too_few_items_of_many_are_an_error(self):
        loader = self.loader(sets.TooFew(10), batch_size=4)
        with self.assertRaisesRegex(ValueError, "asked for 4 items and gave 3"):
            next(iter(loader))

    def test_a_collate_fn_of_the_user_gets_the_items(self):
        for workers in WORKERS:
            loader = self.loader(Numbers(5), batch_size=2, num_workers=workers,
                                 collate_fn=sets.keep)
            self.assertEqual(list(loader), [[0, 1], [2, 3], [4]])

    def test_collate_fn_runs_in_a_worker(self):
        loader = self.loader(Numbers(40), batch_size=8, num_workers=2,
                             collate_fn=sets.collate_with_info)
        got = list(loader)
        self.assertEqual(sum((items for items, _ in got), []),
                         list(range(40)))
        self.assertTrue({worker for _, worker in got} <= {0, 1})

    def test_len_of_the_loader_and_of_an_iterator(self):
        loader = self.loader(Numbers(10), batch_size=4)
        self.assertEqual((len(loader), len(iter(loader))), (3, 3))

    def test_it_is_generic_in_its_items(self):
        class Mine(DataLoader[int]):
            pass
        for kind in DataLoader[int], Mine:
            loader = kind(Numbers(4), batch_size=3)
            self.assertIsInstance(loader, DataLoader)
            self.assertEqual(all_numbers(loader), list(range(4)))
        whole = pickle.loads(pickle.dumps(DataLoader[int](Numbers(4))))
        self.assertEqual(all_numbers(whole), list(range(4)))

    def test_each_loop_begins_anew(self):
        for persistent in (False, True):
            loader = self.loader(Numbers(10), batch_size=4, num_workers=2,
                                 persistent_workers=persistent)
            for _ in range(3):
                self.assertEqual(all_numbers(loader), list(range(10)))

    def test_a_loop_that_is_left_early_can_be_begun_again(self):
        for workers in WORKERS:
            for persistent in {False, workers > 0}:
                loader = self.loader(Numbers(100), batch_size=4,
                                     num_workers=workers,
                                     persistent_workers=persistent)
                for _ in range(3):
                    for batch in loader:
                        self.assertEqual(numbers(batch), [0, 1, 2, 3])
                        break
                self.assertEqual(all_numbers(loader), list(range(100)))

    def test_two_iterators_at_once_do_not_disturb_each_other(self):
        for workers in (0, 2):
            loader = self.loader(Numbers(20), batch_size=2,
                                 num_workers=workers)
            pairs = [(numbers(a), numbers(b)) for a, b in zip(loader, loader)]
            self.assertEqual(pairs, [([i, i + 1],) * 2
                                     for i in range(0, 20, 2)])

    def test_persistent_workers_are_the_same_processes(self):
        loader = self.loader(sets.Who(8), batch_size=2, num_workers=2,
                             persistent_workers=True)
        pids = [{int(pid) for _, whose, _ in loader for pid in whose}
                for _ in range(3)]
        self.assertLessEqual(len(set.union(*pids)), 2)
        self.assertNotIn(os.getpid(), set.union(*pids))

    def test_workers_of_another_loop_have_a_fresh_replica(self):
        loader = self.loader(sets.Counter(4), batch_size=4, num_workers=1)
        self.assertEqual(all_numbers(loader), [1, 2, 3, 4])
        self.assertEqual(all_numbers(loader), [1, 2, 3, 4])

    def test_a_changed_data_set_reaches_the_next_loop(self):
        data = Rows(4)
        loader = self.loader(data, batch_size=4, num_workers=1)
        self.assertEqual(list(loader)[0][0].shape[1], 3)
        data.width = 5
        self.assertEqual(list(loader)[0][0].shape[1], 5)

    def test_persistent_workers_keep_the_data_set_of_their_start(self):
        data = list(range(4))
        loader = self.loader(data, num_workers=1, persistent_workers=True)
        self.assertEqual(all_numbers(loader), [0, 1, 2, 3])
        data[0] = 9
        self.assertEqual(all_numbers(loader), [0, 1, 2, 3])

    def test_prefetch_goes_as_far_as_asked(self):
        for factor in (0, 1, 2, 7):
            loader = self.loader(Numbers(30), batch_size=3, num_workers=2,
                                 prefetch_factor=factor)
            self.assertEqual(all_numbers(loader), list(range(30)))

    def test_the_first_batch_is_fetched_by_all_workers(self):
        def pids_of_first(**more):
            loop = iter(self.loader(sets.Who(32, seconds=0.02), batch_size=16,
                                    num_workers=2, **more))
            ids, pids, _ = next(loop)
            self.assertEqual(numbers(ids), list(range(16)))
            return set(numbers(pids))
        self.assertEqual(len(pids_of_first()), 2)
        self.assertEqual(len(pids_of_first(collate_fn=sets.columns)), 1)
        self.assertEqual(len(pids_of_first(seeds="worker")), 1)

    def test_many_ids_and_long_ids_travel(self):
        long = ["x" * 1000 + str(i) for i in range(200)]
        data = {name: at for at, name in enumerate(long)}
        loader = self.loader(data, batch_sampler=[long, long[::-1]],
                             num_workers=2)
        self.assertEqual(all_numbers(loader),
                         [*range(200), *reversed(range(200))])
        wide = self.loader(Numbers(20_000), batch_size=10_000, num_workers=2)
        self.assertEqual(all_numbers(wide), list(range(20_000)))

    def test_out_of_order_gives_every_batch_once(self):
        loader = self.loader(sets.Who(12), batch_size=2, num_workers=2,
                             in_order=False)
        got = sorted(number for batch in loader for number in
                     numbers(batch[0]))
        self.assertEqual(got, list(range(12)))

    def test_a_batch_in_parts_may_be_late_by_more_than_the_board_holds(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "go")
            loader = self.loader(
                sets.WaitsFor(4 * (ENTRIES + 20), path=path), batch_size=4,
                num_workers=2, prefetch_factor=1, in_order=False, timeout=30)
            got = []
            for batch in loader:
                got += numbers(batch)
                if len(got) == 4 * (ENTRIES + 10):
                    self.assertNotIn(0, got)
                    open(path, "w").close()
        self.assertEqual(sorted(got), list(range(4 * (ENTRIES + 20))))

    def test_more_workers_than_batches(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loader = self.loader(Numbers(3), batch_size=2, num_workers=5)
            self.assertEqual(all_numbers(loader), [0, 1, 2])


    def test_collate_fn_gets_the_very_items(self):
        # Neither what stays where it is nor which object it is gets lost.
        for workers in (0, 1, 2, 3):
            for kind in ("processes", "threads"):
                loader = self.loader(
                    sets.Of(8 * 20, sets.missing_or_staying), batch_size=8,
                    num_workers=workers, workers=kind,
                    collate_fn=sets.what_stays)
                self.assertEqual([number for batch in loader
                                  for number in batch],
                                 [i for i in range(8 * 20) if i % 4])


class Samplers(Case):
    def test_a_sampler_names_the_items(self):
        for workers in WORKERS:
            loader = self.loader(Numbers(10), batch_size=2,
                                 sampler=[9, 3, 5], num_workers=workers)
            self.assertEqual([numbers(batch) for batch in loader],
                             [[9, 3], [5]])
            self.assertEqual(len(loader), 2)

    def test_a_batch_sampler_may_use_its_list_again(self):
        class Reusing:
            def __iter__(self):
                ids = []
                for i in range(64):
                    ids.append(i)
                    if len(ids) == 8:
                        yield ids
                        ids.clear()
        for workers in (0, 2):
            for kind in ("processes", "threads"):
                loader = self.loader(Numbers(64), batch_sampler=Reusing(),
                                     num_workers=workers, workers=kind)
                self.assertEqual(all_numbers(loader), list(range(64)))

    def test_a_batch_sampler_names_the_batches(self):
        for workers in WORKERS:
            loader = self.loader(Numbers(10), batch_sampler=[[1], [2, 3, 4]],
                                 num_workers=workers)
            self.assertEqual([numbers(batch) for batch in loader],
                             [[1], [2, 3, 4]])
            self.assertEqual((len(loader), loader.batch_size), (2, None))

    def test_batches_of_ids_may_be_anything_that_can_be_walked(self):
        class Walked:
            def __iter__(self):
                return iter([(1, 2), range(3, 5), (i for i in (5, 6)),
                             np.array([7, 8])])
        for workers in WORKERS:
            loader = self.loader(Numbers(10), batch_sampler=Walked(),
                                 num_workers=workers)
            self.assertEqual(all_numbers(loader), list(range(1, 9)))

    def test_a_sampler_without_batches(self):
        loader = self.loader(Numbers(10), batch_size=None, sampler=[4, 2])
        self.assertEqual(list(loader), [4, 2])

    def test_a_sampler_may_name_many_items_at_once(self):
        for workers in (0, 2):
            loader = self.loader(sets.Bulk(9), batch_size=None,
                                 sampler=[[0, 1, 2], [3, 4], [8]],
                                 num_workers=workers)
            self.assertEqual([numbers(batch) for batch in loader],
                             [[0, 1, 2], [3, 4], [8]])

    def test_a_sampler_without_length_works_and_has_none(self):
        class Endless:
            def __iter__(self):
                return iter([1, 2, 3])
        loader = self.loader(Numbers(10), batch_size=2, sampler=Endless())
        self.assertEqual(all_numbers(loader), [1, 2, 3])
        with self.assertRaises(TypeError):
            len(loader)

    def test_an_error_of_the_sampler_reaches_the_loop(self):
        def broken():
            yield 0
            raise ArithmeticError("no more")

        class Broken:
            def __iter__(self):
                return broken()
        for workers in (0, 1):
            loader = self.loader(Numbers(9), batch_size=1, sampler=Broken(),
                                 num_workers=workers)
            with self.assertRaisesRegex(ArithmeticError, "no more"):
                list(loader)


    def test_ranks_that_all_get_everything_are_warned(self):
        group = mock.Mock()
        group.get_world_size.return_value = 2
        with mock.patch.dict(sys.modules, {"torch.distributed": group}):
            with self.assertWarnsRegex(UserWarning, "each of the 2 ranks") as (
                    told):
                self.loader(Numbers(4))
            self.assertEqual(told.filename, __file__.replace(
                "loop_test", "case"))  # where the loader is made
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                self.loader(Numbers(4), sampler=[0, 2])
                group.get_world_size.return_value = 1
                self.loader(Numbers(4))


class Iterable(Case):
    def test_without_workers_it_is_read_once(self):
        loader = self.loader(Stream(7), batch_size=3)
        self.assertEqual([numbers(batch) for batch in loader],
                         [[0, 1, 2], [3, 4, 5], [6]])

    def test_drop_last_and_no_batches(self):
        self.assertEqual(all_numbers(self.loader(
            Stream(7), batch_size=3, drop_last=True)), list(range(6)))
        for workers in (0, 1):
            self.assertEqual(list(self.loader(
                Stream(4), batch_size=None, num_workers=workers)),
                list(range(4)))

    def test_each_worker_reads_its_replica_and_they_take_turns(self):
        loader = self.loader(Stream(4), batch_size=2, num_workers=2)
        self.assertEqual([numbers(batch) for batch in loader],
                         [[0, 1], [0, 1], [2, 3], [2, 3]])

    def test_workers_that_end_early_are_passed_over(self):
        loader = self.loader(Shares([2, 7, 0]), batch_size=2, num_workers=3)
        self.assertEqual([numbers(batch) for batch in loader],
                         [[0, 1], [100, 101], [102, 103], [104, 105], [106]])

    def test_persistent_workers_begin_their_streams_anew(self):
        loader = self.loader(Shares([3, 5]), batch_size=2, num_workers=2,
                             persistent_workers=True)
        first = [numbers(batch) for batch in loader]
        next(iter(loader))
        self.assertEqual([numbers(batch) for batch in loader], first)

    def test_its_length_is_counted_in_batches(self):
        self.assertEqual(len(self.loader(Stream(7, 7), batch_size=3)), 3)
        self.assertEqual(len(self.loader(Stream(7, 7), batch_size=3,
                                         drop_last=True)), 2)
        self.assertEqual(len(self.loader(Stream(7, 7), batch_size=None)), 7)
        with self.assertRaises(TypeError):
            len(self.loader(Stream(7), batch_size=3))

    def test_more_batches_than_its_length_are_warned_of_if_it_was_asked(self):
        loader = self.loader(Stream(9, 5), batch_size=1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in loader:  # nobody asked, as list() would
                pass
        len(loader)
        with self.assertWarnsRegex(UserWarning, "was 5 .* 6 batches"):
            list(loader)

    def test_an_error_in_the_middle_reaches_the_loop(self):
        for workers in WORKERS:
            loader = self.loader(sets.BrokenStream(4), batch_size=2,
                                 num_workers=workers)
            loop, got = iter(loader), []
            with self.assertRaisesRegex(ValueError, "the stream broke"):
                while True:
                    got.append(numbers(next(loop)))
            self.assertEqual(got[:2], [[0, 1], [2, 3] if workers < 2
                                       else [0, 1]])

    def test_an_error_at_the_beginning_reaches_the_loop(self):
        for workers in WORKERS:
            loader = self.loader(sets.NoBeginning(4), num_workers=workers)
            with self.assertRaisesRegex(ValueError, "there is no beginning"):
                list(loader)

    def test_out_of_order_gives_every_batch_once(self):
        loader = self.loader(Shares([2, 7, 0]), batch_size=2, num_workers=3,
                             in_order=False)
        self.assertEqual(sorted(all_numbers(loader)), [0, 1, *range(100, 107)])

    def test_random_order_and_samplers_are_refused(self):
        for named in ({"shuffle": True}, {"sampler": [1]},
                      {"batch_sampler": [[1]]}):
            with self.assertRaisesRegex(ValueError, "expected unspecified"):
                DataLoader(Stream(3), **named)


class WorkerInfo(Case):
    def test_in_the_loop_there_is_none(self):
        self.assertIsNone(get_worker_info())
        loader = self.loader(sets.Who(2), batch_size=2)
        self.assertEqual(numbers(next(iter(loader))[2]), [-1, -1])

    def test_in_a_worker_it_names_worker_seed_and_data_set(self):
        loader = self.loader(sets.Infos(6), batch_size=3, num_workers=2,
                             worker_init_fn=sets.mark)
        ids, counts, seeds, sizes = (
            np.concatenate([np.asarray(column) for column in columns])
            for columns in zip(*loader))
        self.assertEqual(set(ids.tolist()), {0, 1})
        self.assertEqual((set(counts.tolist()), set(sizes.tolist())),
                         ({2}, {6}))
        self.assertEqual(len({seed - worker for seed, worker in zip(
            seeds.tolist(), ids.tolist())}), 1)

    def test_worker_init_fn_runs_once_in_each_worker(self):
        loader = self.loader(sets.Of(8, sets.marked), batch_size=4,
                             num_workers=2, worker_init_fn=sets.mark)
        self.assertEqual([set(batch) for batch in loader],
                         [{"marked 0"}, {"marked 1"}])
        self.assertNotIn("PENSTOCK_TEST_MARK", os.environ)

    def test_worker_init_fn_may_choose_the_processors(self):
        before = os.sched_getaffinity(0)
        loader = self.loader(sets.Of(2, sets.processors), num_workers=2,
                             worker_init_fn=sets.on_one_processor)
        self.assertEqual([numbers(*batch) for batch in loader],
                         [[max(before)]] * 2)
        self.assertEqual(os.sched_getaffinity(0), before)

    def test_an_error_of_worker_init_fn_reaches_the_loop(self):
        loader = self.loader(Numbers(4), num_workers=2,
                             worker_init_fn=sets.raise_in_init)
        with self.assertRaisesRegex(RuntimeError, "worker 0 will not"):
            list(loader)


class Threads(Case):
    def test_a_data_set_that_releases_the_lock_gets_threads(self):
        before = descendants()
        loader = self.loader(sets.ThreadRows(40), batch_size=4, num_workers=3)
        ids, threads = zip(*loader)
        self.assertEqual(sum(map(numbers, ids), []), list(range(40)))
        self.assertGreater(len(set(sum(map(numbers, threads), []))), 1)
        self.assertEqual(descendants(), before)

    def test_threads_can_be_asked_for_and_see_lambdas(self):
        loader = self.loader(sets.Of(9, lambda i: i * 2), batch_size=2,
                             num_workers=2, workers="threads",
                             collate_fn=lambda items: items)
        self.assertEqual(sum(loader, []), [2 * i for i in range(9)])

    def test_threads_take_their_turns_over_streams(self):
        def share(worker):
            shares[worker] = get_worker_info().id
        shares = {}
        loader = self.loader(Stream(3), batch_size=2, num_workers=2,
                             workers="threads", worker_init_fn=share)
        self.assertEqual([numbers(batch) for batch in loader],
                         [[0, 1], [0, 1], [2], [2]])
        self.assertEqual(shares, {0: 0, 1: 1})

    def test_errors_of_threads_take_their_batchs_turn(self):
        loader = self.loader(sets.Bad(8, bad={5}, error=KeyError),
                             batch_size=2, num_workers=2, workers="threads")
        loop, got = iter(loader), []
        for _ in range(2):
            got += numbers(next(loop)[1])
        with self.assertRaisesRegex(KeyError, r"dataset\[5\]"):
            next(loop)
        self.assertEqual(numbers(next(loop)[1]), [6, 7])

    def test_persistent_threads_begin_anew(self):
        loader = self.loader(Stream(3), batch_size=2, num_workers=2,
                             workers="threads", persistent_workers=True)
        for _ in range(3):
            self.assertEqual(all_numbers(loader), [0, 1, 0, 1, 2, 2])

    def test_leaving_early_ends_the_threads(self):
        loop = iter(self.loader(sets.ThreadRows(40), batch_size=4,
                                num_workers=2))
        next(loop)
        del loop  # tearDown counts threads

    def test_all_threads_that_do_not_end_are_waited_for_five_seconds(self):
        loop = iter(self.loader(sets.ThreadRows(40), batch_size=4,
                                num_workers=8))
        next(loop)
        now, waits = [0.0], []

        def join(thread, timeout=None):
            waits.append(timeout)
            now[0] += timeout
        pool = loop.fetch.pool
        with mock.patch.object(threads.threading.Thread, "join", join), \
                mock.patch.object(threads, "time",
                                  mock.Mock(monotonic=lambda: now[0])):
            pool.close()
        self.assertEqual(waits, [5.0] + [0.0] * 7)


class Nested(Case):
    def test_a_loader_inside_a_worker(self):
        for inner in (0, 1):
            loader = self.loader(sets.Nested(4, inner=inner), batch_size=2,
                                 num_workers=1)
            self.assertEqual(all_numbers(loader), [6, 7, 8, 9])


if __name__ == "__main__":
    main()
