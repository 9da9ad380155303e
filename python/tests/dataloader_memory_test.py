"""Shared memory: reuse, growth, and what keeps a batch alive."""
import gc
import importlib.machinery
import os
import pathlib
import sys
import types
import unittest

import numpy as np

import dataloader_sets as sets
from dataloader_case import Case, needs_torch, numbers, torch
from entry import main
from penstock._dataloader import packing
from penstock._dataloader.assembly_table import (AssemblyTable,
                                                make_assembly_table)
from penstock._dataloader.memory import (_HEADER, Reader, Ref, SlotTracker,
                                         Writer, make_memory)
from penstock._dataloader.preloading import (NewModules, known_here,
                                             received_names)


def private_kib():
    text = pathlib.Path("/proc/self/smaps_rollup").read_text()
    return sum(int(line.split()[1]) for line in text.splitlines()
               if line.startswith("Private_Dirty"))


class Slots(unittest.TestCase):
    def setUp(self):
        self.fd = make_memory("test")
        self.addCleanup(os.close, self.fd)
        self.writer, self.reader = Writer(self.fd), Reader(self.fd)

    def write(self, text):
        ref, view = self.writer.take(len(text))
        view[:] = text
        return ref

    def test_what_was_written_is_read(self):
        texts = [bytes([i]) * (1 << i) for i in range(1, 22)]
        refs = [self.write(text) for text in texts]
        for ref, text in zip(refs, texts):
            self.assertEqual(bytes(self.reader.view(ref)), text)

    def test_a_slot_is_reused_after_its_release_alone(self):
        first, second = self.write(b"a" * 5000), self.write(b"b" * 5000)
        self.assertNotEqual(first, second)
        self.reader.release(first)
        self.assertEqual(self.write(b"c" * 4990)[0], first[0])
        self.assertEqual(bytes(self.reader.view(second)), b"b" * 5000)

    def test_sizes_that_differ_a_little_share_slots(self):
        for size in range(100_000, 200_000, 1000):
            self.reader.release(self.write(b"x" * size))
        self.assertLess(os.fstat(self.fd).st_blocks * 512, 3_000_000)

    def test_memory_that_is_not_used_any_more_is_given_back(self):
        refs = [self.write(b"x" * 100_000) for _ in range(100)]
        full = os.fstat(self.fd).st_blocks
        for ref in refs:
            self.reader.release(ref)
        for _ in range(200):
            self.reader.release(self.write(b"y" * 100_000))
        self.assertLess(os.fstat(self.fd).st_blocks, full / 4)
        refs = [self.write(bytes([i]) * 100_000) for i in range(50)]
        for i, ref in enumerate(refs):  # the slots still work
            self.assertEqual(bytes(self.reader.view(ref)), bytes([i]) * 100_000)

    def test_a_writer_that_waits_gives_all_free_slots_back(self):
        kept = self.write(b"k" * 100_000)
        for ref in [self.write(b"x" * 100_000) for _ in range(3)]:
            self.reader.release(ref)
        self.writer.give_back()
        self.assertLess(os.fstat(self.fd).st_blocks * 512, 250_000)
        self.assertEqual(bytes(self.reader.view(kept)), b"k" * 100_000)
        again = self.write(b"y" * 100_000)
        self.assertEqual(bytes(self.reader.view(again)), b"y" * 100_000)

    def test_growth_costs_few_descriptors(self):
        before = len(os.listdir("/proc/self/fd"))
        refs = [self.write(b"x" * 50_000) for _ in range(1000)]
        for ref in refs:
            self.reader.view(ref)
        self.assertLess(len(os.listdir("/proc/self/fd")) - before, 20)

    def test_a_lent_slot_is_free_when_the_last_array_is_gone(self):
        held = SlotTracker()
        ref = self.write(np.arange(10_000, dtype=np.int64).tobytes())
        whole = np.frombuffer(held.lend(self.reader, ref), np.int64)
        part = whole[5000:5010][::2]
        del whole
        gc.collect()
        self.assertEqual(len(held), 1)
        self.assertNotEqual(self.write(b"z" * 80_000)[0], ref[0])
        self.assertEqual(part.tolist(), [5000, 5002, 5004, 5006, 5008])
        del part
        gc.collect()
        self.assertEqual(len(held), 0)
        self.assertEqual(self.write(b"z" * 80_000)[0], ref[0])


class Letters(unittest.TestCase):
    def setUp(self):
        self.fd = make_memory("test")
        self.addCleanup(os.close, self.fd)
        self.writer, self.reader = Writer(self.fd), Reader(self.fd)
        self.held = SlotTracker()

    def sent(self, thing, inline=packing.INLINE):
        message = packing.seal(thing, self.writer, inline)
        return packing.Message(message, self.reader).open(self.held)

    def test_small_and_large_things_come_back(self):
        for count in (1, 100, 100_000):
            thing = {"a": np.arange(count), "b": ["text", None, (1, 2.5)]}
            back = self.sent(thing)
            self.assertEqual(back["a"].tolist(), thing["a"].tolist())
            self.assertEqual(back["b"], thing["b"])

    def test_arrays_of_every_kind_come_back_writable(self):
        for count in (3, 3000):
            for array in (np.arange(count, dtype=np.float16),
                          np.ones((count, 2), np.bool_)[:, ::-1],
                          np.asfortranarray(np.ones((count, 3), np.int8)),
                          np.arange(count).astype("M8[s]"),
                          np.array(["a", "bc"] * count),
                          np.zeros((0, count)), np.array(3, np.float32)):
                back = self.sent([array])[0]
                self.assertEqual((back.dtype, back.shape),
                                 (array.dtype, array.shape))
                self.assertTrue((back == array).all())
                back[...] = back

    def test_large_arrays_are_not_pickled_and_lie_aligned(self):
        parts = packing.flatten([np.zeros(10_000), np.zeros(20_000)])
        self.assertEqual([part.nbytes for part in parts[1:]],
                         [80_000, 160_000])
        self.assertLess(parts[0].nbytes, 1000)
        for array in self.sent([np.zeros(1001), np.zeros(999)], inline=0):
            self.assertEqual(array.ctypes.data % 64, 0)

    def test_a_copy_frees_its_slot_at_once(self):
        message = packing.seal(np.zeros(9000), self.writer)
        kept = packing.Message(message, self.reader).open_copy()
        again = packing.seal(np.ones(9000), self.writer)
        self.assertEqual(message, again)
        self.assertEqual(kept.sum(), 0)

    def test_a_discarded_letter_frees_its_slot(self):
        message = packing.seal(np.zeros(9000), self.writer)
        packing.Message(message, self.reader).discard()
        self.assertEqual(packing.seal(np.zeros(9000), self.writer), message)

    @needs_torch
    def test_tensors_of_every_kind_come_back(self):
        for count in (3, 3000):
            for dtype in (torch.float32, torch.float64, torch.float16,
                          torch.bfloat16, torch.int8, torch.uint8, torch.int16,
                          torch.int64, torch.bool, torch.complex64):
                tensor = torch.ones(count, 2).to(dtype)[:, 1:]
                back = self.sent([tensor])[0]
                self.assertEqual(back.dtype, dtype)
                self.assertTrue(torch.equal(back, tensor))
                back.zero_()
        for tensor in (torch.tensor(5), torch.zeros(0, 4)):
            self.assertTrue(torch.equal(self.sent(tensor), tensor))

    @needs_torch
    def test_tensors_that_are_more_than_numbers_are_pickled_whole(self):
        weight = torch.nn.Parameter(torch.ones(3000))
        back = self.sent(weight)
        self.assertIsInstance(back, torch.nn.Parameter)
        self.assertTrue(back.requires_grad)
        sparse = torch.eye(5).to_sparse()
        self.assertTrue(torch.equal(self.sent(sparse).to_dense(),
                                    torch.eye(5)))


class Pieces(unittest.TestCase):
    def setUp(self):
        self.fd = make_assembly_table()
        self.addCleanup(os.close, self.fd)
        self.table = AssemblyTable(self.fd)
        self.table.round = 1

    def ref(self, slot):
        return Ref((slot, 0, 0, 0, 0))

    def test_the_last_part_gets_all_in_order(self):
        for part in (2, 0, 3):
            self.assertEqual(self.table.add(1, 7, part, 4, part % 2,
                                            self.ref(part)), (None, []))
        complete, void = self.table.add(1, 7, 1, 4, 1, self.ref(1))
        self.assertEqual(complete, [(0, self.ref(0)), (1, self.ref(1)),
                                    (0, self.ref(2)), (1, self.ref(3))])
        self.assertEqual(void, [])

    def test_an_entry_is_free_for_a_later_batch(self):
        for batch in (3, 3 + 64, 3 + 128):
            self.table.add(1, batch, 0, 2, 0, self.ref(1))
            complete, _ = self.table.add(1, batch, 1, 2, 0, self.ref(2))
            self.assertEqual(len(complete), 2)

    def test_parts_of_a_batch_that_failed_complete_no_later_one(self):
        add, ref = self.table.add, self.ref
        self.assertEqual(add(1, 3, 0, 3, 0, ref(1)), (None, []))
        # Its second part could not be noted; 64 behind it:
        self.assertEqual(add(1, 67, 0, 2, 0, ref(2)), (None, [(0, ref(1))]))
        self.assertEqual(add(1, 3, 2, 3, 1, ref(3)), (None, [(1, ref(3))]))
        self.assertEqual(add(1, 67, 1, 2, 1, ref(4)),
                         ([(0, ref(2)), (1, ref(4))], []))

    def test_parts_of_an_earlier_round_are_void(self):
        self.table.add(1, 5, 0, 2, 0, self.ref(8))
        self.table.round = 2
        self.assertEqual(self.table.add(1, 5, 1, 2, 1, self.ref(9)),
                         (None, [(1, self.ref(9))]))
        complete, void = self.table.add(2, 5, 0, 2, 0, self.ref(3))
        self.assertEqual((complete, void), (None, [(0, self.ref(8))]))
        self.assertEqual(len(self.table.add(2, 5, 1, 2, 0, self.ref(4))[0]),
                         2)


class Batches(Case):
    def test_held_batches_keep_what_they_hold(self):
        loader = self.loader(sets.Of(60, sets.big), batch_size=1,
                             num_workers=2)
        held = [np.asarray(batch)[0, 0, 0] * 1 for batch in loader]
        kept = list(loader)
        self.assertEqual([int(value) for value in held], list(range(60)))
        for i, batch in enumerate(kept):
            self.assertTrue((np.asarray(batch) == i).all())

    def test_a_loop_that_drops_its_batches_uses_a_few_slots(self):
        loader = self.loader(sets.Of(200, sets.big), batch_size=1,
                             num_workers=1)
        places = {np.asarray(batch).ctypes.data for batch in loader}
        self.assertLess(len(places), 8)

    def test_batches_outlive_loop_and_loader(self):
        loader = self.loader(sets.Of(4, sets.big), batch_size=2, num_workers=1)
        first = next(iter(loader))
        loader.close()
        del loader
        gc.collect()
        self.assertTrue((np.asarray(first)[1] == 1).all())

    def test_a_batch_belongs_to_whoever_got_it(self):
        loader = self.loader(sets.Of(30, sets.big), batch_size=1,
                             num_workers=2)
        for i, batch in enumerate(loader):
            self.assertTrue((np.asarray(batch) == i).all())
            batch[...] = -1  # must not show in a later one

    def lent_slots(self, loop):
        """Of the tasks' memory and of each worker's."""
        return [os.pread(fd, _HEADER, 0).count(1)
                for fd in loop.fetch.pool._fds[1:]]

    def test_a_loop_that_is_left_lets_go_of_what_had_come(self):
        loader = self.loader(sets.Of(8, sets.first_is_late), num_workers=2,
                             prefetch_factor=4, persistent_workers=True)
        for _ in range(3):
            next(iter(loader))  # the others came before it
        loop = iter(loader)
        for _ in loop:
            pass
        del _
        self.assertEqual(self.lent_slots(loop), [0, 0, 0])

    def test_a_loop_that_is_left_lets_go_of_tasks_that_waited(self):
        name = "x" * 2 * packing.INLINE  # its task lies in a slot
        loader = self.loader({name: 1}, batch_sampler=[[name]] * 600,
                             num_workers=1, prefetch_factor=600,
                             persistent_workers=True)
        loop = iter(loader)
        self.assertGreater(len(loop.fetch.pool._pending), 0)
        self.assertIs(iter(loader), loop)
        for _ in loop:
            pass
        self.assertEqual(self.lent_slots(loop), [0, 0])

    def test_sizes_that_differ_from_batch_to_batch(self):
        loader = self.loader(sets.Of(60, sets.sizes_differ), batch_size=1,
                             num_workers=2)
        for i, batch in enumerate(loader):
            self.assertEqual(batch.shape[1], (i * 7919 % 50_000) + 1)
            self.assertTrue((np.asarray(batch) == i).all())

    def test_holding_many_batches_is_told_once(self):
        loader = self.loader(sets.Of(80, sets.big), batch_size=1,
                             num_workers=1)
        with self.assertLogs("penstock", "WARNING") as logs:
            kept = list(loader)
        self.assertEqual(len(kept), 80)
        self.assertEqual(len(logs.output), 1)
        self.assertRegex(logs.output[0], r"holds \d+ batches.* MB")

    def test_a_data_set_of_large_arrays_travels(self):
        class_ = sets.Images
        data = class_(8, shape=(2, 3))
        data.table = np.arange(3_000_000)
        loader = self.loader(data, batch_size=4, num_workers=2)
        for _ in range(2):
            self.assertEqual(sum((numbers(y) for _, y in loader), []),
                             list(range(8)))
        data.table[5] = 0  # arrays are part of what is compared
        self.assertEqual(len(list(loader)), 2)


class Modules(unittest.TestCase):
    def test_a_forked_process_shares_what_it_knows_of_modules(self):
        names = [f"no_module_{i}_{'x' * 3000}" for i in range(1000)]
        sys.modules.update(dict.fromkeys(names, sys))
        self.addCleanup(lambda: [sys.modules.pop(name) for name in names])
        known_here()
        told, tells = os.pipe2(os.O_NONBLOCK)
        answer, answers = os.pipe()
        for fd in (told, tells, answer, answers):
            self.addCleanup(os.close, fd)
        pid = os.fork()
        if pid == 0:
            private_kib()
            before = private_kib()
            modules = NewModules(tells)
            grown = private_kib() - before
            sys.modules["this"] = types.ModuleType("this")
            sys.modules["this"].__spec__ = importlib.machinery.ModuleSpec(
                "this", None)
            modules.tell()
            os.write(answers, b"%d" % grown)
            os._exit(0)
        os.waitpid(pid, 0)
        self.assertLess(int(os.read(answer, 100)), 1000)  # each has a page
        self.assertEqual(received_names(told), ["this"])


if __name__ == "__main__":
    main()
