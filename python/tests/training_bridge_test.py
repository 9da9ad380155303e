"""Steps that an object of Python takes in the engine's loop, without torch."""
import json
import os
import pathlib
import signal
import threading
import unittest

import numpy

import penstock
from entry import main
from own_model import ROWS, Case, steps_of, weights_of
from penstock import _engine
from penstock.errors import OutOfMemory, RequestError, worded


class Line:
    """A line through points by numpy: has what penstock._training.stepper has.
    `at` maps a step's number to what is done in it."""

    def __init__(self, at):
        self.at, self.weight = at, numpy.zeros(2, "float32")
        self.known, self.seen = [], []

    def step(self, batch, number):
        if number in self.at:
            self.at[number](batch)
        arrays = batch.numpy()
        x, y = arrays["x"], arrays["y"]
        off = x @ self.weight - y
        self.weight -= numpy.float32(0.05) * (off @ x) / len(x)
        self.known.append(float((off ** 2).mean()))
        return 0

    def join(self, together):
        assert not together

    def losses(self, wait):
        known, self.known = self.known, []
        return known

    def validate(self, batch):
        arrays = batch.numpy()
        self.seen.append(((arrays["x"] @ self.weight - arrays["y"]) ** 2
                          ).mean())

    def validated(self):
        seen, self.seen = self.seen, []
        return json.dumps({"val_loss": float(numpy.mean(seen))})

    def in_force(self):
        return json.dumps([{"name": "tf32", "asked": True, "got": False,
                            "why": "there is no torch"}])

    def save(self):
        return [("model.weight", "float32", [2],
                 self.weight.view("uint8"))], json.dumps({"kind": "line"})

    def restore(self, tensors, text):
        ((name, dtype, shape, data),) = tensors
        assert (name, dtype, shape) == ("model.weight", "float32", [2])
        assert json.loads(text) == {"kind": "line"}
        self.weight = numpy.array(data).view("float32")


class Maker:
    def __init__(self, at=None):
        self.at, self.facts = at or {}, None

    def cuda_unavailable_reason(self):
        return "this is a test"

    def open_ranks(self, may_use_gpu):
        return None

    def stepper(self, facts):
        self.facts = json.loads(facts)
        self.made = Line(self.at)
        return self.made


class Listener:
    def __init__(self):
        self.notes = []

    def note(self, line):
        self.notes.append(line)

    def columns(self):
        return 0

    def progress(self, line):
        assert "it/s" in line or "ep" in line, line


class Bridge(Case):
    def run_job(self, job, maker=None, resume="", output="", ending=(),
                saving=()):
        self.maker, self.listener = maker or Maker(), Listener()
        document = _engine.run_document(
            "", "" if resume else json.dumps(job), resume, [], "")
        report, rank, by = _engine.train(
            document, self.maker, self.listener, resume, 0, output,
            list(ending), list(saving))
        self.assertEqual(rank, 0)
        return json.loads(report), by != 0, by

    def job(self, **sections):
        return super().job("here.py:Line", **{
            "fields": {"kind": None, "big": None}, **sections})

    def test_it_learns_by_the_engines_loop(self):
        report, stopped, by = self.run_job(self.job(train={"epochs": 5}),
                                           output="left")
        self.assertEqual((stopped, by), (False, 0))
        losses = [epoch["val_loss"] for epoch in report["epochs"]]
        self.assertLess(losses[-1], losses[0])
        self.assertEqual(len(steps_of(report["run"])), 5 * 9)
        self.assertIn("tf32: false (asked: true): there is no torch",
                      self.listener.notes)
        self.assertIn(self.maker.made.weight.tobytes(),
                      (self.folder / "left/model.safetensors").read_bytes())

    def test_facts_name_fields_tensors_and_settings(self):
        self.run_job(self.job(fields={"kind": {"category": {
            "column": "kind"}}}, train={"max_steps": 1}))
        facts = self.maker.facts
        self.assertEqual(facts["device"], "cpu")
        self.assertEqual(facts["steps"], 1)
        self.assertEqual(facts["tensors"]["x"],
                         {"dtype": "float32", "shape": [2]})
        self.assertEqual(facts["fields"]["kind"]["statistics"]["classes"],
                         ["u", "v", "w"])
        self.assertEqual(facts["rows"]["train"] + facts["rows"]["val"], ROWS)
        self.assertEqual(facts["learning"]["threads"], 1)
        self.assertEqual(facts["model"]["loss"], "auto")

    def test_workers_change_nothing(self):
        found = [self.run_job(self.job(loader={"workers": workers}))[0]["run"]
                 for workers in (0, 1, 2, 8)]
        for run in found[1:]:
            self.assertEqual(steps_of(run), steps_of(found[0]))
            self.assertEqual(weights_of(run), weights_of(found[0]))

    def test_resumed_it_ends_with_the_same_bytes(self):
        whole = self.run_job(self.job())[0]["run"]
        part = self.run_job(self.job(), Maker({5: lambda _: os.kill(
            os.getpid(), signal.SIGTERM)}), ending=[signal.SIGTERM])
        self.assertEqual(part[1:], (True, signal.SIGTERM))
        self.assertEqual(len(steps_of(part[0]["run"])), 6)
        again = self.run_job(None, resume=part[0]["run"])[0]["run"]
        self.assertEqual(weights_of(again), weights_of(whole))

    def test_a_signal_asks_for_a_checkpoint(self):
        saved = []

        def look(_):
            state = json.loads(pathlib.Path(
                os.path.realpath("runs/latest"), "state.json").read_text())
            saved.append(state["checkpoint"])

        report, stopped, _ = self.run_job(
            self.job(), Maker({3: lambda _: os.kill(os.getpid(),
                                                    signal.SIGUSR1),
                               4: look}), saving=[signal.SIGUSR1])
        self.assertFalse(stopped)
        self.assertEqual(saved, ["checkpoint-000000000004.safetensors"])
        self.assertTrue(any("saved on request" in note
                            for note in self.listener.notes))

    def test_handlers_of_signals_are_those_before_when_it_has_ended(self):
        before = signal.getsignal(signal.SIGINT)
        self.run_job(self.job(), ending=[signal.SIGINT])
        self.assertIs(signal.getsignal(signal.SIGINT), before)
        with self.assertRaises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)

    def test_a_second_ctrl_c_is_pythons_and_the_state_is_saved(self):
        def twice(_):
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000):
                pass

        with self.assertRaises(KeyboardInterrupt):
            self.run_job(self.job(), Maker({4: twice}),
                         ending=[signal.SIGINT])
        part = os.path.realpath("runs/latest")
        self.assertEqual(len(steps_of(part)), 4)

    def test_what_a_step_raises_comes_out_and_the_state_is_saved(self):
        def fail(_):
            raise ZeroDivisionError("in step 6")

        with self.assertRaisesRegex(ZeroDivisionError, "in step 6"):
            self.run_job(self.job(), Maker({6: fail}))
        part = os.path.realpath("runs/latest")
        self.assertEqual(len(steps_of(part)), 6)
        again = self.run_job(None, resume=part)[0]["run"]
        self.assertEqual(weights_of(again),
                         weights_of(self.run_job(self.job())[0]["run"]))

    def test_errors_of_ours_keep_their_parts(self):
        def refuse(_):
            raise worded(RequestError, "a.code", "cannot", "there", "why",
                         "next")

        def no_memory(_):
            raise worded(OutOfMemory, "model.out_of_memory", "none is left")

        with self.refused("request", "a.code", "there", "why", "next"):
            self.run_job(self.job(), Maker({0: refuse}))
        with self.assertRaises(OutOfMemory):
            self.run_job(self.job(), Maker({0: no_memory}))

    def test_a_batch_that_is_kept_stays_as_it_is(self):
        kept = []

        def keep(batch):
            kept.append((batch, batch["x"], batch.numpy()["x"].copy()))

        self.run_job(self.job(), Maker({0: keep, 1: keep}))
        for batch, field, copy in kept:
            numpy.testing.assert_array_equal(numpy.asarray(field), copy)
            self.assertEqual(batch.step, 0 if copy is kept[0][2] else 1)

    def test_it_runs_beside_other_threads(self):
        """Python's lock is free while the loop waits, and while it does not."""
        beats, ended = [], threading.Event()

        def beat():
            while not ended.wait(0.001):
                beats.append(1)

        thread = threading.Thread(target=beat)
        thread.start()
        self.run_job(self.job(train={"epochs": 20}))
        ended.set()
        thread.join()
        self.assertGreater(len(beats), 3)

    def test_the_model_of_a_run_is_not_the_devices(self):
        with self.refused("request", "model.on_sim", "sim"):
            self.run_job({**self.job(), "device": "sim"})

    def test_outputs_need_a_model(self):
        job = {**self.job(), "model": "none"}
        with self.refused("request", "output.no_model", "--output"):
            self.run_job(job, output="left")

    def test_a_run_in_a_thread_leaves_signals_alone(self):
        found = []
        thread = threading.Thread(target=lambda: found.append(
            self.run_job(self.job())))
        thread.start()
        thread.join()
        self.assertEqual(found[0][1:], (False, 0))


if __name__ == "__main__":
    main()
