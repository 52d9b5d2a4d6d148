"""Holds conversations with components through the official Python client, over stdio and HTTP, in both eras.

GUESTS_DIR holds the components, HOST_BIN is the server; ../README.md has what the conversations are about.
"""

import asyncio
import json
import re
import shutil
import subprocess
import sys
import time
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp_types import CreateMessageResult, ElicitResult, TextContent, ToolListChangedNotification

from support import ENV, GUESTS, HOST, TIMEOUT_SECONDS, Tally, expect

# What the client is told, and the version that must come of it.
ERAS = {"legacy": "2025-11-25", "auto": "2026-07-28"}

CONFORMANCE = GUESTS / "conformance.wasm"


async def soon(awaitable, otherwise):
    """The result of something that must not take for ever."""
    try:
        return await asyncio.wait_for(awaitable, TIMEOUT_SECONDS)
    except TimeoutError:
        raise AssertionError(otherwise) from None


async def until(condition):
    while not condition():
        await asyncio.sleep(0.01)


@asynccontextmanager
async def listening(*arguments):
    """The address of a server over HTTP, which ends with the block."""
    command = [HOST, "serve", "--http", "127.0.0.1:0", *map(str, arguments)]
    process = await asyncio.create_subprocess_exec(*command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    address = asyncio.get_running_loop().create_future()

    async def read_log():
        async for line in process.stderr:
            sys.stderr.buffer.write(line)
            found = re.search(rb"http://\S+/mcp", line)
            if found and not address.done():
                address.set_result(found[0].decode())
        if not address.done():
            address.set_exception(AssertionError("the server ended before it listened"))

    log = asyncio.create_task(read_log())
    try:
        yield await soon(asyncio.shield(address), "the server does not tell its address")
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            code = await soon(process.wait(), "the server does not end")
        except AssertionError:
            process.kill()
            raise
        await log
    expect(code == 0, f"the server ended with code {code}")


@asynccontextmanager
async def connected(transport, era, *arguments, **handlers):
    """A client of a server that was started with these arguments."""
    async with AsyncExitStack() as stack:
        if transport == "stdio":
            server = StdioServerParameters(command=HOST, args=["serve", *map(str, arguments)], env=ENV)
        else:
            server = await stack.enter_async_context(listening(*arguments))
        client = Client(server, mode=era, read_timeout_seconds=TIMEOUT_SECONDS, **handlers)
        await stack.enter_async_context(client)
        expect(client.protocol_version == ERAS[era], f"the server chose {client.protocol_version}")
        yield client


async def names_of_tools(client):
    return {tool.name for tool in (await client.list_tools()).tools}


async def text_of(client, tool, arguments=None, **options):
    result = await client.call_tool(tool, arguments or {}, **options)
    text = "".join(block.text for block in result.content)
    expect(not result.is_error, f"`{tool}` failed: {text}")
    return text


async def expect_simple_text(client):
    text = await text_of(client, "test_simple_text")
    expect(text == "This is a simple text response for testing.", f"the text is: {text}")


async def lists(connect):
    async with connect(CONFORMANCE) as client:
        tools = await names_of_tools(client)
        expect({"test_simple_text", "test_elicitation"} <= tools, f"the tools are {tools}")
        await expect_simple_text(client)

        resources = [resource.uri for resource in (await client.list_resources()).resources]
        expect("test://static-text" in map(str, resources), f"the resources are {resources}")
        [static] = (await client.read_resource("test://static-text")).contents
        expect(static.text == "This is the content of the static text resource.", f"the resource is: {static.text}")

        templates = [template.uri_template for template in (await client.list_resource_templates()).resource_templates]
        expect("test://template/{id}/data" in templates, f"the templates are {templates}")
        [data] = (await client.read_resource("test://template/123/data")).contents
        expect(json.loads(data.text)["id"] == "123", f"the resource of the template is: {data.text}")

        prompts = {prompt.name for prompt in (await client.list_prompts()).prompts}
        expect({"test_simple_prompt", "test_prompt_with_arguments"} <= prompts, f"the prompts are {prompts}")
        filled = await client.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
        text = filled.messages[0].content.text
        expect("one" in text and "two" in text, f"the prompt is: {text}")


async def progress(connect):
    reports = []

    async def report(done, total, _message):
        reports.append((done, total))

    async with connect(CONFORMANCE) as client:
        await text_of(client, "test_tool_with_progress", progress_callback=report)
        await soon(until(lambda: len(reports) >= 3), f"the reports are {reports}")
    expect(reports == [(0, 100), (50, 100), (100, 100)], f"the reports are {reports}")


async def cancellation(connect, guest, tool, arguments):
    """With room for one call only, the next one is answered only if the cancelled one is gone."""
    running = asyncio.Event()

    async def report(*_):
        running.set()

    limits = ["--timeout", "1h", "--max-cpu", "1h", "--max-concurrent-calls", "1"]
    async with connect(*limits, GUESTS / f"{guest}.wasm") as client:
        async with anyio.create_task_group() as calls:
            calls.start_soon(partial(client.call_tool, tool, arguments, progress_callback=report))
            await soon(running.wait(), "no progress is reported")
            calls.cancel_scope.cancel()
        text = await text_of(client, "add", {"a": 2, "b": 40})
        expect("42" in text, f"the sum is: {text}")


async def questions(connect):
    asked = []
    answers = {
        "Who?": ElicitResult(action="accept", content={"username": "ada", "email": "ada@example.com"}),
        "Again?": ElicitResult(action="decline"),
        "What is your name?": ElicitResult(action="accept", content={"name": "Ada"}),
        "Step 1: What is your name?": ElicitResult(action="accept", content={"name": "Ada"}),
        "Step 2: What is your favorite color?": ElicitResult(action="accept", content={"color": "green"}),
    }

    async def elicit(_context, params):
        # The user is told which component asks.
        component, _, message = params.message.partition(" asks: ")
        expect(component == "conformance", f"it is `{params.message}` that is asked")
        asked.append((message, sorted(params.requested_schema["properties"])))
        return answers.get(message, ElicitResult(action="cancel"))

    async def sample(_context, params):
        asked.append((params.messages[0].content.text, params.max_tokens))
        return CreateMessageResult(role="assistant", model="test", content=TextContent(text="It is blue."))

    conversations = [
        ("test_elicitation", {"message": "Who?"}, ["=accept", "ada@example.com"], [("Who?", ["email", "username"])]),
        ("test_elicitation", {"message": "Again?"}, ["=decline"], [("Again?", ["email", "username"])]),
        ("test_input_required_result_elicitation", {}, ["Hello, Ada!"], [("What is your name?", ["name"])]),
        (
            "test_input_required_result_multi_round",
            {},
            ["Ada", "green"],
            [("Step 1: What is your name?", ["name"]), ("Step 2: What is your favorite color?", ["color"])],
        ),
        ("test_sampling", {"prompt": "Which color?"}, ["It is blue."], [("Which color?", 100)]),
    ]
    async with connect(CONFORMANCE, elicitation_callback=elicit, sampling_callback=sample) as client:
        for tool, arguments, parts, expected in conversations:
            asked.clear()
            text = await text_of(client, tool, arguments)
            expect(all(part in text for part in parts), f"`{tool}` answers: {text}")
            expect(asked == expected, f"`{tool}` asks {asked}")


async def changes(connect):
    changed = asyncio.Event()

    async def hear(message):
        if isinstance(message, ToolListChangedNotification):
            changed.set()

    async def follow(subscription):
        async for _ in subscription:
            changed.set()

    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        shutil.copy(CONFORMANCE, folder)
        client = await stack.enter_async_context(connect("--watch", folder, message_handler=hear))
        if client.protocol_version >= "2026-07-28":
            subscription = await stack.enter_async_context(client.listen(tools_list_changed=True))
            follower = asyncio.create_task(follow(subscription))
            stack.callback(follower.cancel)

        # Older clients open the stream for changes in the background, and nobody is told what happened before.
        async def trigger():
            while not changed.is_set():
                await text_of(client, "test_trigger_tool_change")
                await asyncio.sleep(0.2)

        await soon(trigger(), "the client is not told what the component says")

        expect("increment" not in await names_of_tools(client), "the tool is there before its component")
        changed.clear()
        # A name that is not followed, so that the component is complete when it is found.
        (folder / "counter.part").write_bytes((GUESTS / "counter.wasm").read_bytes())
        (folder / "counter.part").rename(folder / "counter.wasm")

        async def see():
            while "increment" not in await names_of_tools(client):
                await changed.wait()
                changed.clear()

        await soon(see(), "the client is not told of a new component")


async def token(era):
    with TemporaryDirectory() as folder:
        file = Path(folder) / "token"
        async with listening("--token-file", file, CONFORMANCE) as address:
            headers = {"Authorization": f"Bearer {file.read_text().strip()}"}
            async with create_mcp_http_client(headers) as http:
                async with Client(streamable_http_client(address, http_client=http), mode=era) as client:
                    expect(client.protocol_version == ERAS[era], f"the server chose {client.protocol_version}")
                    await expect_simple_text(client)
            try:
                async with Client(address, mode=era) as client:
                    await client.list_tools()
            except* MCPError:
                pass
            else:
                raise AssertionError("a client without the token is served")


CONVERSATIONS = {
    "lists": lists,
    "progress": progress,
    "cancel a wait": partial(cancellation, guest="evil-17-host-sleep", tool="sleep", arguments={"seconds": 3600}),
    "cancel a loop": partial(cancellation, guest="evil-17-infinite-loop", tool="spin", arguments={}),
    "questions": questions,
    "changes": changes,
}


async def main():
    tally = Tally()
    for era in ERAS:
        for transport in ["stdio", "http"]:
            start = time.monotonic()
            for name, conversation in CONVERSATIONS.items():
                connect = partial(connected, transport, era)
                await tally.check(f"{transport} {era}, {name}", conversation(connect))
            print(f"{transport} {era}: {time.monotonic() - start:.1f} s", flush=True)
        await tally.check(f"http {era}, token", token(era))
    return tally.finish()


sys.exit(asyncio.run(main()))
