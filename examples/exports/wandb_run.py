"""The numbers of a run in Weights & Biases, offline (pip install wandb):

    python examples/exports/wandb_run.py runs/latest

`wandb sync` uploads the folder that it leaves.
"""
import json
import pathlib
import sys

import wandb

run = pathlib.Path(sys.argv[1]).resolve()
report = json.loads((run / "report.json").read_text())
with wandb.init(project="penstock", name=run.name, dir=run.parent,
                mode="offline", config=report["settings"]) as log:
    for epoch in report["epochs"]:
        log.log({key: value for key, value in epoch.items()
                 if isinstance(value, (int, float))}, step=epoch["epoch"])
    log.summary["au"] = report["au"]
    log.summary["verdict"] = report["verdict"]["cause"]
