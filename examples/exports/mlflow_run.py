"""The numbers of a run in MLflow's file store (pip install mlflow-skinny):

    python examples/exports/mlflow_run.py runs/latest
"""
import json
import os
import pathlib
import sys

os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # newer ones refuse it
import mlflow

run = pathlib.Path(sys.argv[1]).resolve()
report = json.loads((run / "report.json").read_text())
mlflow.set_tracking_uri((run.parent / "mlruns").as_uri())
with mlflow.start_run(run_name=run.name):
    mlflow.log_params({"settings." + key: value for key, value in
                       report["settings"]["loader"].items()})
    for epoch in report["epochs"]:
        mlflow.log_metrics({key: value for key, value in epoch.items()
                            if isinstance(value, (int, float))},
                           step=epoch["epoch"])
    mlflow.log_metric("au", report["au"] or 0.0)
    mlflow.set_tag("verdict", report["verdict"]["cause"])
