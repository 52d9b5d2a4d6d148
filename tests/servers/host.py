"""The program that is tested, with a state of its own, and what is expected of it."""

import json
import os
import pty
import shlex
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

# Far more than any of it takes, on a machine that may be busy with other tests.
TIMEOUT_SECONDS = 120


def expect(condition, message):
    if not condition:
        raise AssertionError(message)


def expect_equal(found, expected, what):
    expect(found == expected, f"{what} is {found!r}, not {expected!r}")


def stdio(*command):
    """The target that starts this command."""
    return f"stdio:{shlex.join(str(word) for word in command)}"


@dataclass
class Ran:
    command: str
    code: int
    out: str
    err: str

    def expect_says(self, *parts):
        for part in parts:
            expect(part in self.out + self.err, f"`{part}` is not said by {self}")

    def expect_never_says(self, *parts):
        for part in parts:
            expect(part not in self.out + self.err, f"{part!r} is said by {self}")

    @property
    def json(self):
        return json.loads(self.out)

    def __str__(self):
        return f"`{self.command[:500]}`, which ended with {self.code}:\n{self.out[-3000:]}{self.err[-3000:]}"


class Host:
    def __init__(self, folder, **variables):
        self.folder, self.home = folder, folder / "host-home"
        self.home.mkdir(mode=0o700)
        self.variables = os.environ | {"HOST_HOME": str(self.home)} | variables

    def file(self, name, content):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def start(self, *arguments, **pipes):
        return subprocess.Popen([os.environ["HOST_BIN"], *arguments], env=self.variables, cwd=self.folder, **pipes)

    def run(self, *arguments, input="", cwd=None):
        arguments = [str(argument) for argument in arguments]
        ran = subprocess.run(
            [os.environ["HOST_BIN"], *arguments],
            env=self.variables,
            cwd=cwd or self.folder,
            input=input.encode(),
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
        )
        ran = Ran(f"host {shlex.join(arguments)}", ran.returncode, ran.stdout.decode(), ran.stderr.decode())
        expect("panicked" not in ran.err, str(ran))
        return ran

    def does(self, *arguments, **how):
        ran = self.run(*arguments, **how)
        expect(ran.code == 0, str(ran))
        return ran

    def fails(self, *arguments, code, says=(), **how):
        """It ends with an error that says all of this, and with nothing on stdout that a program would take for an answer."""
        ran = self.run(*arguments, **how)
        expect(ran.code == code and "error: " in ran.err, str(ran))
        expect_equal(ran.out, "", f"stdout of {ran}")
        ran.expect_says(*says)
        return ran

    def refuses(self, *arguments, says=(), **how):
        """A command line that is wrong, or a server that cannot be reached: it says what to do about it."""
        return self.fails(*arguments, code=2, says=["hint: ", *says], **how)

    def catalog(self, target, *options):
        return self.does("catalog", target, "--json", *options).json

    def on_terminal(self, *arguments):
        """Runs on a terminal, and returns the exit code and all that the terminal got."""
        ours, theirs = pty.openpty()
        process = self.start(*arguments, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        too_late = threading.Timer(TIMEOUT_SECONDS, process.kill)
        too_late.start()
        shown = b""
        try:
            while data := os.read(ours, 65536):
                shown += data
        except OSError:
            pass  # So Linux says that nobody has the terminal open any more.
        os.close(ours)
        code = process.wait()
        too_late.cancel()
        return code, shown.decode()


def processes_with(mark):
    """Those that have this text on their command lines or in their environments, with their command lines."""
    found = {}
    for process in Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        try:
            command, state = (process / "cmdline").read_bytes(), (process / "stat").read_text().rsplit(")", 1)[1].split()[0]
            if state != "Z" and mark.encode() in command + (process / "environ").read_bytes():
                found[int(process.name)] = command.replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            pass  # Gone meanwhile, or not ours.
    return found
