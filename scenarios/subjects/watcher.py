#!/usr/bin/env python3
"""An example subject to copy: watches one resource and reports every change that it saw to the witness.

The program lists, and then watches from the list's version. After 410 it lists again and reports the differences. It never
waits without a time limit. KUBECONFIG names the API server, LONGHAUL_WITNESS_URL the receiver of reports, and LONGHAUL_WATCH
the watched resource (of several resources, the first one is watched).
Needs Python 3.9 or newer and nothing else.
"""

import base64
import json
import os
import re
import ssl
import sys
import time
import urllib.error
import urllib.request

# The server ends each watch after this time. A stream that is silent for longer is dead, even if its connection looks open.
WATCH_ENDS_AFTER_S = 15
SILENCE_MAX_S = 20
PAUSE_MIN_S, PAUSE_MAX_S = 0.2, 10.0
REPORT_TRIES = 10


class Gone(Exception):
    """The version is too old: only a list can show the present state."""


class Api:
    """The API server of a kubeconfig with one cluster and one user, read without a YAML library."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            config = file.read()

        def field(name, default=None):
            # A plain or quoted value, or a value that a YAML writer put onto the next line.
            found = re.search(rf'"?\b{name}"?\s*:\s*(?:[>|]-?\s+)?"?([^"\s,}}]+)', config)
            if not found and default is not None:
                return default
            if not found:
                raise SystemExit(f"{path} has no {name}")
            return found.group(1)

        self.server = field("server").rstrip("/")
        # A token file may be replaced at any time, so the file is read for every request.
        self.token_file = os.path.join(os.path.dirname(path), field("tokenFile", ""))
        self.token = field("token", "") if not field("tokenFile", "") else ""
        self.tls = ssl.create_default_context(cadata=base64.b64decode(field("certificate-authority-data")).decode())

    def open(self, path, timeout_s):
        token = self.token
        if not token:
            with open(self.token_file, encoding="utf-8") as file:
                token = file.read().strip()
        headers = {"Authorization": f"Bearer {token}", "User-Agent": "example-watcher-python"}
        request = urllib.request.Request(self.server + path, headers=headers)
        try:
            return urllib.request.urlopen(request, timeout=timeout_s, context=self.tls)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 410:
                raise Gone from error
            raise


class Watcher:
    def __init__(self):
        self.api = Api(os.environ["KUBECONFIG"])
        self.witness = os.environ["LONGHAUL_WITNESS_URL"]
        wanted = (os.environ.get("LONGHAUL_WATCH") or "packages.longhaul.dev/v1alpha1").split(",")[0]
        self.resource, version = wanted.split("/")
        plural, _, group = self.resource.partition(".")
        self.path = f"/apis/{group}/{version}/{plural}" if group else f"/api/{version}/{plural}"
        self.known = {}  # uid -> metadata, because a name can be used again
        self.version = ""
        self.lines = []

    def run(self):
        pause_s, must_list = PAUSE_MIN_S, True
        while True:
            before, began, failed, retry_after_s = self.version, time.monotonic(), False, 0.0
            try:
                if must_list:
                    self.list()
                    must_list = False
                else:
                    self.watch()
            except Gone:
                must_list = True
            except (OSError, ValueError, KeyError) as error:
                print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
                failed = True
                if isinstance(error, urllib.error.HTTPError) and (error.headers.get("Retry-After") or "").isdigit():
                    retry_after_s = float(error.headers["Retry-After"])
            self.post()
            # If the server ends a quiet watch, that is no failure. A watch that ends at once must not become a hot loop.
            progressed = self.version != before or time.monotonic() - began > 1
            pause_s = PAUSE_MIN_S if progressed else min(pause_s * 2, PAUSE_MAX_S)
            if failed or not progressed:
                time.sleep(max(pause_s, retry_after_s))

    def list(self):
        """Lists all objects. The request has no resourceVersion, so the answer is never older than earlier answers."""
        items, more = [], ""
        while True:
            with self.api.open(f"{self.path}?limit=500&continue={more}", SILENCE_MAX_S) as answer:
                page = json.load(answer)
            items += page["items"]
            more = page["metadata"].get("continue", "")
            if not more:
                break
        listed = {item["metadata"]["uid"] for item in items}
        for uid in [uid for uid in self.known if uid not in listed]:
            self.deleted(self.known[uid])
        for item in items:
            self.changed(item["metadata"])
        self.version = page["metadata"]["resourceVersion"]

    def watch(self):
        query = f"watch=1&allowWatchBookmarks=true&timeoutSeconds={WATCH_ENDS_AFTER_S}&resourceVersion={self.version}"
        with self.api.open(f"{self.path}?{query}", SILENCE_MAX_S) as stream:
            while line := stream.readline():
                self.event(json.loads(line))
                self.post()

    def event(self, event):
        kind, item = event["type"], event["object"]
        if kind == "ERROR":
            if item.get("code") == 410:
                raise Gone
            raise ValueError(f"the watch answered {item}")
        metadata = item["metadata"]
        if kind in ("ADDED", "MODIFIED"):
            self.changed(metadata)
        elif kind == "DELETED":
            self.deleted(metadata)
        self.version = metadata["resourceVersion"]

    def changed(self, metadata):
        before = self.known.get(metadata["uid"])
        if before and before["resourceVersion"] == metadata["resourceVersion"]:
            return
        kept = ("uid", "namespace", "name", "resourceVersion")
        self.known[metadata["uid"]] = {key: metadata.get(key, "") for key in kept}
        self.report(metadata, "modified" if before else "added")

    def deleted(self, metadata):
        """Records a deletion. A deletion that only a list shows has no version; the last known version is used."""
        if self.known.pop(metadata["uid"], None):
            self.report(metadata, "deleted")

    def report(self, metadata, change):
        line = {key: metadata.get(key, "") for key in ("namespace", "name", "uid", "resourceVersion")}
        self.lines.append(json.dumps({"resource": self.resource, **line, "change": change}))

    def post(self):
        """Reports all lines in order. If that fails, the program must not continue as if nothing were wrong."""
        if not self.lines:
            return
        body = ("\n".join(self.lines) + "\n").encode()
        for _ in range(REPORT_TRIES):
            try:
                request = urllib.request.Request(self.witness, body, {"Content-Type": "application/x-ndjson"})
                with urllib.request.urlopen(request, timeout=10):
                    self.lines.clear()
                    return
            except OSError:
                time.sleep(0.3)
        raise SystemExit(f"the witness at {self.witness} cannot be reached")


if __name__ == "__main__":
    try:
        Watcher().run()
    except KeyboardInterrupt:
        pass
