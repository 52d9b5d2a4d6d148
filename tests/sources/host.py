"""The program that is tested, with a state of its own, and what is expected of it."""

import json
import os
import pty
import subprocess
import threading
from dataclasses import dataclass
from hashlib import sha256

# Far more than any of it takes, on a machine that may be busy with other tests.
TIMEOUT_SECONDS = 90


def expect(condition, message):
    if not condition:
        raise AssertionError(message)


def expect_equal(found, expected, what):
    expect(found == expected, f"{what} is {found!r}, not {expected!r}")


def digest(data):
    return f"sha256:{sha256(data).hexdigest()}"


def hex_digest(data):
    """As people are shown it."""
    return sha256(data).hexdigest()


@dataclass
class Ran:
    command: str
    code: int
    out: str
    err: str

    def expect_says(self, *parts):
        for part in parts:
            expect(part in self.out + self.err, f"`{part}` is not said by {self}")

    def __str__(self):
        return f"`{self.command}`, which ended with {self.code}:\n{self.out}{self.err}"


class Host:
    def __init__(self, folder, **variables):
        self.folder, self.home = folder, folder / "host-home"
        self.home.mkdir(mode=0o700)
        self.variables = os.environ | {"HOST_HOME": str(self.home)} | variables

    def file(self, name, data):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        return path

    def config(self, text):
        self.home.mkdir(mode=0o700, exist_ok=True)
        (self.home / "host.toml").write_text(text)

    def run(self, *arguments, **variables):
        arguments = [str(argument) for argument in arguments]
        ran = subprocess.run(
            [os.environ["HOST_BIN"], *arguments],
            env=self.variables | variables,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
        )
        ran = Ran(f"host {' '.join(arguments)}", ran.returncode, ran.stdout.decode(), ran.stderr.decode())
        expect("panicked" not in ran.err, str(ran))
        return ran

    def does(self, *arguments, **variables):
        ran = self.run(*arguments, **variables)
        expect(ran.code == 0, str(ran))
        return ran

    def refuses(self, *arguments, says, code=2, **variables):
        """It ends with an error that says all of this, and nothing changes."""
        before = self.components()
        ran = self.run(*arguments, **variables)
        expect(ran.code == code and "error: " in ran.err, str(ran))
        ran.expect_says(*says)
        expect_equal(self.components(), before, f"the list after {ran}")
        return ran

    def components(self):
        ran = self.does("list", "--json")
        return {component["id"]: component for component in json.loads(ran.out)["components"]}

    def expect_has(self, **digests):
        """These components are there, ready and with these bytes, and no others."""
        found = self.components()
        expected = {id: ("ready", digest(data)) for id, data in digests.items()}
        expect_equal({id: (c["status"], c["digest"]) for id, c in found.items()}, expected, "the list")

    def expect_answers(self, id, value, tool="number"):
        expect_equal(self.does("call", id, tool).out, f"{value}\n", f"the answer of {id}")

    def info(self, id):
        return json.loads(self.does("info", id, "--json").out)

    def tools(self, id):
        return [tool["name"] for tool in json.loads(self.does("tools", id).out)["tools"]]

    def asked(self, *arguments, answer):
        """Runs on a terminal, gives this answer to all questions, and returns the exit code and what the terminal shows."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [os.environ["HOST_BIN"], *arguments], env=self.variables, cwd=self.folder, stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        too_late = threading.Timer(TIMEOUT_SECONDS, process.kill)
        too_late.start()
        shown, answered = b"", 0
        try:
            while data := os.read(ours, 4096):
                shown += data
                if shown.count(b"[y/N] ") > answered:
                    answered += 1
                    os.write(ours, f"{answer}\n".encode())
        except OSError:
            pass  # So Linux says that nobody has the terminal open any more.
        os.close(ours)
        code = process.wait()
        too_late.cancel()
        expect(answered > 0, f"nothing was asked by {arguments}: {shown.decode()}")
        return code, shown.decode()
