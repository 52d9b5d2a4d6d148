"""What the tests of the Python client share."""

import os
from pathlib import Path

GUESTS = Path(os.environ["GUESTS_DIR"])
HOST = os.environ["HOST_BIN"]

# Clients hand only a few variables down; the folder of the server's state is none of them.
ENV = {key: os.environ[key] for key in ["HOST_HOME"] if key in os.environ}

# A large component is compiled at its first call, on a machine that may be busy with other tests.
TIMEOUT_SECONDS = 120


def expect(condition, message):
    if not condition:
        raise AssertionError(message)


class Tally:
    def __init__(self):
        self.passed = self.failed = 0

    async def check(self, name, coroutine):
        try:
            await coroutine
            self.passed += 1
        except Exception as error:
            self.failed += 1
            # The client's task groups wrap what happened.
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            print(f"FAIL {name}: {error or repr(error)}")

    def finish(self):
        """Prints the result; true means failure."""
        print(f"{self.passed} passed, {self.failed} failed")
        # An empty folder is a mistake of the caller, not a success.
        return self.failed > 0 or self.passed == 0
