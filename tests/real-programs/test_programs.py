"""Calls programs that others compiled to WebAssembly through the official Python client, in both eras of the protocol.

PROGRAMS holds the programs and what they need, FILES the files to work on, HOST_BIN is the server; see README.md.
"""

import asyncio
import base64
import json
import os
import shutil
import sys
import tempfile
import time
from contextlib import asynccontextmanager
from pathlib import Path

from jsonschema import Draft202012Validator
from mcp import Client, StdioServerParameters

# What the client is told, and the version that must come of it.
ERAS = {"legacy": "2025-11-25", "2026-07-28": "2026-07-28"}

# More than the server gives a call, so that its answer is what is seen.
CALL_SECONDS = 60
CLIENT_SECONDS = 120

PROGRAMS = Path(os.environ["PROGRAMS"])
FILES = Path(os.environ["FILES"])


def expect(condition, message):
    if not condition:
        raise AssertionError(message)


def expect_equal(found, expected, what):
    expect(found == expected, f"{what} is {found!r}, not {expected!r}")


def expect_valid(value, schema, name):
    Draft202012Validator.check_schema(schema)
    for error in Draft202012Validator(schema).iter_errors(value):
        raise AssertionError(f"{json.dumps(value)} is not valid against {name}: {error.message}")


class Program:
    """A session with a server of one program, whose one tool is the program itself."""

    def __init__(self, client, tool):
        self.client, self.tool = client, tool

    @classmethod
    @asynccontextmanager
    async def served(cls, name, tool, era, *grants):
        # Clients hand only a few variables down; the folder of the server's state is none of them.
        server = StdioServerParameters(
            command=os.environ["HOST_BIN"],
            args=["serve", "--timeout", f"{CALL_SECONDS}s", *grants, str(PROGRAMS / f"{name}.wasm")],
            env={"HOST_HOME": os.environ["HOST_HOME"]},
        )
        async with Client(server, mode=era, read_timeout_seconds=CLIENT_SECONDS) as client:
            expect_equal(client.protocol_version, ERAS[era], "the version of the protocol")
            listed = await client.list_tools()
            expect_equal([tool.name for tool in listed.tools], [tool], "the list of tools")
            yield cls(client, listed.tools[0])

    def expect_types(self, group, expected):
        """All these arguments are there, with these types; an argument with a choice has the choices instead."""
        schemas = self.tool.input_schema["properties"][group]["properties"]
        found = {name: schemas.get(name, {}) for name in expected}
        expect_equal({name: s.get("enum", s.get("type")) for name, s in found.items()}, expected, f"the type of {group}")

    async def call(self, arguments, exit_code=0):
        expect_valid(arguments, self.tool.input_schema, "inputSchema")
        answer = await self.client.call_tool(self.tool.name, arguments)
        text = "".join(block.text for block in answer.content)
        expect(answer.structured_content is not None, f"no result: {text}")
        expect_valid(answer.structured_content, self.tool.output_schema, "outputSchema")
        result = answer.structured_content["result"]
        expect_equal(result["exitCode"], exit_code, f"the exit code of a program that said `{result['stderr']}`")
        expect_equal(bool(answer.is_error), exit_code != 0, "isError")
        return result


def configuration(asc):
    """The tiles of a bitstream in text form that are not all zero."""
    tiles, lines = {}, []
    for line in asc.splitlines():
        if line.startswith("."):
            lines = []
            if "_tile" in line:
                tiles[line.strip()] = lines
        elif line.strip():
            lines.append(line.strip())
    return {name: lines for name, lines in tiles.items() if "1" in "".join(lines)}


async def icepll(era, folder):
    frequencies = {"i": "12", "o": "48"}

    async with Program.served("icepll", "icepll", era, f"--allow-write={folder}") as program:
        program.expect_types("flags", {"i": "string", "o": "string", "f": "string", "m": "boolean", "S": "boolean"})
        result = await program.call({"flags": frequencies})
        expect("F_PLLOUT:   48.000 MHz (achieved)" in result["stdout"], result["stdout"])

        await program.call({"flags": frequencies | {"m": True, "n": "clocks", "f": "clocks.v"}})
        written = (folder / "clocks.v").read_text()
        expect("module clocks(" in written and ".DIVF(7'b0111111)" in written, written)

        result = await program.call({"flags": frequencies | {"o": "5000"}}, exit_code=1)
        expect("outside range 16 MHz - 275 MHz" in result["stderr"], result["stderr"])

    async with Program.served("icepll", "icepll", era) as program:
        await program.call({"flags": frequencies | {"f": "denied.v"}}, exit_code=1)


async def icepack(era, folder):
    asc = shutil.copy(FILES / "lookup.asc", folder)

    async with Program.served("icepack", "icepack", era, f"--allow-write={folder}") as program:
        program.expect_types("flags", {"u": "boolean", "v": "integer", "b3": "boolean"})
        program.expect_types("args", {"input_file": "string", "output_file": "string"})
        await program.call({"args": {"input_file": "lookup.asc", "output_file": "lookup.bin"}})
        # A full path means the same as one below the working directory.
        unpacked = str(folder / "unpacked.asc")
        await program.call({"flags": {"u": True}, "args": {"input_file": "lookup.bin", "output_file": unpacked}})
        await program.call({"args": {"input_file": unpacked, "output_file": "again.bin"}})

    packed = (folder / "lookup.bin").read_bytes()
    expect_equal(len(packed), 32220, "the size of the bitstream")
    expect((folder / "again.bin").read_bytes() == packed, "the bitstream changes when it is unpacked and packed")
    expected = configuration(Path(asc).read_text())
    expect_equal(list(expected), [".logic_tile 5 5"], "the tiles in use")
    found = configuration((folder / "unpacked.asc").read_text())
    expect_equal(found[".logic_tile 5 5"], expected[".logic_tile 5 5"], "the unpacked tile")

    async with Program.served("icepack", "icepack", era, f"--allow-read={folder}") as program:
        result = await program.call({"args": {"input_file": "lookup.asc"}})
        expect_equal(result.get("stdoutEncoding"), "base64", "the encoding of a bitstream")
        expect(base64.b64decode(result["stdout"]) == packed, "another bitstream on stdout than in the file")

        await program.call({"args": {"input_file": "lookup.asc", "output_file": "denied.bin"}}, exit_code=1)
        expect(not (folder / "denied.bin").exists(), "a file was written where only reading was granted")


async def python(era, folder):
    for name in ["total.py", "orders.csv"]:
        shutil.copy(FILES / name, folder)
    grants = [f"--allow-read={folder}", f"--allow-read={PROGRAMS / 'python-library/usr'}:/usr"]

    async with Program.served("python", "python", era, *grants) as program:
        hashes = ["always", "default", "never"]
        program.expect_types("flags", {"c": "string", "v": "integer", "q": "boolean", "check_hash_based_pycs": hashes})

        result = await program.call({"args": ["total.py", "orders.csv"]})
        expect_equal(result["json"], {"items": ["bolts", "nuts", "plates, steel"], "total": 121.0}, "the parsed output")

        result = await program.call({"stdin": "print(6 * 7)"})
        expect_equal(result["stdout"], "42\n", "the output of a program from stdin")

        await program.call({"flags": {"c": "raise SystemExit(3)"}}, exit_code=3)
        result = await program.call({"flags": {"c": "open('denied', 'w')"}}, exit_code=1)
        expect("Error" in result["stderr"] and not (folder / "denied").exists(), result["stderr"])


async def verilog_to_bitstream(era, folder):
    for name in ["counter.v", "counter.pcf"]:
        shutil.copy(FILES / name, folder)
    scratch = folder / "scratch"
    scratch.mkdir()

    grants = [f"--allow-write={folder}", f"--allow-write={scratch}:/tmp", f"--allow-read={PROGRAMS / 'yosys-share'}:/share"]
    async with Program.served("yosys", "yosys", era, *grants) as program:
        program.expect_types("flags", {"commands": "string", "synth": "boolean", "logfile": "string"})
        script = "read_verilog counter.v; synth_ice40 -top counter -json counter.json"
        await program.call({"flags": {"commands": script, "logfile": "yosys.log"}})
        await program.call({"flags": {"commands": "read_verilog missing.v"}}, exit_code=1)
    cells = json.loads((folder / "counter.json").read_text())["modules"]["counter"]["cells"].values()
    expect_equal(sum(cell["type"].startswith("SB_DFF") for cell in cells), 4, "the number of flip-flops")
    expect("End of script." in (folder / "yosys.log").read_text(), "the log has no end")

    grants = [f"--allow-write={folder}", f"--allow-read={PROGRAMS / 'nextpnr-share'}:/share"]
    async with Program.served("nextpnr-ice40", "nextpnr_ice40", era, *grants) as program:
        # The first two are from the description: the program shows its devices only where it finds their data.
        types = {"up5k": "boolean", "freq": "number", "placer_heap_alpha": "number", "placer_heap_critexp": "integer"}
        program.expect_types("flags", types | {"placer": ["sa", "heap", "static"], "json": "string", "werror": "boolean"})
        flags = {"up5k": True, "package": "sg48", "freq": 12.5, "json": "counter.json", "pcf": "counter.pcf"}
        result = await program.call({"flags": flags | {"asc": "counter.asc", "report": "report.json"}})
        expect("Program finished normally." in result["stderr"], result["stderr"])
    report = json.loads((folder / "report.json").read_text())
    expect_equal([clock["constraint"] for clock in report["fmax"].values()], [12.5], "the wanted frequency")

    async with Program.served("icepack", "icepack", era, f"--allow-write={folder}") as program:
        await program.call({"args": {"input_file": "counter.asc", "output_file": "counter.bin"}})
        result = await program.call({"flags": {"u": True}, "args": {"input_file": "counter.bin"}})
    placed = configuration((folder / "counter.asc").read_text())
    expect(any("logic_tile" in tile for tile in placed), "nothing was placed")
    expect_equal(configuration(result["stdout"]), placed, "the bitstream")


async def main():
    passed = failed = 0
    for test in [icepll, icepack, python, verilog_to_bitstream]:
        for era in ERAS:
            start = time.monotonic()
            outcome = "ok"
            with tempfile.TemporaryDirectory() as folder:
                try:
                    await test(era, Path(folder).resolve())
                    passed += 1
                except Exception as error:
                    failed += 1
                    # The client's task groups wrap what happened.
                    while isinstance(error, BaseExceptionGroup):
                        error = error.exceptions[0]
                    outcome = f"FAIL: {error or repr(error)}"
            print(f"{test.__name__} {era}: {outcome}, {time.monotonic() - start:.1f} s", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


sys.exit(asyncio.run(main()))
