#!/usr/bin/env python3
"""A project's program for tests of `longhaul init`: it creates a ConfigMap for each Basket, and does nothing with Shelves.

The program needs a variable and a namespace, serves metrics at the port of a flag, and reads the Secret that each Basket names. Needs
Python 3.9 or newer.
"""

import argparse
import base64
import http.client
import http.server
import json
import os
import re
import ssl
import sys
import threading

GROUP = "/apis/shop.example.com/v1"
FINALIZER = "shop.example.com/hold"
PATCH = "application/merge-patch+json"

arguments = argparse.ArgumentParser()
arguments.add_argument("--metrics-port", type=int, default=8080, help="where the metrics are [default: 8080]")
arguments = arguments.parse_args()
if "SHOP_MODE" not in os.environ:
    sys.exit("SHOP_MODE must be set")


class Api:
    def __init__(self):
        with open(os.environ["KUBECONFIG"], encoding="utf-8") as file:
            config = file.read()
        field = lambda name: re.search(rf'"?\b{name}"?\s*:\s*(?:[>|]-?\s+)?"?([^"\s,}}]+)', config).group(1)
        self.server, self.token = field("server").removeprefix("https://"), field("token")
        self.tls = ssl.create_default_context(cadata=base64.b64decode(field("certificate-authority-data")).decode())

    def open(self, method, path, body=None, kind="application/json"):
        connection = http.client.HTTPSConnection(self.server, timeout=60, context=self.tls)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
        connection.request(method, path, body and json.dumps(body), headers)
        return connection.getresponse()

    def ask(self, *words):
        answer = self.open(*words)
        return answer.status, json.loads(answer.read())

    def follow(self, plural, handle):
        """Lists, and watches from the list's version. A watch that ends is resumed, until the server answers 410."""
        while True:
            _, page = self.ask("GET", f"{GROUP}/{plural}")
            for one in page["items"]:
                handle(one)
            since = page["metadata"]["resourceVersion"]
            while since:
                since = self.watch(plural, handle, since)

    def watch(self, plural, handle, since):
        try:
            answer = self.open("GET", f"{GROUP}/{plural}?watch=true&resourceVersion={since}")
            if answer.status != 200:
                return None
            for line in answer:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return None
                since = event["object"]["metadata"]["resourceVersion"]
                if event["type"] in ("ADDED", "MODIFIED"):
                    handle(event["object"])
        except (OSError, http.client.HTTPException, ValueError):
            pass
        return since


class Metrics(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/metrics" else 404)
        self.end_headers()
        self.wfile.write(b"baskets 1\n")

    def log_message(self, *_):
        pass


def handle(basket):
    meta = basket["metadata"]
    at = f"{GROUP}/namespaces/{meta['namespace']}/baskets/{meta['name']}"
    configs = f"/api/v1/namespaces/{meta['namespace']}/configmaps"
    if "deletionTimestamp" in meta:
        api.ask("PATCH", at, {"metadata": {"finalizers": None}}, PATCH)
        return
    if FINALIZER not in meta.get("finalizers", []):
        api.ask("PATCH", at, {"metadata": {"finalizers": [FINALIZER]}}, PATCH)
        return
    if basket.get("status", {}).get("observedGeneration") == meta["generation"]:
        return
    if login := basket["spec"].get("login"):
        status, _ = api.ask("GET", f"/api/v1/namespaces/{meta['namespace']}/secrets/{login}")
        if status == 404:
            return
    owner = {"apiVersion": "shop.example.com/v1", "kind": "Basket", "name": meta["name"], "uid": meta["uid"]}
    api.ask("POST", configs, {"metadata": {"name": f"{meta['name']}-config", "ownerReferences": [owner]}})
    api.ask("PATCH", f"{at}/status", {"status": {"observedGeneration": meta["generation"]}}, PATCH)


api = Api()
server = http.server.ThreadingHTTPServer(("127.0.0.1", arguments.metrics_port), Metrics)
threading.Thread(target=server.serve_forever, daemon=True).start()
# Writes an object into the program's own namespace, as some controllers do.
api.ask("POST", "/api/v1/namespaces/shop-system/configmaps", {"metadata": {"name": "shop-state"}})
threading.Thread(target=api.follow, args=("shelves", lambda shelf: None), daemon=True).start()
api.follow("baskets", handle)
