"""Saving and resuming."""
import copy
import json
import pickle
import unittest
import warnings

import dataloader_sets as sets
from dataloader_case import Case, all_numbers, needs_torch, numbers, torch
from dataloader_sets import Numbers, Shares, Stream
from entry import main
from penstock.errors import RequestError, TransformError


class Counting(Numbers):
    """Notes what it is asked for."""

    def __init__(self, n):
        super().__init__(n)
        self.asked = []

    def __getitem__(self, i):
        self.asked.append(i)
        return i


def begun(loader, steps):
    """Takes steps of a loop and leaves it."""
    loop = iter(loader)
    return [number for _ in range(steps) for number in numbers(next(loop))]


class OwnOrder(Case):
    def shuffled(self, **more):
        return self.loader(Numbers(100), **{"batch_size": 7, "shuffle": True,
                                            "seed": 3, **more})

    def test_a_state_is_small_and_plain(self):
        loader = self.loader(Numbers(10**12), batch_size=10**6, shuffle=True,
                             seed=2**64 - 1, drop_last=True)
        loader.load_state_dict({**loader.state_dict(), "epoch": 10**6,
                                "step": 999_999})
        text = json.dumps(loader.state_dict())
        self.assertLessEqual(len(text), 128)
        self.assertEqual(json.loads(text), loader.state_dict())

    def test_every_step_can_be_resumed_exactly(self):
        for workers in (0, 2):
            whole = all_numbers(self.shuffled())
            for steps in (0, 1, 5, 14):
                first = self.shuffled(num_workers=workers)
                taken = begun(first, steps)
                second = self.shuffled(num_workers=2 - workers)
                second.load_state_dict(first.state_dict())
                self.assertEqual(taken + all_numbers(second), whole)

    def test_a_batch_counts_when_it_was_handed_out(self):
        loader = self.shuffled(num_workers=2, prefetch_factor=4)
        begun(loader, 2)
        self.assertEqual((loader.state_dict()["epoch"],
                          loader.state_dict()["step"]), (0, 2))

    def test_after_an_epoch_comes_the_next(self):
        first = self.shuffled()
        all_numbers(first)
        state = first.state_dict()
        self.assertEqual((state["epoch"], state["step"]), (1, 0))
        second = self.shuffled()
        second.load_state_dict(state)
        self.assertEqual(all_numbers(second), all_numbers(first))
        self.assertEqual(all_numbers(second), all_numbers(first))

    def test_after_the_last_batch_comes_the_next_epoch(self):
        first, second, whole = (self.shuffled() for _ in range(3))
        begun(first, 15)  # and nobody asks for the end
        second.load_state_dict(first.state_dict())
        all_numbers(whole)
        self.assertEqual(all_numbers(second), all_numbers(whole))

    def test_an_iteration_that_was_not_begun_loses_nothing(self):
        whole = all_numbers(self.shuffled())
        for more in ({}, {"num_workers": 1},
                     {"num_workers": 1, "persistent_workers": True}):
            loader = self.shuffled(**more)
            iter(loader)
            self.assertEqual(all_numbers(loader), whole)
            loader.load_state_dict({**loader.state_dict(), "epoch": 0,
                                    "step": 3})
            iter(loader)
            iter(loader)
            self.assertEqual(all_numbers(loader), whole[21:])

    @needs_torch
    def test_nor_does_it_draw_from_the_generator(self):
        def seeded():
            return self.shuffled(seed=None, num_workers=1,
                                 generator=torch.Generator().manual_seed(9))
        loader = seeded()
        iter(loader)
        self.assertEqual(all_numbers(loader), all_numbers(seeded()))

    def test_iterations_side_by_side_are_of_epochs_of_their_own(self):
        loader = self.shuffled()
        first, second = iter(loader), iter(loader)
        self.assertNotEqual(numbers(next(first)), numbers(next(second)))

    def test_setting_the_epoch_keeps_a_place_within_it(self):
        whole = all_numbers(self.shuffled())
        loader = self.shuffled()
        state = {**loader.state_dict(), "epoch": 0, "step": 3}
        loader.load_state_dict(state)
        loader.set_epoch(0)
        self.assertEqual(all_numbers(loader), whole[21:])
        loader.load_state_dict(state)
        loader.set_epoch(1)
        other = all_numbers(loader)
        self.assertEqual(sorted(other), list(range(100)))
        self.assertNotEqual(other, whole)

    def test_the_sampler_takes_the_epoch_as_the_loader_does(self):
        told = self.shuffled()
        told.set_epoch(5)
        for sampler in ("sampler", "batch_sampler"):
            loader = self.shuffled()
            getattr(loader, sampler).set_epoch(5)
            self.assertEqual(list(loader.sampler), list(told.sampler))
        self.assertEqual(all_numbers(loader), all_numbers(told))

    def test_resumes_can_follow_each_other(self):
        whole, got, state = all_numbers(self.shuffled()), [], None
        for _ in range(5):
            loader = self.shuffled(num_workers=1)
            if state:
                loader.load_state_dict(state)
            got += begun(loader, 3)
            state = loader.state_dict()
        self.assertEqual(got, whole)

    def test_nothing_before_the_place_is_read(self):
        loader = self.loader(Counting(1000), batch_size=10, shuffle=True)
        loader.load_state_dict({**loader.state_dict(), "step": 99})
        all_numbers(loader)
        self.assertEqual(len(loader.dataset.asked), 10)

    def test_a_billion_samples_are_resumed_at_once(self):
        loader = self.loader(Numbers(10**9), batch_size=10, shuffle=True)
        loader.load_state_dict({**loader.state_dict(), "epoch": 40,
                                "step": 99_999_999})
        self.assertEqual(len(all_numbers(loader)), 10)

    def test_a_state_that_was_loaded_is_the_state(self):
        loader = self.shuffled()
        state = {**loader.state_dict(), "epoch": 4, "step": 2}
        loader.load_state_dict(state)
        self.assertEqual(loader.state_dict(), state)

    def test_a_seed_that_was_not_given_comes_from_the_state(self):
        first, second = self.shuffled(), self.shuffled(seed=None)
        taken = begun(first, 4)
        second.load_state_dict(first.state_dict())
        self.assertEqual(taken + all_numbers(second),
                         all_numbers(self.shuffled()))

    def test_persistent_workers_resume(self):
        loader = self.shuffled(num_workers=2, persistent_workers=True)
        whole = all_numbers(loader)
        begun(loader, 3)
        loader.load_state_dict({**loader.state_dict(), "epoch": 0, "step": 3})
        self.assertEqual(all_numbers(loader), whole[21:])


class Refusals(Case):
    def no_resume(self, code, state, *arguments, **named):
        loader = self.loader(*arguments, **named)
        with self.refused(RequestError, code) as refused:
            loader.load_state_dict(state)
        return str(refused.error)

    def setUp(self):
        super().setUp()
        self.state = self.loader(Numbers(10), batch_size=2, shuffle=True,
                                 seed=1).state_dict()

    def test_other_data(self):
        text = self.no_resume("resume.other_data", self.state, Numbers(11),
                              batch_size=2, shuffle=True, seed=1)
        self.assertIn("had 10 samples, and has 11 now", text)

    def test_another_order(self):
        for named in ({"batch_size": 3, "shuffle": True, "seed": 1},
                      {"batch_size": 2, "seed": 1},
                      {"batch_size": 2, "shuffle": True, "seed": 2},
                      {"batch_size": 2, "shuffle": True, "seed": 1,
                       "drop_last": True}):
            self.no_resume("resume.other_order", self.state, Numbers(10),
                           **named)

    def test_what_is_no_state(self):
        for state in ({}, None, {"epoch": "x"}, 7,
                      *({**self.state, name: value} for name, value in (
                          ("v", 2), ("epoch", -1), ("step", -1),
                          ("step", 1.5), ("n", None)))):
            self.no_resume("resume.no_state", state, Numbers(10), batch_size=2,
                           shuffle=True, seed=1)


class Replay(Case):
    def test_a_sampler_of_the_user_is_drawn_from_again(self):
        for workers in (0, 2):
            def loader():
                return self.loader(Numbers(20), batch_size=3,
                                   sampler=list(reversed(range(20))),
                                   num_workers=workers)
            first, second = loader(), loader()
            taken = begun(first, 2)
            second.load_state_dict(first.state_dict())
            self.assertEqual(taken + all_numbers(second),
                             list(reversed(range(20))))

    def test_items_before_the_place_are_not_fetched(self):
        data = Counting(20)
        loader = self.loader(data, batch_size=5, sampler=range(20))
        loader.load_state_dict({**loader.state_dict(), "step": 3})
        all_numbers(loader)
        self.assertEqual(data.asked, [15, 16, 17, 18, 19])

    def test_a_data_set_without_length_resumes(self):
        def loader():
            return self.loader(sets.NoLength(), batch_size=2,
                               sampler=[5, 3, 1, 4])
        first, second = loader(), loader()
        begun(first, 1)
        second.load_state_dict(json.loads(json.dumps(first.state_dict())))
        self.assertEqual(all_numbers(second), [1, 4])

    def test_a_sampler_that_became_shorter_is_an_error(self):
        loader = self.loader(Numbers(20), batch_size=5, sampler=range(10))
        loader.load_state_dict({**loader.state_dict(), "step": 3})
        with self.refused(RequestError, "resume.other_data",
                          "ended after 2 batches"):
            all_numbers(loader)

    def test_an_iterable_data_set_is_read_again(self):
        for workers, data in ((0, Stream(11)), (1, Stream(11)),
                              (3, Shares([2, 7, 0]))):
            whole = [numbers(batch) for batch in self.loader(
                data, batch_size=2, num_workers=workers)]
            for steps in range(len(whole) + 1):
                first = self.loader(data, batch_size=2, num_workers=workers)
                begun(first, steps)
                second = self.loader(data, batch_size=2, num_workers=workers)
                second.load_state_dict(first.state_dict())
                self.assertEqual([numbers(batch) for batch in second],
                                 whole[steps:], (workers, steps))

    def test_a_stream_that_became_shorter_is_an_error(self):
        for workers in (0, 1):
            loader = self.loader(Stream(4), batch_size=2, num_workers=workers)
            loader.load_state_dict({**loader.state_dict(), "step": 5})
            with self.refused(RequestError, "resume.other_data",
                              "ended after 2 batches"):
                all_numbers(loader)

    @needs_torch
    def test_a_generator_is_seeded_again_and_walked(self):
        def loader():
            return self.loader(
                Numbers(30), batch_size=4, shuffle=True,
                generator=torch.Generator().manual_seed(8))
        whole = loader()
        epochs = [all_numbers(whole) for _ in range(3)]
        first, second = loader(), loader()
        all_numbers(first), all_numbers(first)
        taken = begun(first, 5)
        second.load_state_dict(first.state_dict())
        self.assertEqual(taken + all_numbers(second), epochs[2])
        self.assertEqual(all_numbers(second), all_numbers(whole))
        second.load_state_dict(first.state_dict())

    @needs_torch
    def test_a_loop_that_counts_its_steps_is_walked_the_same(self):
        def loader():
            return self.loader(
                Numbers(12), batch_size=4, shuffle=True,
                generator=torch.Generator().manual_seed(8))
        first, second, whole = loader(), loader(), loader()
        begun(first, 3)  # and nobody asks for the end
        begun(first, 3)
        second.load_state_dict(first.state_dict())
        all_numbers(whole), all_numbers(whole)
        expected = all_numbers(whole)
        self.assertEqual(all_numbers(first), expected)
        self.assertEqual(all_numbers(second), expected)

    @needs_torch
    def test_an_order_that_a_seed_does_not_give_again_is_refused(self):
        def used_before(generator, loader):
            torch.rand(1, generator=generator)

        def used_between(generator, loader):
            all_numbers(loader)
            torch.rand(1, generator=generator)

        def left_early(generator, loader):
            begun(loader, 1)

        def jumped(generator, loader):
            loader.set_epoch(3)

        for spoil in used_before, used_between, left_early, jumped:
            with self.subTest(spoil.__name__):
                generator = torch.Generator().manual_seed(8)
                loader = self.loader(Numbers(30), batch_size=4, shuffle=True,
                                     generator=generator)
                good = loader.state_dict()
                spoil(generator, loader)
                begun(loader, 2)
                with self.assertWarnsRegex(UserWarning, "no loader can resume"):
                    state = loader.state_dict()
                self.assertLessEqual(len(json.dumps(state)), 128)
                with self.refused(RequestError, "resume.other_order",
                                  "cannot restore the order"):
                    loader.load_state_dict(state)
                loader.load_state_dict(good)
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    all_numbers(loader), begun(loader, 2), loader.state_dict()

    @needs_torch
    def test_a_generator_that_orders_nothing_may_be_left_early(self):
        for data, more in ((Numbers(30), {}), (Stream(30), {})):
            def loader():
                return self.loader(data, batch_size=4, num_workers=1,
                                   generator=torch.Generator().manual_seed(8))
            first, second = loader(), loader()
            begun(first, 3), begun(first, 2)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                second.load_state_dict(first.state_dict())
            self.assertEqual(all_numbers(second), list(range(8, 30)))

    @needs_torch
    def test_a_seed_that_was_drawn_gives_way_to_the_states(self):
        torch.manual_seed(1)
        first, second = (self.loader(Numbers(30), batch_size=4, shuffle=True)
                         for _ in range(2))
        taken = begun(first, 3)
        begun(second, 1)
        second.load_state_dict(first.state_dict())
        whole = taken + all_numbers(second)
        self.assertEqual(sorted(whole), list(range(30)))
        first.set_epoch(0)
        self.assertEqual(whole, all_numbers(first))


class Copies(Case):
    def test_a_loader_can_be_pickled_and_copied(self):
        loader = self.loader(Numbers(10), batch_size=3, shuffle=True, seed=1,
                             num_workers=1)
        expected = all_numbers(loader)
        for other in (pickle.loads(pickle.dumps(loader)),
                      copy.deepcopy(loader)):
            self._loaders.append(other)
            other.set_epoch(0)
            self.assertEqual(all_numbers(other), expected)

    def test_an_iterator_cannot_be_pickled(self):
        with self.assertRaises(NotImplementedError):
            pickle.dumps(iter(self.loader(Numbers(3))))


class OnBad(Case):
    def data(self):
        return sets.Bad(20, bad={3, 11}, error=OSError)

    def test_substitutes_are_the_same_whoever_fetches(self):
        got = []
        for workers in (0, 1, 2):
            loader = self.loader(self.data(), batch_size=4, seed=1,
                                 num_workers=workers, on_bad="substitute")
            ids = sum((numbers(y) for _, y in loader), [])
            self.assertEqual(ids[:3] + ids[4:11] + ids[12:],
                             [i for i in range(20) if i not in (3, 11)])
            self.assertFalse({3, 11} & set(ids))
            got.append(ids)
            self.assertEqual([bad["index"] for bad in loader.stats()["bad"]],
                             [3, 11])
        self.assertEqual(got[0], got[1])
        self.assertEqual(got[0], got[2])

    def test_what_was_bad_is_told(self):
        loader = self.loader(self.data(), batch_size=4, on_bad="substitute")
        list(loader)
        self.assertEqual(loader.stats()["bad"][1], {
            "epoch": 0, "step": 2, "row": 3, "index": 11,
            "error": "OSError: row 11 is broken"})

    def test_a_bad_row_whose_error_has_no_text_is_told_too(self):
        for workers in (0, 2):
            loader = self.loader(
                sets.Bad(20, bad={3}, error=sets.Speechless), batch_size=4,
                on_bad="substitute", num_workers=workers)
            self.assertEqual(len(list(loader)), 5)
            self.assertEqual(loader.stats()["bad"][0]["error"],
                             "Speechless, whose text cannot be made")

    def test_a_mask_weighs_bad_rows_by_nothing(self):
        for workers in (0, 2):
            loader = self.loader(self.data(), batch_size=10, on_bad="mask",
                                 num_workers=workers)
            weights = [weights.tolist() for _, weights in loader]
            self.assertEqual(weights[0], [1.0] * 3 + [0.0] + [1.0] * 6)
            self.assertEqual(weights[1], [1.0, 0.0] + [1.0] * 8)

    def test_too_many_end_the_loop(self):
        loader = self.loader(sets.Bad(50, bad=set(range(30)), error=OSError),
                             on_bad="substitute", max_bad=5, seed=1)
        with self.refused(TransformError, "loader.too_many_bad",
                          "6 samples were bad"):
            list(loader)

    def test_when_no_sample_is_good_the_error_is_raised(self):
        loader = self.loader(sets.Bad(9, bad=set(range(9)), error=OSError),
                             on_bad="substitute", num_workers=1)
        with self.assertRaisesRegex(OSError, "10 samples in its place"):
            list(loader)


if __name__ == "__main__":
    main()
