"""What a server says of itself, asked for with a client of our own over pipes: an official one drops fields that it does not know."""

import json
import subprocess
import threading

MODERN, LEGACY = "2026-07-28", "2025-11-25"
LISTS = {
    "tool": ("tools", "tools/list", "tools"),
    "resource": ("resources", "resources/list", "resources"),
    "resource-template": ("resources", "resources/templates/list", "resourceTemplates"),
    "prompt": ("prompts", "prompts/list", "prompts"),
}
CLIENT = {"name": "raw", "version": "1"}
PREFIX = "io.modelcontextprotocol/"

# Far more than any server takes to start, on a machine that may be busy with other tests.
TIMEOUT_SECONDS = 90


class Refused(Exception):
    """The server answered with an error."""


class Raw:
    """One session over pipes, in either era."""

    def __init__(self, command, modern, **variables):
        self.modern, self.id = modern, 0
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8", **variables
        )
        self.too_late = threading.Timer(TIMEOUT_SECONDS, self.process.kill)
        self.too_late.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.too_late.cancel()
        self.process.stdin.close()
        self.process.stdout.close()

    def send(self, **message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
        self.process.stdin.flush()

    def ask(self, method, **parameters):
        self.id += 1
        if self.modern:
            of_client = {"protocolVersion": MODERN, "clientInfo": CLIENT, "clientCapabilities": {}}
            parameters["_meta"] = {PREFIX + key: value for key, value in of_client.items()}
        self.send(id=self.id, method=method, params=parameters)
        for line in self.process.stdout:
            message = json.loads(line)
            if "method" in message:
                # Notifications; and a server that asks for something gets to know that there is no such thing here.
                if "id" in message:
                    self.send(id=message["id"], error={"code": -32601, "message": "not here"})
            elif message["id"] == self.id:
                if "error" in message:
                    raise Refused(message["error"])
                return message["result"]
        raise Refused("the server is gone")

    def introduce(self):
        if self.modern:
            return self.ask("server/discover")
        told = self.ask("initialize", protocolVersion=LEGACY, capabilities={}, clientInfo=CLIENT)
        self.send(method="notifications/initialized")
        return told

    def list(self, method, key):
        entries, cursor = [], {}
        while True:
            page = self.ask(method, **cursor)
            entries += page[key]
            if not page.get("nextCursor"):
                return entries
            cursor = {"cursor": page["nextCursor"]}


def speaks_modern(command, **variables):
    with Raw(command, modern=True, **variables) as session:
        try:
            session.introduce()
            return True
        except (Refused, BrokenPipeError):
            return False


def everything(command, modern, **variables):
    """The introduction, all entries by the type that they have in a catalog, and the lists that were refused."""
    with Raw(command, modern, **variables) as session:
        told = session.introduce()
        lists, refused = {}, []
        for kind, (capability, method, key) in LISTS.items():
            try:
                lists[kind] = session.list(method, key) if capability in told["capabilities"] else []
            except Refused:
                lists[kind] = []
                refused.append(method)
        return told, lists, refused
