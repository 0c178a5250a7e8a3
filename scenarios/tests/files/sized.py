#!/usr/bin/env python3
"""A small cache for tests of `longhaul size`: lists and watches kinds, and keeps all objects.

    sized.py [MISTAKE] KIND…

KIND is `secrets`, `configmaps` or `pods`; with `?QUERY` behind it, the query is sent as well. MISTAKE is `twice` (keeps each object a
second time), `quadratic` (compares each object with all others at the start), `leaks` (keeps the old objects at each relist), `deaf`
(asks for nothing) or `dies` (ends after its first list). Needs Python 3.9 or newer and nothing else.
"""

import base64
import http.client
import json
import os
import re
import ssl
import sys
import threading
import time

MISTAKES = ("twice", "quadratic", "leaks", "deaf", "dies")


class Api:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            config = file.read()
        field = lambda name: re.search(rf'"?\b{name}"?\s*:\s*(?:[>|]-?\s+)?"?([^"\s,}}]+)', config).group(1)
        self.server, self.token = field("server").removeprefix("https://"), field("token")
        authority = base64.b64decode(field("certificate-authority-data")).decode()
        self.tls = ssl.create_default_context(cadata=authority)

    def get(self, path):
        connection = http.client.HTTPSConnection(self.server, timeout=60, context=self.tls)
        connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
        return connection.getresponse()


class Cache(threading.Thread):
    def __init__(self, api, kind, mistake):
        super().__init__(daemon=True)
        self.api, self.mistake = api, mistake
        name, _, self.query = kind.partition("?")
        self.path = f"/api/v1/{name}"
        self.objects, self.kept = {}, []

    def run(self):
        while True:
            version = self.list()
            if self.mistake == "dies":
                os._exit(3)
            self.watch(version)
            time.sleep(0.1)

    def list(self):
        answer = json.loads(self.api.get(f"{self.path}?{self.query}").read())
        # Bytes, not dictionaries: so the memory follows from the mistake, not from the allocator.
        items = {item["metadata"]["uid"]: json.dumps(item).encode() for item in answer["items"] or []}
        if self.mistake == "twice":
            self.kept = [bytes(bytearray(text)) for text in items.values()]
        if self.mistake == "leaks":
            self.kept.append(self.objects)
        if self.mistake == "quadratic":
            uids = list(items)
            # Several times, so that a quick processor needs much longer for this than for all else.
            for one in uids * 4:
                sum(1 for other in uids if other < one)
        self.objects = items
        return answer["metadata"]["resourceVersion"]

    def watch(self, version):
        while True:
            query = f"watch=true&resourceVersion={version}&timeoutSeconds=300&{self.query}"
            answer = self.api.get(f"{self.path}?{query}")
            if answer.status != 200:
                answer.read()
                return
            for line in answer:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                version = event["object"]["metadata"]["resourceVersion"]


def main():
    words = sys.argv[1:]
    mistake = words.pop(0) if words and words[0] in MISTAKES else None
    if mistake != "deaf":
        api = Api(os.environ["KUBECONFIG"])
        for kind in words:
            Cache(api, kind, mistake).start()
    while True:
        time.sleep(60)


main()
