"""The parts of penstock.Loader.

    base      batches of an engine, in an order that can be resumed
    formats   batches of tensors of torch, numpy or JAX
    ranks     one rank of several, and whether all have opened the same
"""
