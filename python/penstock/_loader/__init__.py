"""The parts of penstock.Loader.

    formats   batches of tensors of torch, numpy or JAX
    ranks     one rank of several, and whether all have opened the same
"""
