"""Makes the calls of every component through the official Python client, in both eras of the protocol.

GUESTS_DIR holds the components and their calls, HOST_BIN is the server; ../README.md has the format of the calls.
"""

import asyncio
import json
import sys
import time

from jsonschema import Draft202012Validator
from mcp import Client, StdioServerParameters

from support import ENV, GUESTS, HOST, TIMEOUT_SECONDS, Tally, expect

# What the client is told, and the version that must come of it.
ERAS = {"legacy": "2025-11-25", "2026-07-28": "2026-07-28"}


def same(left, right):
    """Equality of JSON: 1 is 1.0 as in every other language, and True is not 1 as it would be in Python."""
    canonical = [json.dumps(json.loads(json.dumps(v), parse_int=float), sort_keys=True) for v in (left, right)]
    return canonical[0] == canonical[1]


def expect_valid(value, schema, name):
    Draft202012Validator.check_schema(schema)
    for error in Draft202012Validator(schema).iter_errors(value):
        raise AssertionError(f"{json.dumps(value)} is not valid against {name}: {error.message}")


def check_list(listed, calls):
    expect(listed.next_cursor is None, "the list of tools has more than one page")
    tools, called = {tool.name for tool in listed.tools}, {case["tool"] for case in calls}
    expect(len(tools) == len(listed.tools), "two tools have the same name")
    expect(tools == called, f"tools without a call: {tools - called}, calls without a tool: {called - tools}")


def is_program(result):
    """What a program left behind. Its text is what it printed, not the JSON of all of it."""
    return isinstance(result, dict) and "exitCode" in result


async def check_call(client, tool, case):
    if "error" not in case and case.get("schema", True):
        expect_valid(case["arguments"], tool.input_schema, "inputSchema")

    result = await client.call_tool(tool.name, case["arguments"])
    text, structured = "".join(block.text for block in result.content), result.structured_content

    expect(bool(result.is_error) == ("error" in case), f"isError is {result.is_error}: {text}")
    expect(case.get("error", "") in text, f"`{case.get('error')}` is not in the error: {text}")
    if structured is not None:
        expect(tool.output_schema, "structuredContent without an outputSchema")
        expect_valid(structured, tool.output_schema, "outputSchema")
    if "result" in case:
        expect(same(structured, {"result": case["result"]}), f"structuredContent is {json.dumps(structured)}")
    elif "error" not in case:
        expect(structured is None, f"an unexpected result: {json.dumps(structured)}")
    if "text" in case:
        expect(case["text"] in text, f"`{case['text']}` is not in the text: {text}")
    elif is_program(case.get("result")):
        printed = [case["result"][key] for key in ["stdout", "stderr"] if f"{key}Encoding" not in case["result"]]
        expect(text and all(part.strip() in text for part in printed), f"{printed} is not in the text: {text}")
    elif "result" in case:
        expect(same(json.loads(text), structured), f"the text is not the structuredContent: {text}")
    else:
        expect(text, "no text")


async def check_component(wasm, era, calls, tally):
    server = StdioServerParameters(command=HOST, args=["serve", "--timeout", "5s", str(wasm)], env=ENV)

    async with Client(server, mode=era, read_timeout_seconds=TIMEOUT_SECONDS) as client:
        expect(client.protocol_version == ERAS[era], f"the server chose {client.protocol_version}")
        listed = await client.list_tools()
        check_list(listed, calls)
        tools = {tool.name: tool for tool in listed.tools}
        for index, case in enumerate(calls):
            await tally.check(
                f"{wasm.stem} {era} [{index}] {case['tool']}", check_call(client, tools[case["tool"]], case)
            )


async def main():
    tally = Tally()
    for calls in sorted(GUESTS.glob("*.calls.json")):
        wasm = calls.with_name(calls.name.removesuffix(".calls.json") + ".wasm")
        for era in ERAS:
            start = time.monotonic()
            cases = json.loads(calls.read_text())
            await tally.check(f"{wasm.stem} {era}", check_component(wasm, era, cases, tally))
            print(f"{wasm.stem} {era}: {time.monotonic() - start:.1f} s", flush=True)
    return tally.finish()


sys.exit(asyncio.run(main()))
