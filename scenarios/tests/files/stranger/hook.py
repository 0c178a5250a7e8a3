"""A plain admission webhook that watches nothing. HOOK names its mistake: `errors` fails every fifth review, `plain` uses no TLS.
CRASH_AFTER: number of reviews before it ends. PAGE: a port at which it shows that it is ready, with the status READY; it also prints
this as a line."""

import http.server
import json
import os
import ssl
import threading

HABIT = os.environ.get("HOOK", "")
CRASH_AFTER = int(os.environ.get("CRASH_AFTER", "0"))
COUNT = 0


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        global COUNT
        COUNT += 1
        if COUNT == CRASH_AFTER:
            os._exit(4)
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        response = {"uid": review["request"]["uid"], "allowed": True}
        answer = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        body = json.dumps(answer).encode()
        status = b"HTTP/1.1 500 Internal Server Error" if HABIT == "errors" and COUNT % 5 == 0 else b"HTTP/1.1 200 OK"
        head = b"\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        self.wfile.write(status + head + body)

    def log_message(self, *_):
        pass


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(int(os.environ.get("READY", "204")))
        self.end_headers()

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["LONGHAUL_WEBHOOK_PORT"])), Handler)
if HABIT != "plain":
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.environ["LONGHAUL_TLS_CERT"], os.environ["LONGHAUL_TLS_KEY"])
    server.socket = context.wrap_socket(server.socket, server_side=True)
if "PAGE" in os.environ:
    page = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PAGE"])), Page)
    threading.Thread(target=page.serve_forever, daemon=True).start()
print("the hook is ready", flush=True)
server.serve_forever()
