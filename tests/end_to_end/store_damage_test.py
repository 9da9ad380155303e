"""Stores of prepared rows that are damaged between runs and while a run reads
them, with their source at hand: the batches have the same bytes, the program
ends with 0, and the store is repaired. PENSTOCK_TEST_STORE_DAMAGES says how
many damages (60; `./check --faults` makes 2,000)."""
import os
import random
import time
import unittest

from file_changes_test import KINDS, Changes

DAMAGES = int(os.environ.get("PENSTOCK_TEST_STORE_DAMAGES", "60"))
BLOCK = 512


def damaged(data, how, chance):
    data = bytearray(data)
    at = chance.randrange(len(data))
    size = len(data[at:at + BLOCK])
    if how == "flip":
        data[at] ^= 1 << chance.randrange(8)
    elif how == "cut":
        del data[at:]
    elif how == "zero":
        data[at:at + size] = bytes(size)
    elif how == "zero all":
        data[:] = bytes(len(data))
    else:
        data[at:at + size] = chance.randbytes(size)
    return bytes(data)


class Damage(Changes):
    """A store of numbers and categories with keys, one of numbers by position,
    one of runs, and one of decoded pictures."""

    def make(self, name, budget):
        if name == "sqlite":
            self.database(self.rows(3000))
            source = {"kind": "sqlite", "path": "d.sqlite", "table": "t"}
            fields = {"y": {"columns": ["y"], "standardize": True},
                      "heard": {"json_set": {"column": "heard", "keys":
                                             ["a", "b"], "max": 3}}}
        else:
            kind = KINDS[name]
            source, fields = kind.source, kind.fields
            self.put(kind.write(0))
        self.write_job(self.job(
            source=source, fields=fields, device={"kind": "cpu"},
            loader={"batch_size": 4, "seed": 1, "workers": 2,
                    "cache": {"dir": "stores", "disk_gib": 1,
                              "ram_gib": budget, "device_gib": 0}}))

    def run_job(self):
        answer = self.run_it("batch", "job.json", "--steps", "0:75")
        self.assertEqual(answer.code, 0, answer.err)
        return self.lines(answer.out), answer.err

    def only_store(self):
        [store] = (self.folder / "stores").glob("*.store")
        return store

    def is_sound(self):
        told = self.run_it("cache", "verify", "--dir", "stores",
                           "--json").json()
        return told["sound"] == len(told["stores"]) == 1

    def test_a_store_that_is_damaged_between_runs_is_repaired(self):
        chance = random.Random(int(os.environ.get("PENSTOCK_TEST_SEED", "1")))
        names = ("sqlite", "csv", "token_store", "images")
        for number, name in enumerate(names):
            self.make(name, budget=0)
            first, _ = self.run_job()
            whole = self.only_store().read_bytes()
            for one in range(number, DAMAGES, len(names)):
                how = chance.choice(("flip", "cut", "zero", "zero all",
                                     "garbage"))
                hurt = damaged(whole, how, chance)
                self.only_store().write_bytes(hurt)
                what = (name, how, one)
                seen, told = self.run_job()
                self.assertEqual(seen, first, what)
                # What no batch of these has read may still be damaged.
                if hurt != whole and "damaged" in told:
                    self.assertTrue(self.is_sound(), (what, told))
                again, told = self.run_job()
                self.assertEqual(again, first, what)
                self.assertEqual("damaged" in told, False, (what, told))
                self.only_store().write_bytes(whole)
            self.only_store().unlink()

    def test_a_store_that_is_damaged_while_it_is_read_is_repaired(self):
        chance = random.Random(2)
        self.make("csv", budget=0)
        first, _ = self.run_job()
        for how in ("cut", "cut", "zero all"):
            store = self.only_store()
            whole = store.read_bytes()

            def hurt(how=how, store=store, whole=whole):
                time.sleep(0.01)
                if how == "cut":
                    os.truncate(store, chance.randrange(len(whole)))
                else:
                    with open(store, "r+b") as file:
                        file.write(bytes(len(whole) // 2))

            code, seen, told = self.read_while_kept(hurt)
            self.assertEqual(code, 0, told)
            if how == "cut":  # bytes that were checked before may be zeroed
                self.assertEqual(seen, first, how)

    def read_while_kept(self, act):
        self.command = lambda tier: ["batch", "job.json", "--steps", "0:75"]
        return self.read_while("", 3, act)

    test_batches_are_of_one_version_or_the_run_says_that_files_changed = None


if __name__ == "__main__":
    unittest.main()
