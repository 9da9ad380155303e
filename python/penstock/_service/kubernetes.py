"""A Kubernetes Job for a request, for `penstock submit --to k8s`."""

from __future__ import annotations

import json
import re
from typing import Any, Mapping

_GRACE_S = 120  # for the checkpoint


def manifest(request: Mapping[str, Any], image: str = "penstock:cuda"
             ) -> dict[str, Any]:
    """The Job of batch/v1. Its volumes `penstock-job` (a ConfigMap with
    job.json) and `penstock-runs` (a claim) are the cluster's. A pod that is
    evicted is replaced, and its run continues from the last checkpoint."""
    name = re.sub(r"[^a-z0-9]+", "-", str(request["job_name"]).lower())
    keys = json.dumps(request["config"])
    script = ("printf %s \"$PENSTOCK_MANIFEST\" > /tmp/manifest.json; "
              "if [ -e /runs/latest/state.json ]; "
              "then exec penstock train --resume /runs/latest; "
              "else exec penstock train /job/job.json --manifest "
              "/tmp/manifest.json --set output.dir=/runs; fi")
    container = {
        "name": "training", "image": image,
        "command": ["/bin/sh", "-c", script],
        "env": [{"name": "PENSTOCK_MANIFEST", "value": keys}],
        "resources": {"limits": {"nvidia.com/gpu": 1}},
        "volumeMounts": [{"name": "job", "mountPath": "/job",
                          "readOnly": True},
                         {"name": "runs", "mountPath": "/runs"}]}
    return {
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name.strip("-")[:52] or "training",
                     "labels": {"app.kubernetes.io/name": "penstock"}},
        "spec": {
            "backoffLimit": 3,
            "template": {"spec": {
                "restartPolicy": "OnFailure",
                "terminationGracePeriodSeconds": _GRACE_S,
                "containers": [container],
                "volumes": [
                    {"name": "job", "configMap": {"name": "penstock-job"}},
                    {"name": "runs", "persistentVolumeClaim": {
                        "claimName": "penstock-runs"}}]}}}}
