"""The other side: a server of files over HTTPS that can misbehave, and a registry."""

import atexit
import json
import os
import re
import shutil
import ssl
import subprocess
import threading
import time
from base64 import b64encode
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import oras.client
import trustme

# `htpasswd -B` of the user `me` with the password `open sesame`.
HTPASSWD = "me:$2y$05$abcdefghijklmnopqrstuupx2xBUC4954936wVIjyyPHmUBFu0wCW\n"
USER, PASSWORD = "me", "open sesame"


class Authority:
    """An authority for certificates that nobody knows. `file` is for `--ca-file`."""

    def __init__(self, folder, names=("127.0.0.1", "localhost")):
        authority, self.file = trustme.CA(), folder / "ca.pem"
        authority.cert_pem.write_to_path(self.file)
        identity = authority.issue_cert(*names)
        self.certificate, self.key = folder / "certificate.pem", folder / "key.pem"
        identity.private_key_pem.write_to_path(self.key)
        for part in identity.cert_chain_pems:
            part.write_to_path(self.certificate, append=True)


class Request(BaseHTTPRequestHandler):
    timeout = 30

    def do_GET(self):
        self.server.requests.append(self)
        answer = self.server.answers.get(self.path)
        if answer is None:
            self.reply(404, b"nothing here")
        elif isinstance(answer, bytes):
            self.reply(200, answer)
        else:
            answer(self)
        self.close_connection = True

    def reply(self, status, body=b"", **headers):
        """Sends just this: what the headers say need not be true."""
        headers = {"Content-Length": len(body)} | {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"HTTP/1.1 {status} Whatever", *(f"{name}: {value}" for name, value in headers.items())]
        self.wfile.write("\r\n".join([*lines, "Connection: close", "", ""]).encode() + body)

    def log_message(self, *_):
        pass


class Website:
    """Serves `answers`, by path: bytes, or what is done with a request."""

    def __init__(self, authority=None):
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Request)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # Clients that hang up are what is tested.
        scheme = "http"
        if authority:
            scheme = "https"
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(authority.certificate, authority.key)
            # The handshake is left to the thread of the request.
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.server.answers, self.server.requests = {}, []
        self.base = f"{scheme}://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def serve(self, path, answer):
        self.server.answers[path] = answer
        return self.base + path

    def ranges(self, path):
        """What was asked for of a file, from the first request to the last."""
        return [request.headers.get("Range") for request in self.server.requests if request.path == path]

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class File:
    """A file whose server breaks off after `cut` bytes of an answer, in the first `breaks` answers; a `careless` one continues
    whatever it is asked to continue."""

    def __init__(self, data, cut=None, breaks=0, careless=False):
        self.data, self.cut, self.breaks, self.careless = data, cut, breaks, careless
        self.etag = f'"{sha256(data).hexdigest()[:8]}"'

    def __call__(self, request):
        start, asked = 0, request.headers.get("Range")
        if asked and (self.careless or request.headers.get("If-Range") == self.etag):
            start = int(re.fullmatch(r"bytes=(\d+)-", asked)[1])
        part = self.data[start:]
        headers = {"ETag": self.etag, "Content-Length": len(part)}
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(self.data) - 1}/{len(self.data)}"
        if self.breaks:
            self.breaks -= 1
            part = part[: self.cut]
        request.reply(206 if start else 200, part, **headers)


class Registry:
    """Debian's `docker-registry`, with a log of who asked for what."""

    def __init__(self, folder, authority=None, password=False):
        folder.mkdir()
        config, self.log, self.data = folder / "config.yml", folder / "log", folder / "data"
        http = {"addr": "127.0.0.1:0"}
        if authority:
            http["tls"] = {"certificate": str(authority.certificate), "key": str(authority.key)}
        settings = {
            "version": 0.1,
            "log": {"level": "info"},
            "storage": {"filesystem": {"rootdirectory": str(self.data)}},
            "http": http,
        }
        if password:
            (folder / "htpasswd").write_text(HTPASSWD)
            settings["auth"] = {"htpasswd": {"realm": "here", "path": str(folder / "htpasswd")}}
        # JSON is YAML, too.
        config.write_text(json.dumps(settings))
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(["docker-registry", "serve", config], stdout=log, stderr=log)
        atexit.register(self.stop)
        self.address = self.wait_for(r"listening on ([0-9.:]+)")
        self.authority = authority

    def wait_for(self, pattern):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and self.process.poll() is None:
            if found := re.search(pattern, self.log.read_text()):
                return found[1]
            time.sleep(0.05)
        raise AssertionError(f"the registry does not say `{pattern}`: {self.log.read_text()}")

    def url(self, name):
        return f"oci://{self.address}/{name}"

    def forget(self, url):
        """Takes away a repository."""
        repository = url.removeprefix(self.url("")).split(":")[0]
        shutil.rmtree(self.data / "docker/registry/v2/repositories" / repository)

    def requests(self, pattern):
        """How often something was asked for, as in `GET /v2/tool/blobs/`."""
        return len(re.findall(f'"{pattern}', self.log.read_text()))

    def oras(self):
        """A client that is not ours."""
        if self.authority:
            os.environ["REQUESTS_CA_BUNDLE"] = str(self.authority.file)
        return oras.client.OrasClient(hostname=self.address, insecure=not self.authority)

    def push_with_oras(self, name, *files):
        """Each file is a path and its media type."""
        files = [f"{path}:{media_type}" for path, media_type in files]
        self.oras().push(target=f"{self.address}/{name}", files=files, disable_path_validation=True)

    def pull_with_oras(self, name, folder):
        return [Path(file).read_bytes() for file in self.oras().pull(target=f"{self.address}/{name}", outdir=str(folder))]

    def stop(self):
        self.process.kill()
        self.process.wait()


def docker_config(folder, registry, password=PASSWORD):
    """The folder for DOCKER_CONFIG, as after a `docker login`."""
    folder.mkdir(exist_ok=True)
    auth = b64encode(f"{USER}:{password}".encode()).decode()
    (folder / "config.json").write_text(json.dumps({"auths": {registry: {"auth": auth}}}))
    return {"DOCKER_CONFIG": str(folder)}
