#!/usr/bin/env python3
"""A small operator for tests of witnesses: lists the Packages about once a second and handles each as its mode says.

    small_operator.py MODE [BUG] [watch] [hold]

MODE is the trace that the operator leaves, by which a witness sees what it handled. `name`, `label`, `owner`: a ConfigMap that refers to
the Package in this way. `kept`: like `label`, and a deleted or edited ConfigMap is restored. `finalizer`. `condition`, `annotation`: the
handled generation. `log`: lines as controller-runtime writes them. `metrics`: a series for each object, and one with its generation as
value, on $LONGHAUL_METRICS_PORT.

BUG is a mistake. `no-create` ignores every fifth object, `no-update` all changes, `no-delete` all deletions. `restless` never comes to
rest (`annotation` and `condition` change in each round). `twice` creates each ConfigMap twice, as with a stale cache, and deletes one in
the next round. `again` creates a Package again that another writer deleted. `reaps` deletes every fifth Package. `unowned` creates a
ConfigMap without an owner for each Package; with `owned` it has its owner.

With `watch` the operator watches the Packages, and lists them at the start and when the watch ends. With `hold` it also holds each
Package by its finalizer. Needs Python 3.9 or newer and nothing else.
"""

import base64
import http.client
import http.server
import json
import os
import re
import ssl
import sys
import threading
import time
import uuid

PACKAGES = "/apis/longhaul.dev/v1alpha1/packages"
CONFIGMAPS = "/api/v1/configmaps"
MADE_BY = "app.kubernetes.io/managed-by"
UID = "example.com/package-uid"
FINALIZER = "example.com/cleanup"
# Pause between two rounds: too long for a hot loop.
PAUSE_S = 0.8
PATCH = "application/merge-patch+json"


class Api:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            config = file.read()
        field = lambda name: re.search(rf'"?\b{name}"?\s*:\s*(?:[>|]-?\s+)?"?([^"\s,}}]+)', config).group(1)
        self.server, self.token = field("server").removeprefix("https://"), field("token")
        self.tls = ssl.create_default_context(cadata=base64.b64decode(field("certificate-authority-data")).decode())
        self.connection = None

    def ask(self, method, path, body=None, kind="application/json"):
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
        if self.connection is None:
            self.connection = http.client.HTTPSConnection(self.server, timeout=10, context=self.tls)
        try:
            self.connection.request(method, path, body and json.dumps(body), headers)
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            self.connection = None
            raise
        # Another writer was faster. The next round handles the object again.
        return json.loads(text) if answer.status < 300 else {}

    def list(self, path):
        # An answer without items would look as if no object existed.
        return self.ask("GET", path)["items"]


class Follower:
    """The Packages as a watch reports them."""

    def __init__(self):
        self.api, self.known, self.lock = Api(os.environ["KUBECONFIG"]), None, threading.Lock()
        threading.Thread(target=self.follow, daemon=True).start()

    def follow(self):
        while True:
            try:
                page = self.api.ask("GET", PACKAGES)
                with self.lock:
                    self.known = {one["metadata"]["uid"]: one for one in page["items"]}
                self.watch(page["metadata"]["resourceVersion"])
            except (OSError, http.client.HTTPException, KeyError, ValueError) as error:
                print(f"follows again: {error!r}", file=sys.stderr, flush=True)
            time.sleep(PAUSE_S)

    def watch(self, version):
        connection = http.client.HTTPSConnection(self.api.server, timeout=60, context=self.api.tls)
        path = f"{PACKAGES}?watch=true&timeoutSeconds=300&resourceVersion={version}"
        connection.request("GET", path, headers={"Authorization": f"Bearer {self.api.token}"})
        for line in connection.getresponse():
            event = json.loads(line)
            uid = event["object"].get("metadata", {}).get("uid")
            if event["type"] == "ERROR":
                return
            with self.lock:
                if event["type"] == "DELETED":
                    self.known.pop(uid, None)
                else:
                    self.known[uid] = event["object"]

    def packages(self):
        with self.lock:
            return dict(self.known or {})


class Operator:
    def __init__(self, mode, options):
        self.api, self.mode = Api(os.environ["KUBECONFIG"]), mode
        bugs = ("restless", "twice", "again", "reaps", "unowned")
        self.bug = next((one for one in options if one.startswith("no-") or one in bugs), "")
        self.owns = mode == "owner" or "owned" in options
        self.holds = mode == "finalizer" or "hold" in options
        self.follower = Follower() if "watch" in options else None
        self.handled = {}  # uid -> generation
        self.seen = {}  # uid -> Package, as it was last
        self.extra = []  # paths

    def packages(self):
        if self.follower:
            return self.follower.packages()
        return {one["metadata"]["uid"]: one for one in self.api.list(PACKAGES)}

    def round(self):
        while self.extra:
            self.api.ask("DELETE", self.extra.pop())
        packages = self.packages()
        if self.bug == "again":
            for uid in [uid for uid in self.seen if uid not in packages]:
                self.make_again(self.seen.pop(uid))
            self.seen.update(packages)
        for uid, package in packages.items():
            meta = package["metadata"]
            if self.bug == "no-create" and uid not in self.handled and int(uid[-4:], 16) % 5 == 0:
                continue
            if self.bug == "reaps" and int(uid[-4:], 16) % 5 == 0:
                self.api.ask("DELETE", self.package(meta))
                continue
            if "deletionTimestamp" in meta:
                self.leave(meta)
            elif self.handled.get(uid) != meta["generation"] or self.bug == "restless":
                if self.bug == "no-update" and uid in self.handled:
                    continue
                self.handle(meta, package)
                if self.mode != "owner" and (self.owns or self.bug == "unowned"):
                    self.child(meta)
                if self.bug == "twice" and uid not in self.handled:
                    self.child_again(meta)
                self.handled[uid] = meta["generation"]
        if self.bug != "no-delete":
            self.handled = {uid: seen for uid, seen in self.handled.items() if uid in packages}
            if self.mode in ("name", "label", "kept"):
                # One list serves both uses, because a second list would look like a hot loop.
                children = self.api.list(CONFIGMAPS)
                if self.mode == "kept":
                    self.look_after(packages, children)
                self.clean(packages, children)

    def place(self, meta, collection, plural):
        return f"{collection.removesuffix(plural)}namespaces/{meta['namespace']}/{plural}/{meta['name']}"

    def package(self, meta):
        return self.place(meta, PACKAGES, "packages")

    def handle(self, meta, package):
        finalizers = meta.get("finalizers", [])
        if self.holds and FINALIZER not in finalizers:
            self.hold(meta, finalizers + [FINALIZER])
        if self.mode in ("name", "label", "owner", "kept"):
            self.child(meta)
        elif self.mode == "annotation":
            change = {"metadata": {"annotations": {"example.com/seen": str(meta["generation"])}}}
            if self.bug == "restless":
                change["metadata"]["annotations"]["example.com/seen-at"] = str(time.time())
            self.api.ask("PATCH", self.package(meta), change, PATCH)
        elif self.mode == "condition":
            others = [one for one in package.get("status", {}).get("conditions", []) if one["type"] != "Ready"]
            ready = {"type": "Ready", "status": "True", "reason": "Handled", "message": "", "observedGeneration":
                     meta["generation"], "lastTransitionTime": "2026-01-01T00:00:00Z"}
            if self.bug == "restless":
                ready["message"] = f"seen at {time.time()}"
            odd = {**ready, "type": "Odd", "observedGeneration": 0}
            change = {"status": {"conditions": [odd, *[one for one in others if one["type"] != "Odd"], ready]}}
            self.api.ask("PATCH", self.package(meta) + "/status", change, PATCH)
        elif self.mode == "log":
            fields = {"controller": "package", "controllerGroup": "longhaul.dev", "controllerKind": "Package",
                      "Package": {"name": meta["name"], "namespace": meta["namespace"]},
                      "namespace": meta["namespace"], "name": meta["name"], "reconcileID": str(uuid.uuid4())}
            print(f"2026-01-02T03:04:05Z\tINFO\treconciled\t{json.dumps(fields)}", flush=True)

    def wanted(self, meta):
        owner = {"apiVersion": "longhaul.dev/v1alpha1", "kind": "Package", "name": meta["name"], "uid": meta["uid"]}
        child = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": f"{meta['name']}-config",
                "namespace": meta["namespace"],
                "labels": {MADE_BY: "small-operator", UID: meta["uid"]},
                "ownerReferences": [owner] if self.owns else [],
            },
            "data": {"generation": str(meta["generation"])},
        }
        return child

    def child(self, meta):
        child = self.wanted(meta)
        place = self.place({**meta, "name": child["metadata"]["name"]}, CONFIGMAPS, "configmaps")
        if not self.api.ask("PUT", place, child):
            self.api.ask("POST", place.rsplit("/", 1)[0], child)

    def child_again(self, meta):
        child = self.wanted(meta)
        del child["metadata"]["name"]
        child["metadata"]["generateName"] = f"{meta['name']}-"
        place = self.place({**meta, "name": "-"}, CONFIGMAPS, "configmaps").rsplit("/", 1)[0]
        made = self.api.ask("POST", place, child)
        if made:
            self.extra.append(f"{place}/{made['metadata']['name']}")

    def make_again(self, package):
        meta = {key: package["metadata"][key] for key in ("name", "namespace")}
        again = {"apiVersion": package["apiVersion"], "kind": package["kind"], "metadata": meta, "spec": package["spec"]}
        self.api.ask("POST", self.package(meta).rsplit("/", 1)[0], again)

    def look_after(self, packages, children):
        there = {}
        for child in children:
            there.setdefault(child["metadata"].get("labels", {}).get(UID), child)
        for uid, generation in self.handled.items():
            package = packages.get(uid)
            if package and "deletionTimestamp" not in package["metadata"]:
                if there.get(uid, {}).get("data") != {"generation": str(generation)}:
                    self.child(package["metadata"])

    def clean(self, packages, children):
        for child in children:
            labels = child["metadata"].get("labels", {})
            if labels.get(MADE_BY) == "small-operator" and labels[UID] not in packages:
                self.api.ask("DELETE", self.place(child["metadata"], CONFIGMAPS, "configmaps"))

    def leave(self, meta):
        finalizers = meta.get("finalizers", [])
        if self.holds and self.bug != "no-delete" and FINALIZER in finalizers:
            self.hold(meta, [one for one in finalizers if one != FINALIZER])

    def hold(self, meta, finalizers):
        change = {"metadata": {"finalizers": finalizers}}
        if not self.follower:
            change["metadata"]["resourceVersion"] = meta["resourceVersion"]
        self.api.ask("PATCH", self.package(meta), change, PATCH)

    def page(self):
        handled = list(self.handled.items())
        info = [f'package_info{{namespace="longhaul",uid="{uid}"}} 1\n' for uid, _ in handled]
        generation = [f'package_generation{{uid="{uid}"}} {number}\n' for uid, number in handled]
        return "".join(["# TYPE package_info gauge\n", *info, "# TYPE package_generation gauge\n", *generation])

    def serve(self, port):
        operator = self

        class Page(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                text = operator.page().encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Page)
        threading.Thread(target=server.serve_forever, daemon=True).start()


def main():
    operator = Operator(sys.argv[1], sys.argv[2:])
    if operator.mode == "metrics":
        operator.serve(int(os.environ["LONGHAUL_METRICS_PORT"]))
    while True:
        try:
            operator.round()
        except (OSError, http.client.HTTPException, KeyError) as error:
            print(f"tried again: {error!r}", file=sys.stderr, flush=True)
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    main()
