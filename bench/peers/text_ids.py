#!/usr/bin/env python3
"""How fast does text become ids on one core, and are they the right ones?

Prose and docs that Debian and Python ship, Python's own library as code, and
characters of Chinese drawn from a vocabulary, in documents of 4 KB, by
penstock.Tokenizer, `tokenizers` (encode_batch_fast, one thread), `tiktoken` (its
Encoding built from the same vocabulary) and `gigatoken`, where they are installed.
Each measurement is a process of its own on one processor: `cold` is its first
pass over the documents, `warm` the fastest of three more; loading is outside, and
times are those of the processor, since others may use the machine. What a cell
holds is the median over the rounds, in which all take turns. Ids are compared with
those of `tokenizers` document by document.
"""
import argparse
import json
import os
import pathlib
import platform
import random
import subprocess
import sys
import time

from peer_result import print_result, processor, spread

SIZE = 4096
ENGINES = ["penstock", "tokenizers", "tiktoken", "gigatoken"]


def pieces(text, most):
    text = text[:most]
    return [text[at:at + SIZE] for at in range(0, len(text), SIZE)]


def read_all(paths, most):
    text = ""
    for path in sorted(paths):
        if len(text) >= most:
            break
        try:
            text += path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
    return text


def corpora(most, folder):
    """Name -> documents."""
    library = pathlib.Path(json.__file__).parents[1]
    prose = read_all([library / "pydoc_data/topics.py",
                      *pathlib.Path("/usr/share/common-licenses").glob("*")], most)
    docs = read_all(pathlib.Path("/usr/share/doc").rglob("copyright"), most)
    vocabulary = json.loads(
        (folder / "qwen2_5/tokenizer.json").read_text())["model"]["vocab"]
    characters = {chr(b): b for b in [*range(33, 127), *range(161, 173),
                                      *range(174, 256)]}
    others = iter(range(256, 512))
    for byte in range(256):
        if byte not in characters.values():
            characters[chr(next(others))] = byte
    words = []
    for token in vocabulary:
        try:
            word = bytes(characters[c] for c in token).decode()
        except (KeyError, UnicodeDecodeError):
            continue
        if word and all("\u4e00" <= c <= "\u9fff" for c in word):
            words.append(word)
    drawn = random.Random(1)
    weights = [1 / (rank + 10) for rank in range(len(words))]
    chinese = "".join(
        word + drawn.choices(["", "，", "。", "\n"], [12, 2, 1, .2])[0]
        for word in drawn.choices(words, weights, k=most // 6))
    return {"prose": pieces(prose, most), "docs": pieces(docs, most),
            "code": pieces(read_all(library.glob("*.py"), most), most),
            "cjk": pieces(chinese, most // 3)}


def opened(engine, path):
    """Documents -> ids of each."""
    if engine == "penstock":
        import penstock
        made = penstock.Tokenizer(path)
        return lambda texts: made.encode_batch(texts, special=False)
    if engine == "tokenizers":
        import tokenizers
        made = tokenizers.Tokenizer.from_file(str(path))
        return lambda texts: made.encode_batch_fast(texts,
                                                    add_special_tokens=False)
    if engine == "gigatoken":
        import gigatoken
        made = gigatoken.Tokenizer(str(path))
        return lambda texts: made.encode_batch(texts, parallel=False)
    return tiktoken_of(path)


def tiktoken_of(path):
    """Where ids are in the order of merges, and one pattern cuts."""
    import tiktoken
    document = json.loads(path.read_text())
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    of = {chr(b) if b in printable else chr(next(others)): b for b in range(256)}
    cut = document["pre_tokenizer"]
    pattern = (r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+"
               r"|\s+(?!\S)|\s+")
    if cut["type"] == "Sequence":
        pattern = cut["pretokenizers"][0]["pattern"]["Regex"]
    if document["normalizer"] or document["model"].get("ignore_merges"):
        raise ValueError("tiktoken has no normaliser")
    made = tiktoken.Encoding(
        "own", pat_str=pattern, special_tokens={},
        mergeable_ranks={bytes(of[c] for c in token): id for token, id in
                         document["model"]["vocab"].items()
                         if all(c in of for c in token)})
    return lambda texts: [made.encode_ordinary(text) for text in texts]


def ids_of(engine, found):
    if engine == "tokenizers":
        return [one.ids for one in found]
    return [list(map(int, one)) for one in found]


def child(engine, path, texts, keep):
    """In a process of its own: seconds, and the ids where asked."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    documents = json.loads(pathlib.Path(texts).read_text())
    encode = opened(engine, pathlib.Path(path))
    encode(["warm up the code, not the words " + str(n) for n in range(3)])
    taken = []
    for _ in range(4):
        start = time.process_time()
        found = encode(documents)
        taken.append(time.process_time() - start)
    print(json.dumps({"cold": taken[0], "warm": min(taken[1:]),
                      "ids": ids_of(engine, found) if keep else None}))


def measured(engine, path, texts, keep):
    done = subprocess.run(
        [sys.executable, __file__, "--child", engine, str(path), str(texts),
         "keep" if keep else ""],
        capture_output=True, text=True, check=False,
        env=os.environ | {"RAYON_NUM_THREADS": "1",
                          "TOKENIZERS_PARALLELISM": "true"})
    if done.returncode != 0:
        return done.stderr.strip().splitlines()[-1][:200]
    return json.loads(done.stdout)


def versions():
    from importlib import metadata
    found = {"python": platform.python_version()}
    for name in ("tokenizers", "tiktoken", "gigatoken"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def cells(model, path, corpus, texts, rounds, scratch):
    file = scratch / f"{corpus}.json"
    file.write_text(json.dumps(texts))
    size = sum(len(text.encode()) for text in texts)
    expected, rows, times = None, {}, {}
    for turn in range(rounds):
        for engine in ["tokenizers", *(e for e in ENGINES if e != "tokenizers")]:
            got = measured(engine, path, file, turn == 0)
            if isinstance(got, str):
                rows[engine] = {"left_out": got}
                continue
            if turn == 0:
                ids = got.pop("ids")
                expected = ids if engine == "tokenizers" else expected
                differ = sum(a != b for a, b in zip(ids, expected, strict=True))
                rows[engine] = {"documents_that_differ": differ}
            for key in ("cold", "warm"):
                times.setdefault((engine, key), []).append(
                    size / got[key] / 1e6)
    made = []
    for engine, row in rows.items():
        cell = {"model": model, "corpus": corpus, "engine": engine,
                "documents": len(texts), "bytes": size, **row}
        for key in ("cold", "warm"):
            if (engine, key) not in times:
                continue
            cell[f"{key}_mb_per_cpu_s"] = spread(times[engine, key])
            base = spread(times["tokenizers", key])["median"]
            cell[f"{key}_times_tokenizers"] = round(
                cell[f"{key}_mb_per_cpu_s"]["median"] / base, 2)
        made.append(cell)
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=pathlib.Path, required=True,
                        help="MODEL/tokenizer.json of each model; those of "
                        "tokenizer_models.py, and qwen2_5")
    parser.add_argument("--models", nargs="*", default=["gpt2", "qwen2_5"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bytes", type=int, default=2_000_000)
    parser.add_argument("--scratch", type=pathlib.Path,
                        default=pathlib.Path("/tmp"))
    arguments = parser.parse_args()
    results = []
    load = os.getloadavg()[0]
    texts = corpora(arguments.bytes, arguments.folder)
    for model in arguments.models:
        path = arguments.folder / model / "tokenizer.json"
        for corpus, documents in texts.items():
            results += cells(model, path, corpus, documents, arguments.rounds,
                             arguments.scratch)
            print(model, corpus, file=sys.stderr)
    print_result(
        "peers_tokenizers", __doc__,
        "bench/run peers_tokenizers --folder FOLDER " + " ".join(
            ["--models", *arguments.models, "--rounds", str(arguments.rounds),
             "--bytes", str(arguments.bytes)]),
        {"machine": processor(), "versions": versions(), "load_before": load,
         "note": "times of the processor, in turns, on a machine that others "
                 "use; quicktok of PyPI is another program of that name",
         "results": results})


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:5], sys.argv[5] == "keep")
    else:
        main()
