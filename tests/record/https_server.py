"""An API server with one Service, which shows a certificate and wants one of its clients; prints its port.

https_server.py CERTIFICATE KEY [CLIENT_CA]. The Service is named after who asked, by the certificate. Python's TLS is
not the one that is tested, and its refusals are those of a real server.
"""
import http.server
import json
import ssl
import sys
import time


class Api(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if "watch=true" in self.path:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            time.sleep(600)
        items = []
        if self.path.startswith("/api/v1/services?"):
            peer = self.connection.getpeercert() or {}
            names = [value for part in peer.get("subject", ()) for key, value in part if key == "commonName"]
            items = [{"metadata": {"name": "for-" + (names or ["anybody"])[0], "namespace": "sample", "uid": "u",
                                   "resourceVersion": "5"}, "spec": {"ports": [{"port": 80}]}}]
        body = json.dumps({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "7"},
                           "items": items}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *unused):
        pass


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
if len(sys.argv) > 3:
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(sys.argv[3])
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
server.daemon_threads = True
server.handle_error = lambda *unused: None
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
