"""Reads the same table with the pyarrow that is installed beside the wheel, in
every form and place, in Python and in the program.

    matrix.py ARROW FILE      writes what was read, and how fast, to FILE;
                              ARROW: a folder with the pyarrow of a plugin
    matrix.py --table FILE... prints a table of such files; exit code 1 unless
                              all are equal and the child process reaches half
                              of the plugin's rate

Run by the Python of an environment that holds the wheel and a pyarrow.
"""
import hashlib
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile

TOOLS = pathlib.Path(__file__).resolve().parents[2]
ROWS, BATCH = 3000, 256
STEPS = ROWS // BATCH
FORMS = ("parquet", "arrow", "hugging face", "s3 parquet", "s3 arrow")
FIELDS = ("id", "f32", "f64", "flag", "price", "level", "ns", "day", "i8",
          "u64", "s.x")
TEXTS = ("word", "kind", "s.y.t", "set")
LONG, REPEATS = 1_000_000, 5
ENOUGH = 0.5


def job(source):
    fields = {name: {"columns": [name], "missing": "nan", "dtype": "float64"}
              for name in FIELDS}
    fields |= {f"text of {name}": {"text": {"column": name, "missing": "empty"}}
               for name in TEXTS}
    return {"source": source, "fields": fields, "model": "none",
            "device": "cpu", "loader": {"batch_size": BATCH, "shuffle": True,
                                        "seed": 3}}


def digest(tensors):
    """Of names, shapes and bytes."""
    found = hashlib.sha256()
    for name, shape, content in sorted(tensors):
        found.update(f"{name} {list(shape)}".encode() + bytes(content))
    return found.hexdigest()[:16]


def of_python(of):
    import penstock
    with penstock.Loader(of["source"], of["fields"], BATCH, shuffle=True,
                         seed=3, device="cpu") as loader:
        return digest((f"{step} {name}", array.shape, array.tobytes())
                      for step, batch in zip(range(STEPS), loader)
                      for name, array in batch.numpy().items())


def of_program(path, environment):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "penstock", "batch", path, "--steps",
             f"0:{STEPS}", "--out", folder], check=True, env=environment,
            stdout=subprocess.DEVNULL)
        return digest(tensor for step, file in enumerate(sorted(
            pathlib.Path(folder).glob("*.safetensors")))
            for tensor in tensors_in(file, step))


def tensors_in(file, step):
    content = file.read_bytes()
    size, = struct.unpack_from("<Q", content)
    for name, of in json.loads(content[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = (8 + size + at for at in of["data_offsets"])
            yield f"{step} {name}", of["shape"], content[begin:end]


def read_all(folder):
    """form -> digest in Python and in the program."""
    sys.path[:0] = [str(TOOLS / "python/tests"), str(TOOLS / "tests/end_to_end")]
    from arrow_files_test import Files
    from s3_server import ACCESS_KEY, S3Server
    files = Files(folder)
    sources = {"parquet": files.make("parquet"), "arrow": files.make("arrow_file"),
               "hugging face": files.make("hugging_face")}
    server = S3Server({"train-data": {
        name: (folder / name).read_bytes()
        for name in ("one.parquet", "one.arrow")}})
    os.environ.update(
        AWS_ENDPOINT_URL=server.endpoint, AWS_ACCESS_KEY_ID=ACCESS_KEY,
        AWS_SECRET_ACCESS_KEY="none", AWS_REGION="us-east-1",
        AWS_EC2_METADATA_DISABLED="true")
    sources["s3 parquet"] = "s3://train-data/one.parquet"
    sources["s3 arrow"] = "s3://train-data/one.arrow"
    found = {}
    for form in FORMS:
        path = folder / "job.json"
        path.write_text(json.dumps(job(sources[form])))
        found[form] = {"python": of_python(job(sources[form])),
                       "program": of_program(path, os.environ)}
    server.close()
    return found


def write_long(folder):
    import numpy
    import pyarrow
    from pyarrow import parquet
    draw = numpy.random.default_rng(1)
    parquet.write_table(pyarrow.table(
        {f"x{at}": draw.random(LONG, "float32") for at in range(8)}),
        folder / "long.parquet", row_group_size=100_000)
    path = folder / "long.json"
    path.write_text(json.dumps({
        "source": str(folder / "long.parquet"), "model": "none",
        "fields": {"x": [f"x{at}" for at in range(8)]}, "device": "cpu",
        "loader": {"batch_size": 8192, "cache": "none", "shuffle": False},
        "train": {"epochs": 1}}))
    return path


def rate(path, way, arrow):
    """Rows a second of the program's run."""
    from penstock import program
    done = subprocess.run(
        [str(program.path()), "train", str(path), "--json"],
        cwd=path.parent, check=True, capture_output=True, text=True,
        env={**os.environ, "PENSTOCK_ARROW_DIR": arrow,
             "PENSTOCK_PYTHON": sys.executable,
             "PENSTOCK_ARROW_WAY": "scanner" if way == "child" else ""})
    return json.loads(done.stdout)["samples_per_s"]


def rates(folder, arrow):
    """Each way's, in turn; the median of the ratios."""
    path = write_long(folder)
    pairs = [(rate(path, "plugin", arrow), rate(path, "child", arrow))
             for _ in range(REPEATS)]
    return {"plugin": statistics.median(plugin for plugin, _ in pairs),
            "child": statistics.median(child for _, child in pairs),
            "ratio": statistics.median(child / plugin
                                       for plugin, child in pairs)}


def measure(arrow):
    import pyarrow
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        return {"pyarrow": pyarrow.__version__,
                "python": sys.version.split()[0],
                "read": read_all(folder), "rates": rates(folder, arrow)}


def print_table(results):
    print("| pyarrow | Python |", " | ".join(FORMS),
          "| child process | of the plugin |")
    print("|" + "---|" * (len(FORMS) + 4))
    # The same table, of whatever form, place and release.
    expected = results[0]["read"]["parquet"]["python"]
    good = True
    for of in results:
        said = []
        for form in FORMS:
            differ = [way for way, found in of["read"][form].items()
                      if found != expected]
            said.append(f"differs in {', '.join(differ)}" if differ
                        else "equal")
            good = good and not differ
        rates_of = of["rates"]
        good = good and rates_of["ratio"] >= ENOUGH
        print(f"| {of['pyarrow']} | {of['python']} |", " | ".join(said),
              f"| {rates_of['child'] / 1e6:.1f} M rows/s "
              f"| {rates_of['ratio']:.2f} |")
    return good


if __name__ == "__main__":
    if sys.argv[1] == "--table":
        sys.exit(not print_table([
            json.loads(pathlib.Path(file).read_text())
            for file in sys.argv[2:]]))
    pathlib.Path(sys.argv[2]).write_text(json.dumps(measure(sys.argv[1])))
