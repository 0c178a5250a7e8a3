#!/usr/bin/env python3
"""Sends reviews of one namespace from sixteen threads and counts answers whose uid is another review's: `… HOST PORT COUNT`."""

import http.client
import json
import ssl
import sys
import threading
import uuid

THREADS = 16
HOST, PORT, COUNT = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
wrong = []


def review(uid):
    request = {
        "uid": uid, "name": "default", "namespace": "default", "operation": "CREATE", "userInfo": {"username": "u"}, "object": NAMESPACE,
        "kind": {"group": "", "version": "v1", "kind": "Namespace"}, "resource": {"group": "", "version": "v1", "resource": "namespaces"},
    }
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


def ask():
    # The webhook's certificate is not what is looked at here.
    connection = http.client.HTTPSConnection(HOST, PORT, context=ssl._create_unverified_context(), timeout=30)
    for _ in range(COUNT // THREADS):
        uid = str(uuid.uuid4())
        connection.request("POST", "/", review(uid), {"Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())["response"]
        if answer["uid"] != uid:
            wrong.append((uid, answer))


threads = [threading.Thread(target=ask) for _ in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(f"{COUNT} reviews, {len(wrong)} answered with the uid of another")
for uid, answer in wrong[:3]:
    print(f"  asked {uid}, answer {json.dumps(answer)}")
