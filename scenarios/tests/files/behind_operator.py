#!/usr/bin/env python3
"""An operator that is behind with its work, or cannot do it, for tests of the causes that a report names. The operator watches
Packages, handles them one after the other in the order of their events, and writes the handled generation into an annotation.

    behind_operator.py MODE

MODE is one of these. `limited`: eight requests a second, five for each object. `passes`: like `limited`, but every fifth object is
ignored. `refused`: the operator first writes a ConfigMap that every API server refuses. `unled`: it waits for a Lease in a namespace
that does not exist. `workload`: it creates a Deployment and waits for its replicas. Needs Python 3.9 or newer and nothing else.
"""

import os
import sys
import time

from small_operator import CONFIGMAPS, PACKAGES, PATCH, Api, Follower

EACH_S = 1 / 8
LEASES = "/apis/coordination.k8s.io/v1/namespaces/nowhere/leases"


class Behind:
    def __init__(self, mode):
        self.mode, self.api, self.next_at = mode, Api(os.environ["KUBECONFIG"]), 0.0
        self.follower, self.queue, self.done = None, [], {}

    def ask(self, *request):
        if self.mode in ("limited", "passes"):
            self.next_at = max(self.next_at + EACH_S, time.monotonic())
            time.sleep(max(0.0, self.next_at - time.monotonic()))
        return self.api.ask(*request)

    def lead(self):
        lease = {"metadata": {"name": "behind"}, "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}}
        while self.mode == "unled" and not self.api.ask("GET", f"{LEASES}/behind"):
            self.api.ask("POST", LEASES, lease)
            time.sleep(2)

    def round(self):
        packages = self.follower.packages()
        for uid, package in packages.items():
            if self.done.get(uid) != package["metadata"]["generation"] and uid not in self.queue:
                self.queue.append(uid)
        if not self.queue:
            time.sleep(0.02)
            return
        uid = self.queue.pop(0)
        package = packages.get(uid)
        if package is None:
            return
        meta = package["metadata"]
        if not (self.mode == "passes" and int(meta["name"].rsplit("-", 1)[1]) % 5 == 0):
            self.handle(meta)
        self.done[uid] = meta["generation"]

    def handle(self, meta):
        maps = CONFIGMAPS.replace("/configmaps", f"/namespaces/{meta['namespace']}/configmaps")
        if self.mode in ("limited", "passes"):
            for part in range(4):
                name = f"{meta['name']}-{part}"
                body = {"metadata": {"name": name}, "data": {"generation": str(meta["generation"])}}
                if not self.ask("PUT", f"{maps}/{name}", body) and part == 0:
                    self.ask("POST", maps, body)
        elif self.mode == "refused":
            if not self.ask("POST", maps, {"metadata": {"name": f"{meta['name']}-config"}, "data": {"a b": "no"}}):
                return
        elif self.mode == "workload":
            if not self.ready(meta):
                return
        seen = {"metadata": {"annotations": {"example.com/seen": str(meta["generation"])}}}
        place = PACKAGES.replace("/packages", f"/namespaces/{meta['namespace']}/packages/{meta['name']}")
        self.ask("PATCH", place, seen, PATCH)

    def ready(self, meta):
        collection = f"/apis/apps/v1/namespaces/{meta['namespace']}/deployments"
        labels = {"app": meta["name"]}
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "example.com/a:1"}]}}}
        made = self.ask("GET", f"{collection}/{meta['name']}")
        if not made:
            made = self.ask("POST", collection, {"metadata": {"name": meta["name"]}, "spec": spec})
        return made.get("status", {}).get("readyReplicas", 0) > 0


def main():
    operator = Behind(sys.argv[1])
    operator.lead()
    operator.follower = Follower()
    while True:
        operator.round()


if __name__ == "__main__":
    main()
