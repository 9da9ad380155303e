#!/usr/bin/env python3
"""Writes golden.safetensors: weights of three types, and what bitsandbytes
quantises and dequantises them to on the CPU, with and without double
quantisation. Needs torch, safetensors and bitsandbytes (0.50.2).

    python3 make_golden.py
"""
import pathlib

import bitsandbytes.functional as bnb
import torch
from safetensors.torch import save_file

TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16,
         "float16": torch.float16}
# 16,510 numbers: 258 blocks, the last of 62 numbers, and so two blocks of
# scales, the second of two.
SHAPE = (130, 127)


def add(tensors, key, values, nested):
    codes, state = bnb.quantize_4bit(values, blocksize=64, quant_type="nf4",
                                     compress_statistics=nested)
    tensors[f"{key}.values"] = values
    tensors[f"{key}.weight"] = codes
    for part, value in state.as_dict(packed=True).items():
        tensors[f"{key}.weight.{part}"] = value
    tensors[f"{key}.dequantized"] = bnb.dequantize_4bit(codes, state)


def main():
    torch.manual_seed(50)
    weights = torch.randn(SHAPE) * 0.05
    weights.view(-1)[128:192] = 0  # a block of zeros
    tensors = {}
    add(tensors, "nested", weights.to(torch.bfloat16), True)
    for name, dtype in TYPES.items():
        add(tensors, name, weights[:9].to(dtype), False)
    save_file({name: value.contiguous() for name, value in tensors.items()},
              pathlib.Path(__file__).with_name("golden.safetensors"))


if __name__ == "__main__":
    main()
