"""penstock.ray.prepare: parts of the rows as tasks of a Ray cluster."""
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import penstock
import penstock.ray
from entry import main
from frames import needs
from own_ranks import environment
from positions import has
from refused import Refused

HERE = pathlib.Path(__file__).parent
ROWS = 120_000
needs_ray = unittest.skipUnless(has("ray"), "ray is not installed")


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="penstock-ray-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        table = self.folder / "rows.csv"
        table.write_text("a,b,kind,note\n" + "".join(
            f"{row},{row % 13},{'uvw'[row % 3]},{row:060}\n"
            for row in range(ROWS)))
        self.job = {
            "source": {"kind": "csv", "path": str(table)},
            "fields": {"x": {"columns": ["a", "b"], "standardize": True},
                       "kind": {"category": {"column": "kind"}}},
            "split": {"val": 0.2, "seed": 1},
            "loader": {"cache_dir": str(self.folder / "alone"), "workers": 1}}

    def refused(self, code, *names):
        return Refused(self, penstock.RequestError, code, names)

    @staticmethod
    def digest(found):
        return hashlib.sha256(
            pathlib.Path(found["store"]).read_bytes()).hexdigest()


class Parts(Case):
    """Without Ray, in any order."""

    def part(self, part, of, **settings):
        return penstock.prepare(self.job, part=(part, of), progress=False,
                                **settings)

    def commit(self, **settings):
        return penstock.prepare(self.job, commit=True, progress=False,
                                **settings)

    def test_the_store_has_the_bytes_of_one_process(self):
        whole = penstock.prepare(self.job, progress=False)
        here = {"loader__cache_dir": str(self.folder / "parts")}
        rows = [self.part(part, 3, **here)["rows"] for part in (3, 1, 2)]
        self.assertEqual(sum(rows), ROWS)
        self.assertEqual(self.part(2, 3, **here)["resumed"], rows[2])
        made = self.commit(**here)
        self.assertEqual(self.digest(made), self.digest(whole))
        self.assertEqual(made["resumed"], ROWS)
        self.assertEqual([path.name for path in
                          (self.folder / "parts").iterdir()],
                         [pathlib.Path(made["store"]).name])
        self.assertTrue(self.part(1, 3, **here)["already"])

    def test_missing_parts_are_named(self):
        with self.refused("prepare.missing_part", f"{ROWS} rows"):
            self.commit()
        self.part(2, 4)
        with self.refused("prepare.missing_part", "parts 1, 3, 4 of 4"):
            self.commit()
        self.part(1, 4), self.part(4, 4)
        with self.refused("prepare.missing_part", "part 3 of 4",
                          "--part 3/4"):
            self.commit()

    def test_parts_of_another_version_are_refused(self):
        for part in (1, 2):
            self.part(part, 2)
        with self.refused("prepare.other_version", "other settings"):
            self.commit(split__seed=2)
        with open(self.job["source"]["path"], "a") as file:
            file.write("1,2,u,0\n")
        with self.refused("prepare.other_version", "rows.csv"):
            self.commit()

    def test_what_cannot_be_divided_is_refused(self):
        for part in ((0, 2), (3, 2)):
            with self.refused("prepare.parts", "1 to"):
                self.part(*part)
        import sqlite3
        path = self.folder / "t.sqlite"
        with sqlite3.connect(path) as base:
            base.execute("create table t (id integer primary key, a real, "
                         "b real, kind text)")
            base.execute("insert into t values (1, 2, 3, 'u')")
        base.close()
        self.job["source"] = {"kind": "sqlite", "path": str(path),
                              "table": "t"}
        with self.refused("prepare.parts", "snapshot"):
            self.part(1, 2)


class WithoutRay(Case):
    def test_ray_that_is_missing_is_named(self):
        with unittest.mock.patch.dict(sys.modules, {"ray": None}), \
                self.refused("ray.missing", "pip install ray"):
            penstock.ray.prepare(self.job)


@needs_ray
class OnRay(Case):
    """Each in a process of its own: Ray is started once in a process."""

    def run_script(self, text):
        done = subprocess.run(
            [sys.executable, "-c", text], capture_output=True, text=True,
            timeout=300, check=False, cwd=self.folder,
            env={**environment(), "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout.splitlines()[-1])

    def test_two_nodes_make_the_bytes_of_one_process(self):
        """One task kills its worker, and is repeated."""
        whole = penstock.prepare(self.job, progress=False)
        found = self.run_script(f"""
import json, os, ray
from ray.cluster_utils import Cluster
import penstock, penstock.ray
cluster = Cluster(initialize_head=True, head_node_args={{"num_cpus": 1}})
cluster.add_node(num_cpus=1)
made = penstock.ray._task
def task():
    part_of_rows = made()
    def killed_once(document, overrides, part, *rest):
        import os
        if part == 2 and not os.path.exists({str(self.folder / "killed")!r}):
            open({str(self.folder / "killed")!r}, "w").close()
            os._exit(1)
        return part_of_rows(document, overrides, part, *rest)
    return killed_once
penstock.ray._task = task
found = penstock.ray.prepare({self.job!r}, address=cluster.address,
                             out={str(self.folder / "out")!r}, parts=4,
                             progress=False)
cluster.shutdown()
print(json.dumps(found))
""")
        self.assertTrue((self.folder / "killed").exists())
        self.assertEqual([one["part"] for one in found["parts"]], [1, 2, 3, 4])
        self.assertEqual(self.digest(found), self.digest(whole))

    def test_a_node_without_the_package_says_so(self):
        package = pathlib.Path(penstock.__file__).parent.parent
        error = self.run_script(f"""
import json, sys, ray
import penstock, penstock.ray
ray.init(num_cpus=1, log_to_driver=False, runtime_env={{
    "env_vars": {{"PYTHONPATH": ""}}}})
try:
    penstock.ray.prepare({self.job!r}, parts=1, progress=False)
except penstock.Error as error:
    print(json.dumps({{"code": error.code, "why": error.why,
                       "next": error.next}}))
ray.shutdown()
""")
        self.assertEqual(error["code"], "ray.no_package", package)
        self.assertIn("pip install penstock", error["next"])

    @needs("torch")
    def test_the_example_of_ray_train(self):
        example = HERE.parents[1] / "examples/frames/ray_train_loop.py"
        done = subprocess.run(
            [sys.executable, "-B", str(example)], capture_output=True,
            text=True, timeout=300, check=False, cwd=example.parent,
            env={**environment(), "OMP_NUM_THREADS": "1", "PYTHONPATH": str(
                pathlib.Path(penstock.__file__).parent.parent)})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("each row was on one of them", done.stdout)


if __name__ == "__main__":
    main()
