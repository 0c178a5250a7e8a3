"""A validator in sixty lines: it keeps the contract of docs/contract.md, and verifies images of one digest."""
import hashlib
import json
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PATH, BODY_MAX = "/internal/v1/validate", 128 << 10
certificate, key, authority, trusted = sys.argv[1:5]
ABOUT = {"contract": 1, "generation": hashlib.sha256(trusted.encode()).hexdigest()}


def judge(question):
    if question["validator"] != "digests":
        return {"verdict": "misconfigured", "cause": "there is no such validator"}
    if question["image"]["digest"] != trusted:
        return {"verdict": "unsigned", "cause": "it is not on the list"}
    return {"verdict": "verified", "signers": [{"name": "the list", "evidence": "digest"}]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close" if self.close_connection else "keep-alive")
        self.end_headers()
        self.wfile.write(body)

    def answer(self):
        length = int(self.headers.get("Content-Length", 0))
        if length > BODY_MAX:
            self.close_connection = True
            return 413, {"error": "a question is smaller"}
        body = self.rfile.read(length)
        if self.path.split("?")[0] != PATH:
            return 404, {"error": "there is " + PATH}
        if self.command == "GET":
            return 200, ABOUT | {"validators": ["digests"]}
        if self.command != "POST":
            return 405, {"error": "this path takes GET and POST"}
        try:
            question = json.loads(body)
            if question["contract"] != 1:
                return 400, {"error": "this is another version of the contract"}
            return 200, ABOUT | {"digest": question["image"]["digest"]} | judge(question)
        except (ValueError, KeyError, TypeError):
            return 400, {"error": "this is no question of the contract"}

    def do_POST(self):
        self.reply(*self.answer())

    do_GET = do_DELETE = do_POST


context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority)
context.load_cert_chain(certificate, key)
context.verify_mode = ssl.CERT_REQUIRED
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print(server.server_address[1], flush=True)
server.serve_forever()
