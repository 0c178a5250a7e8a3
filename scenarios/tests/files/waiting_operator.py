#!/usr/bin/env python3
"""An operator that waits: it creates a Deployment for each Package, and writes `phase: Ready` into the Package's status once all Pods of
the Deployment are ready.

    waiting_operator.py [impatient]

With the mistake `impatient`, it requests the Deployment again without a pause while it is not ready. Needs Python 3.9 or newer and nothing else.
"""

import http.client
import os
import sys
import time

from small_operator import PACKAGES, PATCH, PAUSE_S, UID, Api

DEPLOYMENTS = "/apis/apps/v1/deployments"
PODS = 2
# Pause of the mistake: so short that the requests are a hot loop.
NO_PAUSE_S = 0.05


def place(collection, plural, namespace, name):
    return f"{collection.removesuffix(plural)}namespaces/{namespace}/{plural}/{name}"


def deployment(meta):
    labels = {UID: meta["uid"]}
    owner = {"apiVersion": "longhaul.dev/v1alpha1", "kind": "Package", "name": meta["name"], "uid": meta["uid"]}
    generation = str(meta["generation"])
    container = {"name": "app", "image": "app:1", "env": [{"name": "GENERATION", "value": generation}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": meta["name"], "namespace": meta["namespace"], "labels": labels, "ownerReferences": [owner]},
        "spec": {
            "replicas": PODS,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def generation(one):
    return one["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"]


def is_ready(one):
    status = one.get("status", {})
    counts = [status.get(key, 0) for key in ("replicas", "updatedReplicas", "readyReplicas")]
    return status.get("observedGeneration") == one["metadata"]["generation"] and counts == [PODS] * 3


def look(api, package, children):
    """Handles one Package. Returns whether its Deployment is ready."""
    meta, status = package["metadata"], package.get("status", {})
    child = children.get(meta["uid"])
    wanted = deployment(meta)
    at = place(DEPLOYMENTS, "deployments", meta["namespace"], meta["name"])
    if child is None:
        api.ask("POST", at.rsplit("/", 1)[0], wanted)
        return False
    if generation(child) != str(meta["generation"]):
        api.ask("PUT", at, wanted)
        return False
    ready = is_ready(child)
    said = {"phase": "Ready" if ready else "Pending"}
    if ready:
        said["observedGeneration"] = meta["generation"]
    if any(status.get(key) != value for key, value in said.items()):
        api.ask("PATCH", place(PACKAGES, "packages", meta["namespace"], meta["name"]) + "/status", {"status": said}, PATCH)
    return ready


def main():
    api, impatient = Api(os.environ["KUBECONFIG"]), "impatient" in sys.argv[1:]
    while True:
        waits = False
        try:
            children = {one["metadata"].get("labels", {}).get(UID): one for one in api.list(DEPLOYMENTS)}
            for package in api.list(PACKAGES):
                if "deletionTimestamp" not in package["metadata"]:
                    waits |= not look(api, package, children)
        except (OSError, http.client.HTTPException, KeyError) as error:
            print(f"tried again: {error!r}", file=sys.stderr, flush=True)
        time.sleep(NO_PAUSE_S if impatient and waits else PAUSE_S)


if __name__ == "__main__":
    main()
