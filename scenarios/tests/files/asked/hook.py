#!/usr/bin/env python3
"""Webhooks for Caches, for tests of `longhaul hunt`. `/mutate` sets a missing `spec.mode` and the time as an annotation, `/label` sets a
missing label. `/validate` refuses settings with the key `port`, and asks the API server whether the namespace exists. If the API server
fails, the webhook answers with an error.

The variable BUG names a mistake:
  fails-open     allows if the API server fails
  shared         keeps the answer in a variable that all requests share
  leaks          uses the settings of the request before as a default
  early          allows everything in the first second after its start
  twice          adds a prefix to a label at each call
  undoes         sets the label that the other webhook has set to another value
  refused        sets a mode that the schema refuses
  broken         patches a field below a missing one
  writes         creates a ConfigMap, also on a dry run
  warns          turns an error into a warning
  panics         exits if a name is very long
Needs Python 3.9 or newer and nothing else.
"""

import base64
import http.server
import json
import os
import re
import ssl
import threading
import time
import urllib.request

BUG = os.environ.get("BUG", "")
BEGAN = time.monotonic()
CONFIG = open(os.environ["KUBECONFIG"]).read()
BEFORE = {}
SHARED = None


def setting(key):
    return re.search(rf'"?\b{key}"?\s*:\s*(?:[>|]-?\s+)?"?([^"\s,}}]+)', CONFIG).group(1)


TRUST = ssl.create_default_context(cadata=base64.b64decode(setting("certificate-authority-data")).decode())


def api(method, path, body=None):
    request = urllib.request.Request(setting("server") + path, method=method, data=body and json.dumps(body).encode())
    request.add_header("Authorization", "Bearer " + setting("token"))
    request.add_header("Content-Type", "application/json")
    return urllib.request.urlopen(request, context=TRUST, timeout=5).read()


def patched(response, *operations):
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return {**response, "patchType": "JSONPatch", "patch": patch}


def add(path, value):
    return {"op": "add", "path": path, "value": value}


def mutated(response, cache):
    spec, metadata = cache.get("spec") or {}, cache.get("metadata") or {}
    operations = []
    if "spec" in cache and "mode" not in spec:
        operations.append(add("/spec/mode", "wrong" if BUG == "refused" else "fast"))
    if BUG == "leaks":
        global BEFORE
        if "spec" in cache and "settings" not in spec:
            operations.append(add("/spec/settings", BEFORE))
        BEFORE = spec.get("settings") or {}
    if BUG == "broken":
        operations.append(add("/spec/none/below", 1))
    labels = metadata.get("labels") or {}
    if BUG == "twice":
        operations.append(add("/metadata/labels", {**labels, "team": "x" + labels.get("team", "")}))
    if BUG == "undoes" and labels.get("owner") != "me":
        operations.append(add("/metadata/labels", {**labels, "owner": "me"}))
    if "example.com/seen" not in (metadata.get("annotations") or {}):
        seen = {**(metadata.get("annotations") or {}), "example.com/seen": str(time.time_ns())}
        operations.append(add("/metadata/annotations", seen))
    return patched(response, *operations) if operations else response


def labelled(response, cache):
    labels = (cache.get("metadata") or {}).get("labels") or {}
    if BUG == "undoes":
        you = add("/metadata/labels", {**labels, "owner": "you"})
        return response if labels.get("owner") == "you" else patched(response, you)
    if "kind" in labels:
        return response
    return patched(response, add("/metadata/labels", {**labels, "kind": "cache"}))


def denied(response, code, message):
    return {**response, "allowed": False, "status": {"code": code, "message": message}}


def validated(response, request):
    global SHARED
    cache = request.get("object") or {}
    name = (cache.get("metadata") or {}).get("name") or ""
    if BUG == "writes":
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "seen-"}}
        api("POST", "/api/v1/namespaces/default/configmaps", made)
    if BUG == "panics" and len(name) > 60:
        os._exit(3)
    if BUG == "early" and time.monotonic() - BEGAN < 1:
        return response
    try:
        api("GET", "/api/v1/namespaces/" + request["namespace"])
    except OSError as error:
        return response if BUG == "fails-open" else denied(response, 500, f"the API server failed: {error}")
    if "port" not in ((cache.get("spec") or {}).get("settings") or {}):
        answer = response
    else:
        why = f'Cache.cache.example.com "{name}" is invalid: spec.settings[port]: Forbidden: the port is fixed'
        answer = {**response, "warnings": [why]} if BUG == "warns" else denied(response, 422, why)
    if BUG == "shared":
        SHARED = answer
        time.sleep(0.002)
        return {**SHARED, "uid": request["uid"]}
    return answer


class Reviews(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path, request = self.path.split("?")[0], review["request"]
        response = {"uid": request["uid"], "allowed": True}
        if path == "/validate":
            response = validated(response, request)
        else:
            change = mutated if path == "/mutate" else labelled
            response = change(response, request.get("object") or {})
        answer = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


server = Server(("127.0.0.1", int(os.environ["LONGHAUL_WEBHOOK_PORT"])), Reviews)
tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain(os.environ["LONGHAUL_TLS_CERT"], os.environ["LONGHAUL_TLS_KEY"])
server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
server.serve_forever()
