"""Writes tokenizer.json files of real models from what packages on PyPI carry:
tiktoken's ranks and Anthropic's and DeepSeek's tokenizers in `litellm`, Tekken's
and SentencePiece's of Mistral in `mistral-common`. Their wheels are downloaded
and unpacked by pip; nothing of them is kept in the project."""

import base64
import json
import pathlib
import subprocess
import sys
import zipfile

CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
GPT2 = (r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
        r"|\s+")
WORD = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]%s[\p{Ll}\p{Lm}\p{Lo}\p{M}]%s"
TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SHORT = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
ANY = r"[^\r\n\p{L}\p{N}]?"
O200K = (ANY + WORD % ("*", "+") + SHORT + "|" + ANY + WORD % ("+", "*") + SHORT +
         r"|\p{N}{1,3}" + TAIL)
# tiktoken's files are named by the SHA-1 of their address.
RANKS = {"cl100k": ("9b5ad71b2ce5302211f9c61530b329a4922fc6a4", CL100K),
         "o200k": ("fb374d419588a4632f3f557e76b4b70aebbca790", O200K),
         "p50k": ("ec7223a39ce59f226a68acc30dc1af2788490e15", GPT2)}


def characters():
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(b if b in printable else next(others)) for b in range(256)]


def halves(token, ranks):
    """The two tokens whose merging makes this one, or None."""
    parts = [bytes([byte]) for byte in token]
    most = ranks[token]
    while len(parts) > 2:
        best = min(((ranks.get(a + b, most), at) for at, (a, b) in
                    enumerate(zip(parts, parts[1:], strict=False))))
        if best[0] >= most:
            return None
        at = best[1]
        parts[at:at + 2] = [parts[at] + parts[at + 1]]
    return parts if len(parts) == 2 else None


def of_ranks(ranks, pattern, first=0):
    of = characters()
    written = {token: "".join(of[byte] for byte in token) for token in ranks}
    merges = []
    for token in sorted(ranks, key=ranks.get):
        pair = halves(token, ranks) if len(token) > 1 else None
        if pair is not None:
            merges.append([written[part] for part in pair])
    bytes_only = {"type": "ByteLevel", "add_prefix_space": False,
                  "trim_offsets": True, "use_regex": False}
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [], "normalizer": None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": pattern},
                 "behavior": "Isolated", "invert": False}, bytes_only]},
            "post_processor": None,
            "decoder": {"type": "ByteLevel", "add_prefix_space": True,
                        "trim_offsets": True, "use_regex": True},
            "model": {"type": "BPE", "dropout": None, "unk_token": None,
                      "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False,
                      "byte_fallback": False, "ignore_merges": True,
                      "vocab": {written[token]: rank + first
                                for token, rank in ranks.items()},
                      "merges": merges}}


def of_sentencepiece(bytes_of_model):
    """As transformers converts Llama's and Mistral's."""
    import sentencepiece
    model = sentencepiece.SentencePieceProcessor(model_proto=bytes_of_model)
    count = model.get_piece_size()
    vocabulary = {model.id_to_piece(id): id for id in range(count)}
    merges = []
    for token, id in vocabulary.items():
        score = model.get_score(id)
        for at in range(1, len(token)):
            if token[:at] in vocabulary and token[at:] in vocabulary:
                merges.append((-score, vocabulary[token[:at]],
                               vocabulary[token[at:]], token[:at], token[at:]))
    merges.sort(key=lambda of: of[:3])
    special = [{"id": id, "content": model.id_to_piece(id), "single_word": False,
                "lstrip": False, "rstrip": False, "normalized": False,
                "special": True} for id in range(count)
               if model.is_control(id) or model.is_unknown(id)]
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": special,
            "normalizer": {"type": "Sequence", "normalizers": [
                {"type": "Prepend", "prepend": "▁"},
                {"type": "Replace", "pattern": {"String": " "},
                 "content": "▁"}]},
            "pre_tokenizer": None, "post_processor": None,
            "decoder": {"type": "Sequence", "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"}, {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
            "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>",
                      "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": True,
                      "byte_fallback": True, "ignore_merges": False,
                      "vocab": vocabulary,
                      "merges": [[a, b] for *_, a, b in merges]}}


def wheel(name, folder):
    found = list(folder.glob(f"{name.replace('-', '_')}-*.whl"))
    if not found:
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet",
                        "--no-deps", "--dest", folder, name], check=True)
        found = list(folder.glob(f"{name.replace('-', '_')}-*.whl"))
    return zipfile.ZipFile(found[0])


def write(folder, name, document):
    (folder / name).mkdir(parents=True, exist_ok=True)
    text = document if isinstance(document, str) else json.dumps(document)
    (folder / name / "tokenizer.json").write_text(text)


def main(folder, wheels):
    folder, wheels = pathlib.Path(folder), pathlib.Path(wheels)
    with wheel("litellm", wheels) as files:
        inside = "litellm/litellm_core_utils/tokenizers/"
        for name, (file, pattern) in RANKS.items():
            ranks = {base64.b64decode(token): int(rank) for token, rank in
                     (line.split() for line in
                      files.read(inside + file).splitlines())}
            write(folder, name, of_ranks(ranks, pattern))
        for name in ("anthropic", "deepseek"):
            write(folder, name,
                  files.read(f"{inside}{name}_tokenizer.json").decode())
    tekken = O200K.replace(SHORT, "").replace(r"\p{N}{1,3}", r"\p{N}")
    with wheel("mistral-common", wheels) as files:
        for path in files.namelist():
            name = pathlib.Path(path).name
            if name.startswith("tekken") and name.endswith(".json"):
                document = json.loads(files.read(path))
                most = (document["config"]["default_vocab_size"] -
                        document["config"]["default_num_special_tokens"])
                ranks = {base64.b64decode(one["token_bytes"]): one["rank"]
                         for one in document["vocab"][:most]}
                write(folder, name.removesuffix(".json"), of_ranks(ranks, tekken))
            elif ".model" in name:
                write(folder, "mistral_" + name.rpartition(".")[2],
                      of_sentencepiece(files.read(path)))


if __name__ == "__main__":
    main(*sys.argv[1:3])
