#!/usr/bin/env python3
"""Are the ids of penstock.Tokenizer those of `tokenizers`, model by model?

Hard texts of python/tests/tokenizer_files.py, drawn by number, go through each
FOLDER/MODEL/tokenizer.json (tokenizer_models.py writes those of real models) and
through the small files that it trains: ids cold and warm, offsets, decoded text.
"""
import pathlib
import sys
import tempfile

import tokenizers

import penstock

from peer_result import ROOT, print_result

sys.path.insert(0, str(ROOT / "python/tests"))
import tokenizer_files  # noqa: E402


def row(model, path, texts):
    theirs, ours = tokenizers.Tokenizer.from_file(str(path)), penstock.Tokenizer(path)
    wanted = [theirs.encode(text, add_special_tokens=False) for text in texts]
    differ = {"cold": 0, "warm": 0, "offsets": 0, "decoded": 0}
    for key in ("cold", "warm"):
        found = ours.encode_batch(texts, special=False)
        differ[key] = sum(a.tolist() != b.ids
                          for a, b in zip(found, wanted, strict=True))
    for text, one in zip(texts, wanted, strict=True):
        _, offsets = ours.encode(text, special=False, offsets=True)
        differ["offsets"] += [tuple(o) for o in offsets.tolist()] != one.offsets
        differ["decoded"] += ours.decode(one.ids) != theirs.decode(one.ids)
    return {"model": model, "documents": len(texts), "differ": differ}


def main(folder, count):
    texts = [tokenizer_files.drawn_text(n) for n in range(int(count))]
    rows = [row(path.parent.name, path, texts)
            for path in sorted(pathlib.Path(folder).glob("*/tokenizer.json"))]
    with tempfile.TemporaryDirectory() as scratch:
        for name, made in tokenizer_files.everything().items():
            path = pathlib.Path(scratch) / "tokenizer.json"
            made.save(str(path))
            rows.append(row("trained: " + name, path, texts))
    print_result(
        "equal_ids", __doc__, f"python bench/peers/equal_ids.py FOLDER {count}",
        {"tokenizers": tokenizers.__version__, "results": rows})


if __name__ == "__main__":
    main(*sys.argv[1:3])
