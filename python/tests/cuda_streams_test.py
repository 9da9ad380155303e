"""Loops over batches on GPUs that are not there: the device `cuda` over the
stand-in for the CUDA runtime (tests/cuda_standin), whose streams are threads and
take a random time. A consumer is what reads a batch's memory by DLPack on a
stream of its own, as torch and JAX do."""
import ctypes
import gc
import os
import subprocess
import sys
import threading
import types
import unittest
import weakref

import numpy

import penstock
from entry import main

STANDIN = os.environ.get("PENSTOCK_CUDA_STANDIN", "")
NON_BLOCKING, DEFAULT_KIND = 1, 4
ROWS, BATCH = 1000, 64


class Cuda:
    """The calls of the runtime that a consumer makes."""

    def __init__(self):
        self.library = ctypes.CDLL(STANDIN)
        self.library.cuda_standin_used.restype = ctypes.c_size_t

    def call(self, name, *arguments):
        result = getattr(self.library, name)(*arguments)
        if result != 0:
            raise RuntimeError(f"{name}: {result}")

    def stream(self, device):
        handle = ctypes.c_void_p()
        self.call("cudaSetDevice", device)
        self.call("cudaStreamCreateWithFlags", ctypes.byref(handle),
                  NON_BLOCKING)
        return handle.value

    def used(self, device):
        return self.library.cuda_standin_used(device)

    def copy(self, to, address, nbytes, stream):
        self.call("cudaMemcpyAsync", ctypes.c_void_p(to),
                  ctypes.c_void_p(address), ctypes.c_size_t(nbytes),
                  DEFAULT_KIND, ctypes.c_void_p(stream))

    def pinned(self, shape, dtype):
        """An array in pinned memory, which is kept."""
        memory = ctypes.c_void_p()
        nbytes = int(numpy.prod(shape)) * numpy.dtype(dtype).itemsize
        self.call("cudaHostAlloc", ctypes.byref(memory),
                  ctypes.c_size_t(nbytes), 1)
        raw = (ctypes.c_char * nbytes).from_address(memory.value)
        return numpy.frombuffer(raw, dtype).reshape(shape)

    def synchronize(self, stream):
        self.call("cudaStreamSynchronize", ctypes.c_void_p(stream))


def address(field, stream):
    """Where the field's bytes are, once `stream` waits for them."""
    capsule = field.__dlpack__(stream=stream)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype = ctypes.c_void_p
    pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return ctypes.c_void_p.from_address(pointer(capsule, b"dltensor")).value


def arrays():
    return {"x": numpy.arange(ROWS * 5, dtype="float32").reshape(ROWS, 5),
            "y": numpy.arange(ROWS)}


def opened(device, **how):
    how = {"batch_size": BATCH, "seed": 3, "num_workers": 2, **how}
    return penstock.Loader(arrays(), device=device, **how)


class Consumer(unittest.TestCase):
    def setUp(self):
        self.cuda = Cuda()

    def expected(self, **how):
        with opened("cpu", **how) as loader:
            return [(b["x"].numpy().copy(), b["y"].numpy().copy())
                    for b in loader]

    def seen(self, loader, stream):
        """The batches as a stream's work finds them: that is queued before they
        are given back, and done later."""
        read = []
        for batch in loader:
            here = []
            for name, dtype in (("x", "float32"), ("y", "int64")):
                field = batch[name]
                array = self.cuda.pinned(field.shape, dtype)
                self.cuda.copy(array.ctypes.data, address(field, stream),
                               field.nbytes, stream)
                here.append(array)
            del batch, field
            read.append(tuple(here))
        self.cuda.synchronize(stream)
        return read

    def assertSame(self, found, right):
        self.assertEqual(len(found), len(right))
        for (x, y), (right_x, right_y) in zip(found, right):
            numpy.testing.assert_array_equal(x, right_x)
            numpy.testing.assert_array_equal(y, right_y)


@unittest.skipUnless(STANDIN, "ctest names the stand-in")
class Loops(Consumer):
    def test_a_stream_reads_what_the_cpu_gives_on_either_gpu(self):
        for number in (0, 1):
            for cache in ("device", "ram"):
                for workers in (0, 1, 2, 8):
                    how = {"cache": cache, "num_workers": workers}
                    with opened(f"cuda:{number}", **how) as loader:
                        found = self.seen(loader, self.cuda.stream(number))
                    with self.subTest(number=number, **how):
                        self.assertSame(found, self.expected())
        self.assertEqual(self.cuda.used(0) + self.cuda.used(1), 0)

    def test_a_batch_is_copied_to_the_host_without_torch(self):
        with opened("cuda:1") as loader:
            found, ids = [], []
            for batch in loader:
                found.append(batch.host())
                ids += batch.ids.tolist()
        self.assertEqual(sorted(ids), list(range(ROWS)))
        self.assertSame([(b["x"], b["y"]) for b in found], self.expected())

    def test_fields_say_where_they_are(self):
        with opened("cuda:1") as loader:
            batch = next(iter(loader))
            with self.assertRaisesRegex(BufferError, "host"):
                batch.numpy()
            self.assertEqual(batch["x"].__dlpack_device__(), (2, 1))
            with self.assertRaises(BufferError):
                batch["x"].__dlpack__(dl_device=(2, 0))

    def test_two_gpus_are_read_at_once(self):
        right = self.expected()
        failures = []

        def loop(number):
            try:
                with opened(f"cuda:{number}") as loader:
                    for _ in range(3):
                        loader.set_epoch(0)
                        self.assertSame(
                            self.seen(loader, self.cuda.stream(number)), right)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=loop, args=(number,))
                   for number in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_batches_are_written_into_arrays_of_the_host(self):
        into = {"x": numpy.empty((BATCH, 5), "float32"),
                "y": numpy.empty(BATCH, "int64")}
        for number in (0, 1):
            with opened(f"cuda:{number}") as loader:
                found = [(into["x"][:rows].copy(), into["y"][:rows].copy())
                         for rows in loader.into(into)]
            self.assertSame(found, self.expected())

    def test_rows_on_a_gpu_are_mapped(self):
        def doubled(rows):
            return {"x": rows["x"] * 2, "y": rows["y"]}

        for cache in ("device", "ram"):
            with opened("cuda:1", cache=cache) as loader:
                loader.map(doubled, batched=True)
                found = self.seen(loader, self.cuda.stream(1))
            self.assertSame(found, [(2 * x, y) for x, y in self.expected()])

    def test_a_batch_outlives_its_loader(self):
        stream = self.cuda.stream(0)
        loader = opened("cuda:0")
        batch = next(iter(loader))
        loader.close()
        right = self.expected()[0][1]
        array = self.cuda.pinned(batch["y"].shape, "int64")
        self.cuda.copy(array.ctypes.data, address(batch["y"], stream),
                       batch["y"].nbytes, stream)
        batch, watched = None, weakref.ref(loader)
        del loader
        gc.collect()
        self.cuda.synchronize(stream)
        numpy.testing.assert_array_equal(array, right)
        self.assertIsNone(watched())
        self.assertEqual(self.cuda.used(0), 0)

    def test_a_batch_is_not_given_to_a_stream_that_is_captured(self):
        stream = self.cuda.stream(0)
        with opened("cuda:0") as loader:
            batches = iter(loader)
            batch = next(batches)
            self.cuda.call("cudaStreamBeginCapture", ctypes.c_void_p(stream), 1)
            graph = ctypes.c_void_p()
            try:
                with self.assertRaises(penstock.Error) as raised:
                    batch["x"].__dlpack__(stream=stream)
            finally:
                self.cuda.call("cudaStreamEndCapture", ctypes.c_void_p(stream),
                               ctypes.byref(graph))
            self.assertEqual(raised.exception.code, "loader.capturing")
            self.cuda.call("cudaGraphDestroy", graph)
            self.assertSame(self.seen(batches, stream), self.expected()[1:])

    def test_a_gpu_that_is_not_there_is_named(self):
        with self.assertRaisesRegex(penstock.Error, "cuda:2") as raised:
            opened("cuda:2")
        self.assertEqual(raised.exception.code, "device.no_such_gpu")


@unittest.skipUnless(STANDIN, "ctest names the stand-in")
class Processes(unittest.TestCase):
    """In fresh ones: which GPU is chosen, and that others are left alone."""

    def run_python(self, code, **environment):
        done = subprocess.run(
            [sys.executable, "-B", "-c",
             "import ctypes, numpy, os, penstock\n"
             "cuda = ctypes.CDLL(os.environ['PENSTOCK_CUDA_STANDIN'])\n" + code],
            env={**os.environ, **environment}, capture_output=True, text=True,
            timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split()

    LOOP = ("with penstock.Loader({'x': numpy.arange(1000.)}, batch_size=100,"
            " device=DEVICE) as loader:\n"
            "    where = {batch['x'].__dlpack_device__() for batch in loader}\n"
            "print(*where.pop(), *map(cuda.cuda_standin_has_context, (0, 1)))\n")

    def test_the_gpu_is_that_which_is_named_or_that_of_the_rank(self):
        named = self.LOOP.replace("DEVICE", "'cuda:1'")
        self.assertEqual(self.run_python(named), ["2", "1", "0", "1"],
                         "and no context on the first")
        ranked = self.LOOP.replace("DEVICE", "'cuda'")
        for rank in ("0", "1"):
            self.assertEqual(self.run_python(ranked, LOCAL_RANK=rank)[1], rank)
        automatic = self.LOOP.replace("DEVICE", "'auto'")
        self.assertEqual(self.run_python(automatic)[:2], ["2", "0"])


class FakeTorch(types.ModuleType):
    """What the package looks at of a torch that was built for CUDA: its current
    stream, and its allocator, which keeps what is given back."""

    def __init__(self, cuda, device):
        super().__init__("torch")
        self.current = cuda.stream(device)
        self.lent, self.kept, self.failing = {}, [], None
        fake = self

        class OutOfMemoryError(RuntimeError):
            pass

        class Stream:
            def __init__(self, device):
                self.cuda_stream = cuda.stream(device)
                self.device = device

            def synchronize(self):
                cuda.synchronize(self.cuda_stream)

        def allocate(size, device=None, stream=None):
            if fake.failing is not None:
                raise fake.failing
            if stream.device != device:
                raise AssertionError("a stream of another GPU")
            memory = ctypes.c_void_p()
            cuda.call("cudaSetDevice", device)
            cuda.call("cudaMalloc", ctypes.byref(memory), ctypes.c_size_t(size))
            fake.lent[memory.value] = size
            return memory.value

        def delete(memory):
            fake.kept.append((memory, fake.lent.pop(memory)))

        self.version = types.SimpleNamespace(cuda="13.0")
        self.cuda = types.SimpleNamespace(
            OutOfMemoryError=OutOfMemoryError, Stream=Stream,
            caching_allocator_alloc=allocate, caching_allocator_delete=delete,
            memory_reserved=lambda device: sum(fake.lent.values())
            + sum(size for _, size in fake.kept),
            memory_allocated=lambda device: sum(fake.lent.values()),
            is_current_stream_capturing=lambda: False,
            current_stream=lambda device: types.SimpleNamespace(
                cuda_stream=fake.current),
            is_initialized=lambda: False)


@unittest.skipUnless(STANDIN, "ctest names the stand-in")
class MemoryOfTorch(Consumer):
    def setUp(self):
        super().setUp()
        self.torch = sys.modules["torch"] = FakeTorch(self.cuda, 0)

    def tearDown(self):
        del sys.modules["torch"]
        self.assertEqual(self.torch.lent, {}, "all of it was given back")
        for memory, _ in self.torch.kept:
            self.cuda.call("cudaFree", ctypes.c_void_p(memory))

    def test_rows_and_batches_lie_in_it(self):
        for cache in ("device", "ram"):
            with opened("cuda:0", cache=cache) as loader:
                lent = sum(self.torch.lent.values())
                self.assertGreater(lent, 0)
                self.assertGreaterEqual(self.cuda.used(0), lent)
                self.assertSame(self.seen(loader, self.cuda.stream(0)),
                                self.expected())

    def test_it_is_given_back_by_what_an_exception_lets_go(self):
        loader = opened("cuda:0")
        batches = [next(iter(loader))]
        loader.close()
        loader = None
        with self.assertRaisesRegex(BufferError, "on a GPU"):
            batches.pop().numpy()
        gc.collect()
        self.assertEqual(self.torch.lent, {})

    def test_batches_wait_for_torchs_current_stream(self):
        with opened("cuda:0", num_workers=1) as loader:
            self.assertSame(self.seen(loader, self.torch.current),
                            self.expected())

    def test_where_torch_has_no_more_it_is_out_of_memory(self):
        self.torch.failing = self.torch.cuda.OutOfMemoryError("no more")
        with self.assertRaises(penstock.Error) as raised:
            opened("cuda:0", cache="device")
        self.assertEqual(raised.exception.kind, "out_of_memory")
        self.assertIn("cuda:0", str(raised.exception))

    def test_what_else_torch_raises_is_told(self):
        self.torch.failing = RuntimeError("CUDA error: an illegal access")
        with self.assertRaisesRegex(penstock.Error, "illegal access") as raised:
            opened("cuda:0", cache="device")
        self.assertEqual(raised.exception.code, "device.allocator")

    def test_a_torch_without_cuda_is_left_alone(self):
        self.torch.version.cuda = None
        with opened("cuda:0", cache="device") as loader:
            self.assertEqual(self.torch.lent, {})
            self.assertSame(self.seen(loader, self.torch.current),
                            self.expected())


if __name__ == "__main__":
    main()
