"""The wheel as whoever installed it finds it: run by the Python of an
environment that holds the wheel and what pip installed with it.

    installed.py [unittest's arguments]

Under tools/with_postgres also the part for PostgreSQL; without a server those
tests are skipped.
"""
import importlib.metadata
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROWS = 500
PACKAGE = pathlib.Path(importlib.util.find_spec("penstock").origin).parent
SERVER = os.environ.get("PENSTOCK_TEST_POSTGRES")
READ = """
import sys, penstock
with penstock.Loader(sys.argv[1], ["id", "tx_lat", "tx_lon"], 50) as loader:
    rows = [row for batch in loader
            for row in zip(*(a.ravel().tolist()
                             for a in batch.numpy().values()))]
print(len(rows), hash(tuple(sorted(rows))))
"""
MAPPED = """
print(sorted({line.split("/")[-1].split("-")[0].strip()
              for line in open("/proc/self/maps") if "/penstock" in line}))
"""


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-wheel-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.sqlite = f"sqlite:{cls.folder / 'd.sqlite'}#measurements"
        cls.demo(cls.sqlite)

    @classmethod
    def demo(cls, to):
        """Writes the rows that every test reads."""
        subprocess.run([sys.executable, "-m", "penstock", "demo", "positions",
                        "--rows", str(ROWS), "--seed", "1", "--to", to],
                       check=True, stdout=subprocess.DEVNULL)

    def python(self, text, *arguments, packages=None):
        """Runs it elsewhere, so that no file of ours is imported; what it
        wrote and what it said of errors."""
        path = {"PYTHONPATH": str(packages)} if packages else {}
        done = subprocess.run(
            [sys.executable, "-c", text, *arguments], cwd=self.folder,
            capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONHASHSEED": "1", **path})
        return done.stdout, done.stderr

    def without(self, *paths):
        """A copy of what is installed, less what these patterns name."""
        site = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        for name in ("penstock", "penstock.libs"):
            shutil.copytree(PACKAGE.parent / name, site / name)
        for path in paths:
            for found in list(site.glob(path)):
                found.unlink()
        return site

    def refuses_postgresql(self, site, *words):
        told, errors = self.python(READ, "postgresql://127.0.0.1:1/none#t",
                                   packages=site)
        self.assertEqual(told, "")
        for word in ("SourceError", *words):
            self.assertIn(word, errors)


class Installed(Case):
    def test_needs_numpy_and_the_runtime_of_the_binding_alone(self):
        found = {distribution.metadata["Name"].lower()
                 for distribution in importlib.metadata.distributions()}
        self.assertEqual(found - {"pip", "setuptools", "wheel"},
                         {"penstock", "numpy", "nanobind-backend"})

    def test_brings_the_program(self):
        for command in ([PACKAGE / "bin/penstock"],
                        [sys.executable, "-m", "penstock"],
                        [pathlib.Path(sys.executable).parent / "penstock"]):
            with self.subTest(command):
                told = subprocess.run([*command, "--version"], text=True,
                                      capture_output=True, check=True).stdout
                self.assertEqual(told.split(), [
                    "penstock", importlib.metadata.version("penstock")])

    def test_has_both_kinds_of_source(self):
        told = subprocess.run([PACKAGE / "bin/penstock", "doctor", "--parts"],
                              text=True, capture_output=True,
                              check=True).stdout
        for kind in ("sqlite", "postgres"):
            self.assertIn(f" ok  {kind}: ready", told)

    def test_reads_sqlite(self):
        told, errors = self.python(READ, self.sqlite)
        self.assertEqual(told.split()[:1], [str(ROWS)], errors)

    def test_loads_no_library_of_a_database_that_nobody_asked_for(self):
        told, errors = self.python("import penstock" + MAPPED)
        self.assertEqual(told, "['_engine.abi3.so', 'libpenstock_core.so', "
                         "'libsimdjson', 'libyaml']\n", errors)
        told, errors = self.python(READ + MAPPED, self.sqlite)
        self.assertIn("'libsqlite3'", told, errors)
        for name in ("libpq", "libcrypto", "libpenstock_source_postgres"):
            self.assertNotIn(name, told)

    def test_says_what_parquet_needs(self):
        for name in ("t.parquet", "t.arrow"):
            path = self.folder / name
            path.write_bytes(b"PAR1")
            told, errors = self.python(READ, str(path))
            self.assertEqual(told, "")
            for word in ("SourceError", "pyarrow", "pyarrow is not installed",
                         "pip install pyarrow"):
                self.assertIn(word, errors)
        told = subprocess.run(
            [sys.executable, "-m", "penstock", "peek", str(path)], text=True,
            capture_output=True, check=False)
        self.assertNotEqual(told.returncode, 0)
        self.assertIn("pip install", told.stderr)

    def test_feeds_a_data_set_in_python(self):
        told, errors = self.python(
            "import penstock, numpy\n"
            "if __name__ == '__main__':\n"
            "    loader = penstock.DataLoader(numpy.arange(100), 10, "
            "num_workers=1)\n"
            "    print(sum(len(batch) for batch in loader))")
        self.assertEqual(told, "100\n", errors)

    def test_goes_on_without_the_part_for_postgresql(self):
        site = self.without("penstock/lib/penstock/*postgres*",
                            "penstock.libs/libpq-*", "penstock.libs/libssl-*")
        told, errors = self.python(READ, self.sqlite, packages=site)
        self.assertEqual(told.split()[:1], [str(ROWS)], errors)
        self.refuses_postgresql(
            site, "the plugin for postgres sources", "libpq5",
            f"not found in {site}/penstock/lib/penstock",
            "the Python wheel contains both")

    def test_says_which_library_of_a_part_is_missing(self):
        site = self.without("penstock.libs/libpq-*")
        self.refuses_postgresql(
            site, "libpq-", "cannot open shared object",
            f"{site}/penstock/lib/penstock")

    def test_has_a_part_for_gpus_that_loads_or_none(self):
        told, errors = self.python(
            "import sys, penstock\n"
            "try: penstock.Loader(sys.argv[1], ['id'], 5, device='cuda')\n"
            "except penstock.DeviceError as error: print(error.code)\n"
            "else: print('opened')", self.sqlite)
        part = PACKAGE / "lib/penstock/libpenstock_device_cuda.so"
        if part.exists():
            self.assertIn(told.strip(), ("opened", "device.no_driver",
                                         "device.no_gpu", "device.old_driver"),
                          errors)
        else:
            self.assertEqual(told, "device.not_built\n", errors)


@unittest.skipUnless(SERVER, "no server: run this through tools/with_postgres")
class Postgres(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.table = f"wheel_{os.getpid()}"
        cls.demo(f"{SERVER}#{cls.table}")
        cls.addClassCleanup(cls.sql, f"DROP TABLE {cls.table}")

    @classmethod
    def sql(cls, *statements):
        program = pathlib.Path(os.environ["PENSTOCK_TEST_POSTGRES_BIN"], "psql")
        for statement in statements:
            subprocess.run([program, "-q", SERVER, "-c", statement], check=True,
                           stdout=subprocess.DEVNULL)

    def test_gives_the_rows_that_sqlite_gives(self):
        expected, errors = self.python(READ, self.sqlite)
        self.assertEqual(expected.split()[:1], [str(ROWS)], errors)
        told, errors = self.python(READ, f"{SERVER}#{self.table}")
        self.assertEqual(told, expected, errors)

    @unittest.skipUnless(shutil.which("openssl"), "there is no openssl")
    def test_is_read_by_tls_with_the_server_s_certificate_checked(self):
        data = pathlib.Path(os.environ["PENSTOCK_TEST_POSTGRES_DATA"])
        certificate, key = data / "server.crt", data / "server.key"
        subprocess.run(
            ["openssl", "req", "-new", "-x509", "-days", "2", "-nodes", "-subj",
             "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-out",
             certificate, "-keyout", key], check=True, capture_output=True)
        key.chmod(0o600)
        owner = data.stat()
        for file in (certificate, key):
            os.chown(file, owner.st_uid, owner.st_gid)
        self.sql("ALTER SYSTEM SET ssl = on", "SELECT pg_reload_conf()",
                 f"GRANT SELECT ON {self.table} TO tls_only")
        self.addCleanup(self.sql, "ALTER SYSTEM RESET ssl",
                        "SELECT pg_reload_conf()",
                        f"REVOKE ALL ON {self.table} FROM tls_only")
        root = shutil.copy(certificate, self.folder)
        uri = ("postgresql://tls_only@127.0.0.1:"
               f"{os.environ['PENSTOCK_TEST_POSTGRES_PORT']}/postgres?sslmode=")
        told, errors = self.python(
            READ, f"{uri}verify-full&sslrootcert={root}#{self.table}")
        self.assertEqual(told.split()[:1], [str(ROWS)], errors)
        told, errors = self.python(READ, f"{uri}disable#{self.table}")
        self.assertEqual(told, "")
        self.assertIn("SourceError", errors)


if __name__ == "__main__":
    unittest.main()
