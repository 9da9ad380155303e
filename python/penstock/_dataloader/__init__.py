"""The parts of penstock.DataLoader, the drop-in for torch's DataLoader.

    plans           where the ids of an epoch's batches come from
    seeds           the seeds of workers and batches, drawn by the engine
    state           what is saved of a loop, and whether a loader can continue there
    replay          whether a generator's seed gives them again
    iteration       one epoch: hands tasks to a pool, batches out in order
    worker_pool     worker processes, as the engine's process sees them
    transfer        how the data set gets to the server
    start           the first lines of the server
    server          the clean process that holds the data set and forks workers
    worker          the loop of one worker
    assembly_table  where workers put the pieces of one batch together
    threads         the same pool, of threads
    fetching        one task: items from the data set, collated
    collate         items become a batch, by torch's rules
    memory          blocks of shared memory without a name
    packing         objects to bytes, arrays left out of the pickle
    errors          ours that torch's loader raises, too
    remote_error    exceptions that change the process
    meter           what is counted; the engine says what limits
    looks           whether those that make items compute or wait
    transfer_cost   what moving a batch between processes costs
    line            the progress line

The worker processes import this package alone, without the engine (start).
"""
