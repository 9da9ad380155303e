"""A batch and what other libraries make of it: values, memory, lifetimes."""
import ctypes
import gc
import itertools
import os
import pathlib
import pickle
import threading
import unittest

import numpy as np

import penstock
from entry import main
from positions import BATCH, Case, DEVICES, has, run_python

# tools/install.sh puts it there.
OLDEST = pathlib.Path(os.environ.get(
    "XDG_CACHE_HOME", pathlib.Path.home() / ".cache"),
    "penstock", "python-oldest-numpy")
NAMES = ["receivers", "receivers_mask", "target", "number"]


class Batches(Case):
    def batch(self, **arguments):
        return self.open(**arguments).peek()

    def test_is_a_mapping_that_unpacks_in_order(self):
        batch = self.batch()
        self.assertEqual(batch.keys(), NAMES)
        self.assertLessEqual({*NAMES, "row_keys", "torch"}, set(dir(batch)))
        self.assertEqual(batch._ipython_key_completions_(), NAMES)
        self.assertEqual(list(dict(batch)), NAMES)
        self.assertEqual(list({**batch}), NAMES)
        self.assertEqual([n for n, _ in batch.items()], NAMES)
        receivers, mask, target, number = batch
        self.assertEqual([f.name for f in (receivers, mask, target, number)],
                         NAMES)
        self.assertEqual([f.name for f in batch.values()], NAMES)
        self.assertEqual((len(batch), batch[1].name, batch[-1].name),
                         (4, "receivers_mask", "number"))
        self.assertIn("target", batch)
        self.assertNotIn("targets", batch)
        self.assertNotIn(3, batch)

    def test_names_the_nearest_field(self):
        batch = self.batch()
        with self.assertRaisesRegex(KeyError, "targe.*'target'"):
            batch["targe"]
        with self.assertRaisesRegex(AttributeError, "recivers.*'receivers'"):
            batch.recivers
        self.assertFalse(hasattr(batch, "other"))
        with self.assertRaises(IndexError):
            batch[4]
        with self.assertRaises(TypeError):
            batch[1.5]

    def test_says_what_it_holds(self):
        batch = self.batch()
        self.assertEqual((batch.epoch, batch.step, batch.rows), (0, 0, BATCH))
        self.assertEqual(batch.ids.dtype, np.int64)
        self.assertEqual((batch.ids + 1).tolist(), batch.row_keys)
        self.assertEqual(batch.number.numpy()[:, 0].tolist(), batch.row_keys)
        self.assertEqual(repr(batch), (
            "<penstock.Batch epoch 0 step 0: receivers float32 [24, 5, 3], "
            "receivers_mask float32 [24, 5], target float32 [24, 2], number "
            "int64 [24, 1]>"))

    def test_padding_has_no_key(self):
        *_, last = self.open(loader__tail="pad")
        self.assertEqual([k is None for k in last.row_keys],
                         (last.ids == -1).tolist())
        self.assertEqual(last.weight.numpy().tolist(),
                         (last.ids != -1).astype("f4").tolist())

    def test_a_field_describes_itself(self):
        field = self.batch().receivers
        self.assertEqual((field.name, field.shape, field.dtype, field.ndim,
                          field.nbytes, len(field)),
                         ("receivers", (24, 5, 3), "float32", 3, 1440, 24))
        self.assertEqual(repr(field),
                         "<penstock.Field 'receivers' float32 [24, 5, 3]>")

    def test_is_not_pickled(self):
        with self.assertRaisesRegex(TypeError, "not pickled"):
            pickle.dumps(self.batch())

    def test_numpy_reads_the_batchs_own_memory(self):
        for device in DEVICES:
            batch = self.batch(device=device)
            for name, array in batch.numpy().items():
                field = batch[name]
                self.assertEqual((array.shape, str(array.dtype)),
                                 (field.shape, field.dtype))
                for other in (np.asarray(field), np.from_dlpack(field),
                              field.numpy()):
                    self.assertEqual(other.ctypes.data, array.ctypes.data)
                    np.testing.assert_array_equal(other, array)
                self.assertTrue(array.flags.writeable)
                self.assertEqual(array.ctypes.data % 64, 0)

    @unittest.skipUnless(OLDEST.is_dir(), f"no numpy in {OLDEST}")
    def test_the_oldest_numpy_reads_and_writes_it_too(self):
        done = run_python("""
import sys
sys.path.insert(0, sys.argv[1])
import numpy, penstock._rows.callables
assert numpy.__file__.startswith(sys.argv[1])
given = {name: numpy.arange(10).astype(name) for name in
         penstock._rows.callables.DTYPES}
loader = penstock.Loader(given, batch_size=4, num_workers=2)
loader.map(lambda row: {**row, "more": row["bool"]})
for batch in loader:
    for name, array in batch.numpy().items():
        wanted = given.get(name, given["bool"])
        assert array.dtype == wanted.dtype, name
        assert (array == wanted[batch.ids]).all(), name
        array[:] = 1
        assert (numpy.asarray(batch[name]) == 1).all(), name
        assert array.base is not None and array.flags.writeable
""", OLDEST)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_is_the_same_on_sim_as_on_cpu(self):
        arrays = [self.batch(device=device).numpy() for device in DEVICES]
        for name in NAMES:
            np.testing.assert_array_equal(arrays[0][name], arrays[1][name])

    def test_dlpack_does_as_the_standard_says(self):
        field = self.batch().target
        self.assertEqual(field.__dlpack_device__(), (1, 0))
        name = ctypes.pythonapi.PyCapsule_GetName
        name.argtypes, name.restype = [ctypes.py_object], ctypes.c_char_p
        for version, expected in ((None, b"dltensor"), ((0, 8), b"dltensor"),
                                  ((1, 0), b"dltensor_versioned"),
                                  ((2, 3), b"dltensor_versioned")):
            capsule = field.__dlpack__(max_version=version)
            self.assertEqual(name(capsule), expected)
        field.__dlpack__(dl_device=(1, 0), copy=False)
        with self.assertRaises(BufferError):
            field.__dlpack__(dl_device=(2, 0))
        with self.assertRaises(BufferError):
            field.__dlpack__(stream=1)
        with self.assertRaises(TypeError):
            field.__dlpack__(1)

    def test_a_copy_has_memory_of_its_own(self):
        field = self.batch().target
        copy = np.from_dlpack(field, copy=True)
        np.testing.assert_array_equal(copy, field.numpy())
        self.assertNotEqual(copy.ctypes.data, field.numpy().ctypes.data)


class Lifetimes(Case):
    def test_memory_outlives_batch_loader_and_close(self):
        for ending in ("close", "delete"):
            loader = penstock.open(self.path)
            batch = next(iter(loader))
            arrays = batch.numpy()
            kept = {name: array.copy() for name, array in arrays.items()}
            piece = arrays["receivers"][3:5, 1]
            if ending == "close":
                loader.close()
                np.testing.assert_array_equal(np.asarray(batch.target),
                                              kept["target"])
                with self.refused(penstock.RequestError, "loader.closed"):
                    batch.row_keys
            del loader, batch, arrays
            gc.collect()
            np.testing.assert_array_equal(piece, kept["receivers"][3:5, 1])

    def test_whatever_goes_first_the_rest_stays(self):
        for order in itertools.permutations(
                ["loader", "batch", "field", "array", "capsule"]):
            loader = penstock.open(self.path, loader__workers=1)
            batch = next(iter(loader))
            field = batch.target
            held = {"loader": loader, "batch": batch, "field": field,
                    "array": field.numpy(), "capsule": field.__dlpack__()}
            kept = held["array"].copy()
            del loader, batch, field
            for name in order:
                if "array" in held:
                    np.testing.assert_array_equal(held["array"], kept)
                del held[name]
                gc.collect()

    def test_memory_returns_to_the_ring_with_its_last_user(self):
        loader = self.open(loader__workers=1)
        addresses = set()
        for batch in loader.batches(200):
            addresses.add(batch.target.numpy().ctypes.data)
        self.assertLessEqual(len(addresses), 4)  # 2 + prefetch

    def test_memory_in_use_is_never_written_to(self):
        loader = self.open(loader__workers=2)
        slices = []
        for batch in loader.batches(3):
            array = batch.receivers.numpy()
            slices.append((array[::2], array[::2].copy()))
        del batch, array
        for batch in loader.batches(100):
            pass
        for view, copy in slices:
            np.testing.assert_array_equal(view, copy)

    def test_a_loop_that_holds_many_batches_is_told_so(self):
        loader = self.open(loader__workers=1, loader__prefetch=2)
        with self.assertLogs("penstock", "WARNING") as told:
            held = list(loader)
        self.assertIn("grows by one", told.output[0])
        self.assertEqual(len({b.target.numpy().ctypes.data for b in held}),
                         len(held))

    def test_memory_can_be_given_back_by_any_thread(self):
        loader = self.open(loader__workers=2)
        for batch in loader.batches(50):
            arrays = [batch.numpy()]
            del batch
            thread = threading.Thread(target=arrays.clear)
            thread.start()
            thread.join()

    def test_several_threads_take_turns(self):
        loader = self.open(loader__workers=2)
        batches, seen = loader.batches(400), []

        def take():
            for batch in iter(lambda: next(batches, None), None):
                seen.append((batch.epoch, batch.step))

        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(seen), len(set(seen)))
        self.assertGreaterEqual(len(seen), 400)


@unittest.skipUnless(has("torch"), "torch is not installed")
class WithTorch(Case):
    def test_tensors_lie_on_the_batchs_memory(self):
        import torch
        for device in DEVICES:
            batch = self.open(device=device).peek()
            arrays = batch.numpy()
            for name, tensor in batch.torch().items():
                self.assertEqual(tensor.data_ptr(), arrays[name].ctypes.data)
                self.assertEqual(tuple(tensor.shape), batch[name].shape)
                self.assertEqual(str(tensor.dtype),
                                 "torch." + batch[name].dtype)
                for other in (torch.from_dlpack(batch[name]),
                              torch.as_tensor(batch[name]),
                              batch[name].torch(), batch.to("cpu")[name],
                              batch[name].to("cpu")):
                    self.assertTrue(torch.equal(other, tensor))

    def test_a_type_that_numpy_lacks_is_said_to_be_missing(self):
        import torch
        given = torch.ones(4, 2, dtype=torch.bfloat16)
        with penstock.Loader({"x": given}, batch_size=4) as loader:
            batch = loader.peek()
            with self.assertRaisesRegex(BufferError, "no bfloat16"):
                batch.numpy()
            self.assertTrue(torch.equal(batch.x.torch(), given))

    def test_a_graph_keeps_the_memory_until_backward(self):
        import torch
        loader = self.open(loader__workers=1)
        weight = torch.ones(2, requires_grad=True)
        batches = loader.batches()
        batch = next(batches)
        expected = batch.target.numpy().copy().sum(0)
        loss = (batch.target.torch() * weight).sum()
        del batch
        for _ in range(20):
            next(batches)
        loss.backward()
        np.testing.assert_allclose(weight.grad.numpy(), expected, rtol=1e-5)

    def test_two_changed_lines_train(self):
        import torch
        loader = self.open()
        model = torch.nn.Linear(15, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        losses = []
        for _ in range(3):
            for batch in loader:
                tensors = batch.torch()
                with loader.step():
                    loss = torch.nn.functional.mse_loss(
                        model(tensors["receivers"].flatten(1)),
                        tensors["target"])
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                losses.append(float(loss.detach()))
        self.assertLess(losses[-1], losses[0])
        self.assertGreater(loader.stats()["au"], 0)


@unittest.skipUnless(has("jax"), "JAX is not installed")
class WithJax(Case):
    def test_arrays_equal_numpys(self):
        batch = self.open().peek()
        for name, array in batch.jax().items():
            np.testing.assert_array_equal(np.asarray(array),
                                          batch[name].numpy())


if __name__ == "__main__":
    main()
