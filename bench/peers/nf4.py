#!/usr/bin/env python3
"""Are weights of four bits those of bitsandbytes, bit for bit?

Random weights of three types, with blocks of zeros and a partial block at the
end, are quantised by bitsandbytes on the CPU and by bench_nf4, with scales of
32 and of 8 bits; each side dequantises what bitsandbytes wrote.

    python bench/peers/nf4.py build-bench/bin/bench_nf4 [WEIGHTS]
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import bitsandbytes
import bitsandbytes.functional as bnb
import torch
from safetensors.torch import load_file, save_file

from peer_result import print_result, torch_machine

TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16,
         "float16": torch.float16}
BITS = {4: torch.int32, 2: torch.int16, 1: torch.uint8}


def different(a, b):
    """How many numbers have other bits."""
    kind = BITS[a.element_size()]
    return (a.reshape(-1).view(kind) != b.reshape(-1).view(kind)).sum().item()


def weights(count, dtype):
    torch.manual_seed(50)
    side = int(count ** 0.5) + 1
    values = torch.randn(side, side) * 0.02
    values.view(-1)[:64 * 10] = 0
    values.view(-1)[64 * 100:64 * 101] = 0
    return values.to(dtype)


def compared(name, values, ours, theirs):
    single, nested = f"{name}.values.single", f"{name}.values.nested"
    scales = theirs[single + ".absmax"]

    def restored(tensors):
        second = tensors[nested + ".nested_absmax"].repeat_interleave(256)
        codes = tensors[nested + ".absmax"].long()
        state = bytes(tensors[nested + ".quant_state.bitsandbytes__nf4"].numpy())
        mean = json.loads(state)["nested_offset"]
        return (tensors[nested + ".nested_quant_map"][codes]
                * second[:codes.numel()] + mean)
    off = [(restored(side) - scales).abs() for side in (ours, theirs)]
    same = ours[nested + ".absmax"] == theirs[nested + ".absmax"]
    return {
        "workload": name, "weights": values.numel(),
        "partial_block": values.numel() % 64,
        "different": {
            "codes": different(ours[single], theirs[single]),
            "codes_nested": different(ours[nested], theirs[nested]),
            "scales": different(ours[single + ".absmax"], scales),
            "nested_map": different(ours[nested + ".nested_quant_map"],
                                    theirs[nested + ".nested_quant_map"]),
            "dequantized": different(ours[single + ".dequantized"],
                                     theirs[single + ".dequantized"]),
            "dequantized_nested": different(ours[nested + ".dequantized"],
                                            theirs[nested + ".dequantized"])},
        "second_level": {
            "equal_codes": same.double().mean().item(),
            "farther_than_theirs": (off[0] - off[1]).max().item()}}


def quantised_by_them(name, values):
    tensors = {}
    for kind, nested in (("single", False), ("nested", True)):
        codes, state = bnb.quantize_4bit(values, blocksize=64, quant_type="nf4",
                                         compress_statistics=nested)
        key = f"{name}.values.{kind}"
        tensors[key] = codes
        for part, value in state.as_dict(packed=True).items():
            tensors[f"{key}.{part}"] = value.contiguous()
        tensors[key + ".dequantized"] = bnb.dequantize_4bit(codes, state)
    return tensors


def converted(program, tensors, folder):
    save_file(tensors, folder / "in.safetensors")
    told = subprocess.run(
        [program, folder / "in.safetensors", folder / "out.safetensors"],
        check=True, stdout=subprocess.PIPE, text=True)
    return load_file(folder / "out.safetensors"), json.loads(told.stdout)


def main(program, count="10000000"):
    rows, rates = [], []
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        for name, dtype in TYPES.items():
            values = weights(int(count), dtype)
            theirs = quantised_by_them(name, values)
            ours, told = converted(program, {f"{name}.values": values}, folder)
            rates += told["results"]
            back, told = converted(
                program, {key: value for key, value in theirs.items()
                          if not key.endswith(".dequantized")}, folder)
            rates += told["results"]
            rows.append(compared(name, values, {**ours, **back}, theirs))
    print_result("nf4", __doc__,
                 f"python bench/peers/nf4.py {program} {count}",
                 {"machine": torch_machine(),
                  "bitsandbytes": bitsandbytes.__version__,
                  "results": rows, "rates": rates})


if __name__ == "__main__":
    main(*sys.argv[1:3])
