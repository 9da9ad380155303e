"""The parts of penstock.DataLoader, the drop-in for torch's DataLoader.

    plans       where the ids of an epoch's batches come from
    seeds       the seeds of workers and batches, drawn by the engine
    replay      whether a generator's seed gives them again
    iteration   one epoch: hands tasks to a crew, batches out in order
    crew        helper processes, as the engine's process sees them
    travel      how the data set gets to the server
    start       the first lines of the server
    server      the clean process that holds the data set and forks helpers
    worker      the loop of one helper
    board       where helpers put the pieces of one batch together
    threads     the same crew, of threads
    fetching    one task: items from the data set, collated
    collate     items become a batch, by torch's rules
    memory      blocks of shared memory without a name
    packing     objects to bytes, arrays left out of the pickle
    errors      ours that torch's loader raises, too
    carried     exceptions that change the process
    meter       what is counted; the engine says what limits
    rehearsal   what moving a batch between processes costs
    line        the progress line

The helper processes import this package alone, without the engine (start).
"""
