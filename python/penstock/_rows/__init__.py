"""Where rows come from when Python brings them.

    own_rows        which of these a loader was given
    callables       arrays, objects with `read(ids)`, and functions that map rows
    sources         objects with `read(positions)`
    tables          data frames and tables in memory, by Arrow's C data interface
    arrow_shapes    the shapes of Arrow's list and tensor columns
    object_texts    texts among the objects of a data frame
    masked          numpy's masked arrays
    table_fields    the fields that columns make when none are named
    media_columns   columns of pictures and sounds
    array_fields    the same for named arrays; hdf5 and zarr use it
    hdf5            what h5py has opened, as a job's section
    zarr            what zarr has opened, as a job's section
    arrow_files     Parquet and Arrow files, read by pyarrow
    arrow_batches   their rows, in batches for the engine
    arrow_classes   the classes that their dictionaries declare
    arrow_child     the same files for the program `penstock`, in a process
    object_store    files in object stores, by pyarrow.fs
    pyarrow_calls   importing pyarrow, and its errors in our words
"""
