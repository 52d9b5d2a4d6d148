"""Servers over HTTP: one of our own in this process, which misbehaves as it is told and remembers what it was asked; and real ones."""

import atexit
import json
import re
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

INFO = {"name": "web", "version": "1"}
TOOLS = [
    {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}},
    {"name": "two", "description": "Two lines.", "inputSchema": {"type": "object"}},
]


class Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_POST(self):
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.requests.append(self)
        self.server.handle(self)

    def do_GET(self):
        self.body = b""
        self.server.requests.append(self)
        if self.server.handle_get:
            self.server.handle_get(self)
        else:
            self.reply(405)

    def do_DELETE(self):
        self.body = b""
        self.server.requests.append(self)
        self.reply(200)

    def reply(self, status, body=b"", content_type="application/json", **headers):
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def reply_json(self, message, status=200, **headers):
        self.reply(status, json.dumps({"jsonrpc": "2.0"} | message).encode(), **headers)

    def start_stream(self, **headers):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.close_connection = True

    @property
    def message(self):
        return json.loads(self.body) if self.body else {}

    def log_message(self, *_):
        pass


class Web:
    """Speaks the versions of the protocol before 2026-07-28.

    `token` has to be sent; `stream` answers with events; `discover` is the status with which `server/discover` is refused; `handle`
    is asked before anything else is done with a message, and says whether it did it.
    """

    def __init__(self, token=None, stream=False, discover=400, handle=lambda request: False):
        self.token, self.stream, self.discover, self.odd = token, stream, discover, handle
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Request)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # Clients that hang up are what is tested.
        self.server.requests, self.server.handle, self.server.handle_get = [], self.handle, None
        self.origin = f"http://127.0.0.1:{self.server.server_port}"
        self.url = f"{self.origin}/mcp"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    @property
    def requests(self):
        return self.server.requests

    def headers(self, name):
        """What was sent as this header, with every request."""
        return [request.headers.get(name) for request in self.requests]

    def methods(self):
        return [request.message.get("method") for request in self.requests]

    def handle(self, request):
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            request.reply(401, b'{"error": "who are you?"}', WWW_Authenticate='Bearer realm="web"')
            return
        if self.odd(request):
            return
        message = request.message
        if "id" not in message:
            request.reply(202)
            return
        match message.get("method"):
            case "initialize":
                version = message["params"]["protocolVersion"]
                result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": INFO}
                self.answer(request, {"result": result}, Mcp_Session_Id="a-session")
                return
            case "server/discover":
                request.reply_json({"id": None, "error": {"code": -32000, "message": "no session"}}, self.discover)
                return
            case _ if request.headers.get("Mcp-Session-Id") != "a-session":
                request.reply_json({"id": None, "error": {"code": -32000, "message": "no session"}}, 400)
                return
            case "tools/list":
                answer = {"result": {"tools": TOOLS}}
            case "tools/call" if message["params"]["name"] == "two":
                answer = {"result": {"content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}}
            case "tools/call":
                answer = {"result": {"content": [{"type": "text", "text": message["params"]["arguments"]["text"]}]}}
            case other:
                answer = {"error": {"code": -32601, "message": f"no method {other}"}}
        self.answer(request, answer)

    def answer(self, request, answer, **headers):
        message = {"id": request.message["id"]} | answer
        if not self.stream:
            request.reply_json(message, **headers)
            return
        request.start_stream(**headers)
        # All that a stream may have: comments, an event without data, a notification, data on several lines, each kind of line end.
        notification = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
        lines = "".join(f"data: {line}\r\n" for line in json.dumps({"jsonrpc": "2.0"} | message, indent=1).split("\n"))
        request.wfile.write(f": hello\n\nid: 1\ndata:\n\nevent: message\rdata:{json.dumps(notification)}\r\rid: 2\r\n{lines}\r\n".encode())


class Started:
    """A server in a process of its own that says on which port it is."""

    def __init__(self, command, **variables):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **variables)
        atexit.register(self.stop)
        for line in self.process.stdout:
            if found := re.fullmatch(r"here: (\d+)\n", line):
                self.url = f"http://127.0.0.1:{found[1]}/mcp"
                break
        else:
            raise AssertionError(f"{command} does not start")
        # What it says from now on is nothing to wait for.
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def stop(self):
        self.process.kill()
        self.process.wait()
