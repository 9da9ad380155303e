"""The job service, `penstock serve`: an HTTP API that runs trainings, and a
page that shows them. It needs the extra penstock[serve].

    configuration   service.json
    store           jobs, in SQLite
    mapping         a request and a recipe become a job document
    scheduler       starts queued jobs, notices ended ones
    runners         where a job runs: this machine, Slurm, Ray
    shim            the process beside each job
    run_folder      what a job has written
    events          server-sent events
    api             the routes
    guard, tokens   who may ask
    protocol        deadlines of a connection
    serving         puts these together
"""
