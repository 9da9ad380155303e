"""What goes wrong in the user's code and arguments, and what is said."""
import multiprocessing
import sys
import threading
import unittest

import dataloader_sets as sets
from dataloader_case import Case, DataLoader, has_cloudpickle, numbers
from dataloader_sets import Bad, Numbers, Of, Rows, Stream
from entry import main
from penstock.errors import RequestError, TransformError

WORKERS = (0, 1, 2)


class OfTheDataSet(Case):
    def raised(self, kind, data, workers=1, **more):
        loader = self.loader(data, **{"batch_size": 4, "num_workers": workers,
                                      **more})
        with self.assertRaises(kind) as caught:
            list(loader)
        return caught.exception

    def test_the_type_is_kept_and_the_traceback_is_in_the_message(self):
        for workers in (1, 2):
            error = self.raised(ZeroDivisionError, Bad(
                20, bad={13}, error=ZeroDivisionError), workers)
            self.assertIs(type(error), ZeroDivisionError)
            self.assertRegex(str(error), "Caught ZeroDivisionError in "
                             r"DataLoader worker process \d \(dataset\[13\]\)")
            self.assertIn("row 13 is broken", str(error))
            self.assertIn("dataloader_sets.py", str(error))
            self.assertEqual((type(error.__cause__), *error.__cause__.args),
                             (ZeroDivisionError, "row 13 is broken"))

    def test_in_the_loop_itself_it_is_raised_as_it_is(self):
        error = self.raised(ZeroDivisionError, Bad(
            20, bad={13}, error=ZeroDivisionError), 0)
        self.assertEqual(str(error), "row 13 is broken")

    def test_a_key_error_stays_readable(self):
        error = self.raised(KeyError, Bad(9, bad={2}, error=KeyError))
        self.assertIn("\nOriginal Traceback", str(error))
        self.assertNotIn("\\n", str(error))

    def test_an_exception_of_several_arguments_keeps_them(self):
        error = self.raised(sets.TwoArguments, Bad(
            9, bad={2}, error=sets.two_arguments))
        self.assertEqual((error.one, error.two), ("row 2 is broken", 2))
        self.assertIn("dataloader_sets.py", str(error.__cause__))

    def test_an_os_error_is_an_os_error(self):
        error = self.raised(FileNotFoundError, Bad(
            9, bad={2}, error=sets.os_error))
        self.assertIn("row 2 is broken", str(error))

    def test_an_exception_that_nobody_else_knows_becomes_its_base(self):
        class Own(LookupError):
            pass
        loader = self.loader(
            Bad(9, bad={2}, error=Own), batch_size=4, num_workers=1,
            workers="threads")
        with self.assertRaisesRegex(LookupError, "Caught Own"):
            list(loader)

    def test_stop_iteration_does_not_end_the_loop_in_silence(self):
        for workers in WORKERS:
            for more in {}, {"batch_size": None}:
                error = self.raised(RuntimeError, Bad(
                    9, bad={6}, error=StopIteration), workers, **more)
                self.assertIn("StopIteration", str(error))
                self.assertIn("dataset[6]", str(error))

    def test_nor_does_one_of_collate_fn(self):
        for workers in WORKERS:
            for data in (Rows(9), Stream(9)):
                for more in {}, {"batch_size": None}:
                    error = self.raised(RuntimeError, data, workers,
                                        collate_fn=sets.stops, **more)
                    self.assertIn("StopIteration", str(error))

    def test_an_error_takes_its_batchs_turn_and_the_next_ones_come(self):
        for workers in (1, 2, 3):
            loop = iter(self.loader(Bad(24, bad={9}, error=ValueError),
                                    batch_size=4, num_workers=workers))
            self.assertEqual(numbers(next(loop)[1]), [0, 1, 2, 3])
            self.assertEqual(numbers(next(loop)[1]), [4, 5, 6, 7])
            with self.assertRaises(ValueError):
                next(loop)
            self.assertEqual([numbers(y)[0] for _, y in loop], [12, 16, 20])

    def test_a_part_that_cannot_travel_fails_its_batch_alone(self):
        for in_order in (True, False):
            loop = iter(self.loader(Of(8 * 70, sets.third_stays),
                                    batch_size=8, num_workers=2,
                                    prefetch_factor=1, in_order=in_order))
            seen, failed = [], 0
            while True:
                try:
                    seen.append(numbers(next(loop)))
                except StopIteration:
                    break
                except Exception as error:
                    self.assertIn("found a Stays", str(error))
                    failed += 1
            self.assertEqual(failed, 1)
            self.assertEqual(sorted(seen), [list(range(8 * i, 8 * i + 8))
                                            for i in range(1, 70)])

    def test_items_that_cannot_travel_are_collated_as_in_torch(self):
        # They stay in the worker that fetched them: no batch is in parts then.
        for item in sets.viewed, sets.lost_on_its_way:
            for workers in WORKERS:
                for in_order in (True, False):
                    loader = self.loader(
                        Of(8 * 20, item), batch_size=8, num_workers=workers,
                        in_order=in_order, persistent_workers=workers > 0)
                    for _ in range(2):
                        self.assertEqual(
                            sorted(numbers(batch[0]) for batch in loader),
                            [list(range(8 * i, 8 * i + 8)) for i in range(20)])

    def test_a_batch_whose_ids_cannot_travel_fails_in_its_turn(self):
        ids = [[2 * i, 2 * i + 1] for i in range(16)]
        ids[9][0] = threading.Lock()
        for in_order, turns in (True, 9), (False, 16):
            loop = iter(self.loader(Numbers(32), batch_sampler=ids,
                                    num_workers=2, in_order=in_order))
            seen = []
            with self.assertRaisesRegex(TypeError, "pickle.*lock"):
                for _ in range(turns):
                    seen.append(numbers(next(loop)))
                next(loop)
            seen += map(numbers, loop)
            self.assertEqual(sorted(seen), ids[:9] + ids[10:])

    def test_an_epoch_that_cannot_begin_says_so(self):
        for workers, good in ("processes", 1), ("threads", 2):
            for in_order in (True, False):
                loader = self.loader(sets.BeginsSoOften(4, good), batch_size=2,
                                     num_workers=2, workers=workers,
                                     in_order=in_order,
                                     persistent_workers=True)
                self.assertEqual(len(list(loader)), 4)
                for _ in range(2):
                    with self.assertRaisesRegex(OSError, r"iter\(dataset\)"):
                        list(loader)

    def test_a_data_set_that_a_worker_cannot_look_at_says_so(self):
        for workers in ("processes", "threads"):
            with self.assertRaisesRegex(OSError, "looking at the data set"):
                list(self.loader(sets.OpensOnceThere(4), num_workers=2,
                                 workers=workers))

    def test_a_thread_that_asks_for_the_end_at_its_start_says_so(self):
        loader = self.loader(Numbers(4), num_workers=2, workers="threads",
                             worker_init_fn=lambda worker: sys.exit(1))
        with self.assertRaises(SystemExit):
            list(loader)

    def test_of_several_errors_in_a_batch_the_first_rows_is_raised(self):
        for _ in range(3):
            error = self.raised(ValueError, Bad(
                16, bad={5, 14}, error=ValueError), 2, batch_size=16)
            self.assertIn("dataset[5]", str(error))

    def test_a_data_set_that_became_shorter_is_named(self):
        error = self.raised(IndexError, sets.Shrinks(10), 1)
        self.assertIn("its length was 10 and is now 4", str(error))

    def test_a_result_that_cannot_travel_is_named(self):
        for batch_size in (None, 2):
            loader = self.loader(Of(4, sets.with_lambda), num_workers=1,
                                 batch_size=batch_size, collate_fn=sets.keep)
            with self.assertRaisesRegex(Exception,
                                        r"\(the batch cannot be pickled\)"):
                list(loader)

    def test_collate_fn_that_fails_on_the_short_batch(self):
        for workers in WORKERS:
            loop = iter(self.loader(Numbers(10), batch_size=4,
                                    num_workers=workers,
                                    collate_fn=sets.only_full))
            self.assertEqual([next(loop), next(loop)],
                             [[0, 1, 2, 3], [4, 5, 6, 7]])
            with self.assertRaisesRegex(ValueError, "2 items"):
                next(loop)
            with self.assertRaises(StopIteration):
                next(loop)


class Unpicklable(Case):
    def stays(self, *arguments, **named):
        loader = self.loader(*arguments, num_workers=1, **named)
        with self.refused(RequestError, "workers.pickle") as refused:
            iter(loader)
        self.assertIsInstance(refused.error, TypeError)
        return str(refused.error)

    @unittest.skipUnless(has_cloudpickle, "cloudpickle is not there")
    def test_lambdas_travel_where_cloudpickle_is_there(self):
        loader = self.loader(Of(4, lambda i: 2 * i), batch_size=2,
                             num_workers=1, collate_fn=lambda items: items,
                             worker_init_fn=lambda worker: None)
        self.assertEqual(list(loader), [[0, 2], [4, 6]])

    @unittest.skipIf(has_cloudpickle, "cloudpickle is there")
    def test_the_part_that_cannot_travel_is_named_with_the_way_out(self):
        text = self.stays(Of(4, lambda i: i))
        self.assertRegex(text, "^the data set cannot be sent .*an? Of.*lambda")
        self.assertIn("workers=\"threads\"", text)
        self.assertRegex(self.stays(Numbers(4), collate_fn=lambda b: b),
                         "^collate_fn cannot be sent")
        self.assertRegex(self.stays(Numbers(4), worker_init_fn=lambda w: None),
                         "^worker_init_fn cannot be sent")

    def test_a_lock_of_multiprocessing_stays(self):
        self.assertRegex(self.stays(Rows(4, lock=multiprocessing.Lock())),
                         "^the data set cannot be sent")

    def test_a_data_set_that_cannot_be_unpickled_says_why(self):
        loader = self.loader(sets.Raises(4), num_workers=2)
        with self.assertRaisesRegex(OSError, "while the data set was unpickled"
                                    r"[\s\S]*the volume is not mounted"):
            list(loader)
        loader.dataset.__class__ = Numbers  # mended: the next loop works
        self.assertEqual(len(list(loader)), 4)


    def test_what_it_says_may_be_long(self):
        why = "no end of it " * 100_000
        loader = self.loader(sets.Raises(4, why=why), num_workers=1,
                             timeout=30)
        with self.assertRaises(OSError) as raised:
            list(loader)
        self.assertEqual(raised.exception.__cause__.args, (why,))


class Arguments(Case):
    def wrong(self, expected, *arguments, **named):
        with self.refused(RequestError, "settings.value", expected):
            DataLoader(*arguments, **named)

    def test_numbers_out_of_range(self):
        for batch_size in (0, -1, 2.0, True, "4"):
            self.wrong("batch_size", Numbers(4), batch_size=batch_size)
        self.wrong("num_workers", Numbers(4), num_workers=-1)
        self.wrong("timeout", Numbers(4), timeout=-1)
        self.wrong("prefetch_factor", Numbers(4), num_workers=1,
                   prefetch_factor=-1)

    def test_what_needs_workers(self):
        self.wrong("prefetch_factor", Numbers(4), prefetch_factor=2)
        self.wrong("persistent_workers", Numbers(4), persistent_workers=True)
        self.wrong("timeout", Numbers(4), timeout=1)
        self.wrong("multiprocessing_context", Numbers(4),
                   multiprocessing_context="spawn")

    def test_what_excludes_each_other(self):
        self.wrong("exclusive", Numbers(4), sampler=[1], shuffle=True)
        self.wrong("exclusive", Numbers(4), batch_size=None, drop_last=True)
        for named in ({"batch_size": 2}, {"shuffle": True}, {"sampler": [1]},
                      {"drop_last": True}):
            self.wrong("exclusive", Numbers(4), batch_sampler=[[1]], **named)

    def test_the_start_method_is_checked_and_has_no_effect(self):
        self.wrong("start method", Numbers(4), num_workers=1,
                   multiprocessing_context="bad")
        with self.assertRaisesRegex(TypeError, "context"):
            DataLoader(Numbers(4), num_workers=1,
                       multiprocessing_context=object())
        with self.assertWarnsRegex(UserWarning, "no effect") as warned:
            DataLoader(Numbers(4), num_workers=1,
                       multiprocessing_context="spawn")
        self.assertEqual(warned.filename, __file__)

    def test_words_that_are_none_get_the_nearest(self):
        self.wrong("did you mean 'substitute'", Numbers(4),
                   on_bad="subsitute")
        self.wrong("did you mean 'threads'", Numbers(4), workers="thread")
        self.wrong("one of auto, batch, worker", Numbers(4), seeds="all")
        for seed in (-1, 1 << 64, "7", 1.5):
            self.wrong(f"found {seed!r}", Numbers(4), seed=seed)
        with self.assertRaisesRegex(TypeError, "did you mean 'batch_size'"):
            DataLoader(Numbers(4), batchsize=3)
        with self.assertRaisesRegex(TypeError, "choose one of: dataset, batch_s"):
            DataLoader(Numbers(4), xyzzy=3)

    def test_what_is_no_data_set(self):
        with self.refused(RequestError, "loader.dataset", "found 7, which has "
                          "neither __getitem__ nor __iter__"):
            DataLoader(7)

    def test_on_bad_needs_a_map_style_data_set(self):
        with self.refused(RequestError, "loader.on_bad", "another sample"):
            DataLoader(Stream(4), on_bad="substitute")

    def test_what_made_the_order_cannot_be_set_later(self):
        loader = DataLoader(Numbers(4))
        for name in ("batch_size", "sampler", "batch_sampler", "drop_last",
                     "dataset", "persistent_workers"):
            with self.assertRaisesRegex(ValueError, "should not be set"):
                setattr(loader, name, None)
        loader.timeout = 0  # others can

    def test_more_workers_than_processors_are_warned_of(self):
        loader = DataLoader(Numbers(4), num_workers=4096, workers="threads")
        with self.assertWarnsRegex(UserWarning, "4096 workers on"):
            with self.assertRaises(StopIteration):
                loop = iter(loader)
                while True:
                    next(loop)
        loader.close()

    def test_pinning_without_an_accelerator_is_warned_of(self):
        from penstock._dataloader.pinning import available
        if available():
            self.skipTest("there is an accelerator")
        with self.assertWarnsRegex(UserWarning, "no accelerator"):
            list(DataLoader(Rows(4), pin_memory=True))


class Collate(Case):
    def unfit(self, function, code, *expected, workers=0):
        loader = self.loader(Of(8, function), batch_size=8,
                             num_workers=workers)
        with self.refused(TransformError, code, *expected) as refused:
            list(loader)
        self.assertIsInstance(refused.error, RuntimeError)  # as torch's
        self.assertEqual(isinstance(refused.error, TypeError),
                         code == "collate.type")
        return refused.error

    def test_ragged_items_are_named_with_both_shapes(self):
        for workers in WORKERS:
            self.unfit(sets.ragged, "collate.shape",
                       "equal size at item 6 (row 6 of the batch): found "
                       "shape (4,), item 0 (row 0 of the batch) has shape "
                       "(3,)", workers=workers)

    def test_the_cause_is_what_happened_in_the_worker(self):
        here = self.unfit(sets.ragged, "collate.shape").__cause__
        # numpy's words, or torch's
        self.assertRegex(str(here), "same s|equal size")
        for workers in (1, 2):
            there = self.unfit(sets.ragged, "collate.shape",
                               workers=workers).__cause__
            self.assertRegex(str(there), "(?s)Caught CollateError in "
                             r"DataLoader worker process \d.*collate.py")

    def test_the_index_is_the_data_sets_not_the_rows(self):
        loader = self.loader(Of(8, sets.ragged), batch_sampler=[[2, 6, 3]])
        with self.refused(TransformError, "collate.shape", "item 6 (row 1"):
            list(loader)

    def test_the_field_is_named(self):
        self.unfit(sets.ragged_field, "collate.shape", "item 5 (row 5 of the "
                   "batch), field ['b'][1]")

    def test_objects_have_no_place_in_a_batch(self):
        for workers in (0, 1):
            self.unfit(sets.as_object, "collate.type",
                       "dtype object; a batch must contain", workers=workers)
            self.unfit(sets.no_place, "collate.type",
                       "found a object; a batch must contain", workers=workers)
            self.unfit(sets.no_place_inside, "collate.type",
                       "field ['y'][1][0]: found a object", workers=workers)

    def test_missing_fields_are_named(self):
        self.unfit(sets.missing_key, "collate.shape", "item 2", "no key 'b'")
        self.unfit(sets.few_fields, "collate.shape", "item 3",
                   "found 1 fields, item 0 (row 0 of the batch) has 2 fields")

    def test_what_cannot_be_explained_tells_what_was_raised(self):
        self.unfit(sets.too_large, "collate.failed", "Overflow")


if __name__ == "__main__":
    main()
