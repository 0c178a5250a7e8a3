#!/usr/bin/env python3
"""Webhooks for Caches, for tests. `/mutate-caches` sets a missing `spec.mode`. `/validate-caches` requires a mode and a size of 1 to 10,
and refuses a changed mode. `/convert` changes nothing but the version of an object.

The webhooks answer as controller-runtime does, without a Content-Type. The variable BUG names a mistake: `allows` admits everything,
`denies` refuses every other Cache, `fails` answers every other review with HTTP 500. Needs Python 3.9 or newer and nothing else.
"""

import base64
import http.server
import json
import os
import ssl
import threading

BUG = os.environ.get("BUG", "")
COUNTED = threading.Lock()
ASKED = 0


def every_other():
    global ASKED
    with COUNTED:
        ASKED += 1
        return ASKED % 2 == 0


def answer(path, request):
    response = {"uid": request["uid"], "allowed": True}
    cache = request.get("object") or {}
    if request["kind"]["kind"] != "Cache":
        response.update(allowed=False, status={"code": 400, "message": "unable to decode: no kind " + request["kind"]["kind"]})
    elif path == "/mutate-caches":
        if "mode" not in cache.get("spec", {}):
            patch = [{"op": "add", "path": "/spec/mode", "value": "fast"}]
            response.update(patchType="JSONPatch", patch=base64.b64encode(json.dumps(patch).encode()).decode())
    elif path == "/validate-caches":
        spec = cache.get("spec", {})
        why = "spec.mode: Required value" if "mode" not in spec else "spec.size: must be 1 to 10" if not 1 <= spec["size"] <= 10 else ""
        old = request.get("oldObject")
        if old and not why and old.get("spec", {}).get("mode") != spec["mode"]:
            why = "spec.mode: field is immutable"
        if BUG == "denies" and not why and every_other():
            why = "spec: not today"
        if why and BUG != "allows":
            response.update(allowed=False, status={"code": 403, "message": why})
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


def converted(request):
    objects = [{**one, "apiVersion": request["desiredAPIVersion"]} for one in request["objects"]]
    response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response}


class Reviews(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        failed = BUG == "fails" and every_other()
        path, request = self.path.split("?")[0], review["request"]
        said = converted(request) if path == "/convert" else answer(path, request)
        body = b"" if failed else json.dumps(said).encode()
        self.send_response(500 if failed else 200)
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
