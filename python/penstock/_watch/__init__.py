"""Measures a loop that Python runs, and says what limits it.

    watched         `penstock.watch()`: what a watched loop looks like
    watching        what is measured of a loop over any loader
    timed_items     when the items of a batch were made, and by whom
    copying         what copies to a GPU would gain from pinned memory
    epoch_starts    what starting workers again in each epoch costs
    predicting      what penstock.DataLoader would give in its place
    timing          the steps of a loop over `penstock.Loader`
    cuda_steps      when steps begin and end on torch's CUDA stream
"""
