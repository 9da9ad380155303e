#!/usr/bin/env python3
"""Compares the codes of errors in the sources with docs/reference/errors/, both
ways. Exits 1 and says what is wrong.

A code is "family.name". What stands behind `.code =` or is the code of
refused() or worded() must be listed; so must every text of such a form and of
a family that is listed. A listed code must stand in the sources, whole or in
its two halves.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CODE = r"[a-z]+\.[a-z_]+"
LISTED = re.compile(rf"^\| (`{CODE}`(?:, `{CODE}`)*) \|", re.M)
RAISED = re.compile(r"\.code =(.*?)\.what|(?:refused\(|worded\(\s*\w+,)\s*"
                    rf'("{CODE}")', re.S)
# Codes of fakes, of examples, and one that nobody sees; then what is written
# like a code: settings, and the families in which files or settings are.
OTHERS = {"fake.failed", "a.code", "sqlite.open", "device.part_missing",
          "data.mdb",
          "device.key", "device.memory_gib", "loader.balance", "loader.batch_size", "loader.cache",
          "loader.cache_dir", "loader.limit", "loader.prefetch",
          "loader.prepare",
          "loader.read", "loader.readers", "loader.seed", "loader.shuffle", "loader.tail",
          "loader.val_batch_size", "loader.weights", "loader.workers",
          "model.kind", "model.lora", "model.path", "model.seed",
          "model.quantize", "model.safetensors", "service.sock", "output.dir", "output.tensorboard", "source.columns", "source.key",
          "source.kind", "source.part_", "source.path", "tokenizer.json"}
OF_FILES = {"memory", "run", "train"}


def main():
    text = "".join(page.read_text() for page in
                   sorted((ROOT / "docs/reference/errors").glob("*.md")))
    listed = {code for line in LISTED.findall(text)
              for code in re.findall(CODE, line)}
    families = {code.split(".")[0] for code in listed}
    bad, seen = [], set()
    for file in sorted(
            path for folder in ("penstock", "python")
            for path in (ROOT / folder).rglob("*")):
        if file.suffix not in {".h", ".cpp", ".cu", ".py"} or \
                re.search("_test|^python/tests/", str(file.relative_to(ROOT))):
            continue
        source = file.read_text()
        texts = re.findall(r'"([a-z_.]+)"', source)
        seen |= set(texts)
        raised = {code for found in RAISED.findall(source)
                  for code in re.findall(f'"({CODE})"', "".join(found))}
        for code in raised | {text for text in texts
                              if re.fullmatch(CODE, text)
                              and text.split(".")[0] in families - OF_FILES}:
            if code not in listed | OTHERS:
                bad.append(f"{file.relative_to(ROOT)}: {code} is not listed")
    for code in sorted(listed - seen):
        family, name = code.split(".")
        if not {family, family + "."} & seen or not {name, "." + name} & seen:
            bad.append(f"docs/reference/errors: {code} is in no source")
    print("\n".join(bad) or f"{len(listed)} codes")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
