"""Lists, calls and compares MCP servers of others, over pipes and HTTP; see README.md.

HOST_BIN is the program, REPOSITORY has the schema of catalogs and a component, WORK is a folder for everything. NODE, NODE_MODULES,
PYTHON_NEWER and PYTHON_OLDER are where the servers are.
"""

import copy
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import jsonschema
from openapi_spec_validator import OpenAPIV31SpecValidator

import raw
from complete import expect_complete
from host import Host, expect, expect_equal, processes_with, stdio
from odd import HOSTILE
from real import servers
from web import TOOLS, Started, Web

REPOSITORY, WORK = Path(os.environ["REPOSITORY"]), Path(os.environ["WORK"])
HERE = Path(__file__).parent
TEXT_TOOLS = REPOSITORY / "examples/text-tools/text-tools.wasm"
REAL = servers(WORK / "servers")
for server in REAL.values():
    # None of them share one, so that one environment is enough.
    os.environ.update(server.variables)

TESTS = []


def test(function):
    TESTS.append(function)
    return function


def for_each_server(function):
    """One test for each server that nobody here wrote."""
    for name in REAL:

        def one(host, name=name):
            function(host, REAL[name], stdio(*REAL[name].command))

        one.__name__ = f"{function.__name__}_{name.replace('-', '_')}"
        TESTS.append(one)


def odd(behaviour, *arguments):
    return stdio(sys.executable, HERE / "odd.py", behaviour, *arguments)


@cache
def schema():
    schema = json.loads((REPOSITORY / "schemas/catalog.schema.json").read_text())
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    return validator(schema)


def expect_valid(catalog):
    errors = [f"{error.json_path}: {error.message[:300]}" for error in schema().iter_errors(catalog)]
    expect(not errors, f"a catalog is not what the schema says: {errors}")


def expect_openapi(description, tools):
    errors = [str(error)[:500] for error in OpenAPIV31SpecValidator(description).iter_errors()]
    expect(not errors, f"an OpenAPI description is not valid: {errors}")
    expect_equal(len(description["paths"]), tools, "the number of paths")


def names(catalog, kind="tool"):
    return [item["name"] for item in catalog["items"] if item["type"] == kind]


def items(catalog):
    return {(item["type"], item["name"]): item for item in catalog["items"]}


# Real servers: what they have


@for_each_server
def the_catalog_is_complete_and_always_the_same_of(host, server, target):
    modern = raw.speaks_modern(server.command)
    told, lists, refused = raw.everything(server.command, modern)
    expect_equal(refused, list(server.refuses), "the lists that it refuses")
    expect(len(lists["tool"]) >= server.tools, f"it has only {len(lists['tool'])} tools")

    text = host.does("catalog", target, "--json").out
    catalog = json.loads(text)
    expect_valid(catalog)
    expect_complete(catalog, told, lists, modern)
    expect_equal([item["error"] for item in catalog["items"] if "error" in item], [], "the errors")
    # A server without templates may say that it knows no such list.
    expect_equal(catalog.get("problems", []), [], "the problems")
    expect(host.does("catalog", target, "--json").out == text, "the second catalog is another")

    if modern:
        told, lists, _ = raw.everything(server.command, False)
        expect_complete(host.catalog(target, "--era", "legacy"), told, lists, False)
        expect(host.does("catalog", target, "--json", "--era", "modern").out == text, "a catalog that is asked for in its era is another")


@for_each_server
def pages_are_made_of(host, server, target):
    file = host.folder / "catalog.json"
    host.does("catalog", target, "--json", "-o", file)
    catalog = json.loads(file.read_text())
    tools = names(catalog)

    host.does("catalog", target, "--openapi", "-o", "openapi.json")
    expect_openapi(json.loads((host.folder / "openapi.json").read_text()), len(tools))

    markdown = host.does("catalog", target, "--markdown").out
    people = host.does("catalog", target).out
    for item in catalog["items"]:
        expect(item["name"] in markdown, f"the page does not have {item['name']}")
        expect(item["name"] in people, f"the list does not have {item['name']}")

    host.does("diff", file, file).expect_says("nothing changed")


@test
def the_schema_knows_what_is_no_catalog(host):
    good = host.catalog(TEXT_TOOLS)
    expect_valid(good)
    for change in [
        lambda catalog: catalog.pop("server"),
        lambda catalog: catalog.update(schemaVersion="1"),
        lambda catalog: catalog["items"][0].pop("name"),
        lambda catalog: catalog["items"][0].update(type="agent"),
        lambda catalog: catalog["items"][0].update(detail={}),
        lambda catalog: catalog.update(problems=[{"list": "tools/list"}]),
    ]:
        bad = copy.deepcopy(good)
        change(bad)
        expect(not schema().is_valid(bad), f"this is valid: {json.dumps(bad)[:500]}")


@test
def the_catalog_of_a_component_is_that_of_its_server(host):
    of_file = host.catalog(TEXT_TOOLS)
    of_server = host.catalog(stdio(os.environ["HOST_BIN"], "serve", TEXT_TOOLS))
    expect_valid(of_file)
    expect_valid(of_server)
    expect(len(names(of_file)) > 0, "there are no tools")
    expect_equal(of_file["items"], of_server["items"], "the items")
    host.does("add", TEXT_TOOLS)
    expect_equal(host.catalog("text-tools"), of_file, "the catalog of an added component")


@test
def the_catalog_of_our_own_server_is_complete_in_both_eras(host):
    command = [os.environ["HOST_BIN"], "serve", str(TEXT_TOOLS)]
    for era, modern in [("legacy", False), ("modern", True)]:
        told, lists, _ = raw.everything(command, modern)
        expect_complete(host.catalog(stdio(*command), "--era", era), told, lists, modern)


# Real servers: calls


def expect_call(host, target, tool, *arguments, says, **how):
    ran = host.does("call", target, tool, *arguments, **how)
    ran.expect_says(*says)
    return ran


@test
def tools_of_everything_are_called(host):
    target = stdio(*REAL["everything"].command)
    expect_equal(host.does("call", target, "echo", "message=hello there").out, "Echo: hello there\n", "the text")
    expect_equal(host.does("call", target, "echo", "--message", "--dashes").out, "Echo: --dashes\n", "the text")
    expect_equal(host.does("call", target, "echo", "--message=a=b").out, "Echo: a=b\n", "the text")
    expect_equal(host.does("call", target, "echo", "message=5").out, "Echo: 5\n", "the text")
    expect_call(host, target, "get-sum", "a=2", "b=3.5", says=["5.5"])
    expect_call(host, target, "get-sum", "--a", "-2", "--b=-3", says=["-5"])
    expect_call(host, target, "get-sum", "--args", '{"a": 40, "b": 2}', says=["42"])
    expect_call(host, target, "get-sum", "--args", f"@{host.file('args.json', {'a': 40, 'b': 3})}", says=["43"])
    expect_call(host, target, "get-sum", "--args", "-", input='{"a": 40, "b": 4}', says=["44"])

    weather = host.does("call", target, "get-structured-content", "location=Chicago", "--json").json
    expect_equal(set(weather), {"temperature", "conditions", "humidity"}, "the structured content")
    whole = host.does("call", target, "echo", "message=x", "--json").json
    expect_equal(whole["content"], [{"type": "text", "text": "Echo: x"}], "the content")

    image = host.does("call", target, "get-tiny-image")
    expect(re.search(r"^\[.*image/png.*\]$", image.out, re.M), f"no image is mentioned by {image}")
    expect(len(image.out) < 2000, f"the image is printed by {image}")
    image = host.does("call", target, "get-tiny-image", "--json").json
    expect("image" in [content["type"] for content in image["content"]], f"no image in {image}")
    links = host.does("call", target, "get-resource-links", "count=2")
    links.expect_says("demo://resource/dynamic/")
    flags = host.does("call", target, "get-annotated-message", "messageType=error", "includeImage=true")
    flags.expect_says("Error: Operation failed", "image/png")


@test
def what_a_tool_of_everything_takes_is_shown(host):
    target = stdio(*REAL["everything"].command)
    listed = host.does("call", target)
    listed.expect_says("echo", "get-sum", "Echoes back the input")
    help = host.does("call", target, "get-annotated-message", "--help")
    help.expect_says("--message-type", "--include-image", "error", "success", "debug", "Whether to include an example image")
    for flag in ["--message-type", "--messageType"]:
        expect_call(host, target, "get-annotated-message", flag, "success", says=["success"])


@test
def wrong_command_lines_for_everything_are_refused(host):
    target = stdio(*REAL["everything"].command)
    host.refuses("call", target, "ehco", says=["ehco", "echo"])
    host.refuses("call", target, "echo", says=["message"])
    host.refuses("call", target, "echo", "massage=x", says=["massage", "message"])
    host.refuses("call", target, "echo", "--massage", "x", says=["massage", "message"])
    host.refuses("call", target, "get-sum", "a=two", "b=3", says=["a", "two"])
    host.refuses("call", target, "get-annotated-message", "messageType=none", says=["messageType", "success"])
    host.refuses("call", target, "get-resource-links", "count=11", says=["count", "10"])
    host.fails("call", target, "get-sum", "--args", "{", code=2, says=["JSON"])
    host.fails("call", target, "get-sum", "--args", "[1]", code=2, says=["object"])
    host.fails("call", target, "get-sum", "--args", "@missing.json", code=2, says=["missing.json"])
    host.refuses("call", target, "get-sum", "--args", '{"a": "x", "b": 1}', says=["a"])


@test
def files_are_written_and_read_with_filesystem(host):
    target, folder = stdio(*REAL["filesystem"].command), WORK / "servers/files"
    text = 'täxt with "quotes",\nlines = 2\n'
    host.does("call", target, "write_file", f"path={folder}/new.txt", f"content={text}")
    expect_equal((folder / "new.txt").read_text(), text, "the file")
    read = host.does("call", target, "read_text_file", "--path", folder / "new.txt")
    expect(text in read.out, f"the text is not in {read}")
    read = host.does("call", target, "read_text_file", f"path={folder}/new.txt", "--json").json
    expect_equal(read, {"content": text}, "the structured content")
    # A list, by repeating it and as JSON.
    for paths in [
        ["--paths", folder / "new.txt", "--paths", folder / "hello.txt"],
        [f"paths={json.dumps([f'{folder}/new.txt', f'{folder}/hello.txt'])}"],
    ]:
        host.does("call", target, "read_multiple_files", *paths).expect_says("täxt", "hello")
    edits = json.dumps([{"oldText": "lines = 2", "newText": "lines = 3"}])
    host.does("call", target, "edit_file", f"path={folder}/new.txt", f"edits={edits}", "--dryRun").expect_says("lines = 3")
    expect_equal((folder / "new.txt").read_text(), text, "the file after a dry run")

    ran = host.fails("call", target, "read_text_file", "path=/etc/hostname", code=1, says=["denied"])
    expect(ran.err.startswith("error: "), str(ran))


@test
def a_graph_is_kept_in_memory(host):
    target = stdio(*REAL["memory"].command)
    ada = {"name": "Ada", "entityType": "person", "observations": ["wrote programs"]}
    expect_equal(host.does("call", target, "create_entities", f"entities={json.dumps([ada])}", "--json").json["entities"], [ada], "Ada")
    expect_equal(host.does("call", target, "read_graph", "--json").json["entities"], [ada], "the graph")
    host.does("call", target, "delete_entities", "--args", '{"entityNames": ["Ada"]}')
    expect_equal(host.does("call", target, "read_graph", "--json").json["entities"], [], "the graph")


@test
def other_real_servers_are_called(host):
    git = stdio(*REAL["git"].command)
    repository = WORK / "servers/repository"
    thought = ["nextThoughtNeeded=false", "thoughtNumber=1", "totalThoughts=1"]
    calls = [
        ("sequential-thinking", ["sequentialthinking", "thought=hm", *thought], ["thoughtNumber"]),
        ("time", ["convert_time", "source_timezone=UTC", "time=12:30", "target_timezone=Asia/Tokyo"], ["21:30"]),
        ("time", ["get_current_time", "--timezone", "UTC"], ["UTC"]),
        ("git", ["git_status", f"repo_path={repository}"], ["branch"]),
        ("calculator", ["calculate", "expression=2 + 3 * 4"], ["14"]),
        ("sqlite", ["create_table", "query=CREATE TABLE t (a INTEGER, b TEXT)"], []),
        ("sqlite", ["write_query", "query=INSERT INTO t VALUES (1, 'x'), (2, 'y')"], ["affected_rows"]),
        ("sqlite", ["read_query", "--query", "SELECT b FROM t WHERE a = 2"], ["'y'"]),
        ("sqlite", ["list_tables"], ["'t'"]),
    ]
    for name, arguments, says in calls:
        expect_call(host, stdio(*REAL[name].command), *arguments, says=says)
    budget = host.does("call", stdio(*REAL["budget-allocator"].command), "get-budget-data", "--json").json
    expect_equal(set(budget), {"config", "analytics"}, "the budget")
    host.fails("call", stdio(*REAL["time"].command), "convert_time", "source_timezone=Mars", "time=1:00", "target_timezone=UTC", code=1)
    host.refuses("call", git, "git_status", says=["repo_path"])


@test
def a_page_is_fetched(host):
    def page(request):
        request.reply(200, b"<html><body><article><h1>Hello</h1><p>This is a page.</p></article></body></html>", "text/html")

    with Web() as web:
        web.server.handle_get = page
        target = stdio(*REAL["fetch"].command)
        expect_call(host, target, "fetch", f"url={web.origin}/page", "--raw", says=["<h1>Hello</h1>"])
        arguments = json.dumps({"url": f"{web.origin}/page", "max_length": 2000})
        expect_call(host, target, "fetch", "--args", arguments, says=["This is a page."])
        host.refuses("call", target, "fetch", f"url={web.origin}/page", "max_length=0", says=["max_length"])


@test
def a_server_is_started_with_npx(host):
    # As people do it; it is a shell and two programs, and none of them stays.
    mark = host.variables["MARK"] = f"npx-{os.getpid()}"
    cwd = Path(os.environ["NODE_MODULES"]).parent
    host.variables["PATH"] = f"{os.environ['NODE']}:{host.variables['PATH']}"
    ran = host.does("call", "stdio:npx --no -- mcp-server-everything", "echo", "message=hello", cwd=cwd)
    expect_equal(ran.out, "Echo: hello\n", "the text")
    expect_nothing_left(mark)


# HTTP


@cache
def everything_over_http():
    command = [f"{os.environ['NODE']}/node", "--import", HERE / "here.mjs", REAL["everything"].command[1], "streamableHttp"]
    return Started(command)


@cache
def both_eras(kind):
    return Started([sys.executable, HERE / "both_eras.py", kind])


@test
def everything_is_listed_and_called_over_http(host):
    url = everything_over_http().url
    over_pipes = host.catalog(stdio(*REAL["everything"].command))
    for era in [[], ["--era", "auto"], ["--era", "legacy"]]:
        over_http = host.catalog(url, *era)
        expect_valid(over_http)
        expect_equal(over_http, over_pipes, f"the catalog over HTTP with {era}")
    expect_equal(host.does("call", url, "echo", "message=hello").out, "Echo: hello\n", "the text")
    expect_call(host, url, "get-sum", "--args", '{"a": 40, "b": 2}', says=["42"])
    weather = host.does("call", url, "get-structured-content", "--location", "Chicago", "--json").json
    expect_equal(set(weather), {"temperature", "conditions", "humidity"}, "the structured content")
    host.does("call", url).expect_says("get-sum")
    host.does("call", url, "get-sum", "--help").expect_says("--a", "--b", "First number")
    # It tells of its progress before it answers.
    expect_call(host, url, "trigger-long-running-operation", "duration=0.2", "steps=2", says=["completed"])
    host.refuses("catalog", url, "--era", "modern", says=["--era"])


@test
def a_server_over_http_is_spoken_to_in_each_era(host):
    for kind in ["json", "sse"]:
        url = both_eras(kind).url
        versions = {}
        catalogs = {}
        for era in ["auto", "modern", "legacy"]:
            catalog = catalogs[era] = host.catalog(url, "--era", era)
            expect_valid(catalog)
            versions[era] = catalog["server"]["protocol"]["version"]
            expect_equal(names(catalog), ["add", "fail", "place", "shout", "steps"], "the tools")
            expect_equal(names(catalog, "resource"), ["notes"], "the resources")
            expect_equal(names(catalog, "resource-template"), ["notes-of"], "the templates")
            expect_equal(items(catalog)["resource-template", "notes-of"]["detail"]["variables"], ["year", "month"], "the variables")
            expect_equal(names(catalog, "prompt"), ["review"], "the prompts")
            expect_equal(catalog["server"]["instructions"], "Add, or shout.", "the instructions")
            expect_equal(catalog["server"]["info"], {"name": "both-eras", "title": "Both eras", "version": "1.2.3"}, "the information")

            expect_equal(host.does("call", url, "add", "a=2", "b=3", "--json", "--era", era).json, {"sum": 5}, "the result")
            shout = host.does("call", url, "shout", "--text", "hey", "--times=2", "--marks", "!", "--marks", "?", "--era", era)
            expect_equal(shout.out, "HEY!?\nHEY!?\n", "the text")
            shout = host.does("call", url, "shout", "--args", '{"text": "hey"}', "--json", "--era", era).json
            expect_equal(shout["content"], [{"type": "text", "text": "HEY"}], "the content")
            expect_equal(host.does("call", url, "steps", "count=3", "--era", era).out, "3 steps\n", "the text")
            host.fails("call", url, "fail", "reason=the reason", "--era", era, code=1, says=["the reason"])
        expect_equal(versions, {"auto": raw.MODERN, "modern": raw.MODERN, "legacy": raw.LEGACY}, "the versions")
        expect_equal(catalogs["auto"], catalogs["modern"], "the catalog")


@test
def an_argument_is_sent_as_a_header_where_the_tool_says_so(host):
    url = both_eras("json").url
    for region in ["eu", "with spaces", "Zürich", "a\nb"]:
        expect_equal(host.does("call", url, "place", f"region={region}", "--era", "modern").out, f"{region}, 0 deep\n", "the text")


@test
def answers_come_as_json_and_as_events(host):
    for stream in [False, True]:
        for discover in [400, 404, 200, 405]:
            with Web(stream=stream, discover=discover) as web:
                catalog = host.catalog(web.url)
                expect_equal(names(catalog), [tool["name"] for tool in TOOLS], "the tools")
                expect_equal(host.does("call", web.url, "echo", "text=grüße").out, "grüße\n", "the text")
                expect_equal(host.does("call", web.url, "two").out, "one\ntwo\n", "the text")
                expect_equal(web.requests[-1].command, "DELETE", "the end of the session")
                # What the protocol says that a client sends.
                for request in web.requests:
                    method = request.message.get("method")
                    if method not in (None, "initialize", "server/discover"):
                        expect_equal(request.headers["Mcp-Protocol-Version"], raw.LEGACY, f"the version of {method}")
                    if request.command == "POST":
                        for kind in ["application/json", "text/event-stream"]:
                            expect(kind in request.headers["Accept"], f"{method} does not accept {kind}")


@test
def headers_and_tokens_are_sent(host):
    token = host.file("token", "s3cret-t0ken\n")
    with Web(token="s3cret-t0ken") as web:
        options = ["--token-file", token, "--header", "X-Team: red", "--header", "X-Empty:"]
        host.catalog(web.url, *options)
        expect_equal(host.does("call", web.url, "echo", "text=hi", *options).out, "hi\n", "the text")
        expect_equal(set(web.headers("X-Team")), {"red"}, "the header")
        expect_equal(set(web.headers("X-Empty")), {""}, "the empty header")
        web.requests.clear()
        host.catalog(web.url, "--header", "Authorization: Bearer s3cret-t0ken")
        expect_equal(set(web.headers("Authorization")), {"Bearer s3cret-t0ken"}, "the token")
        host.variables["TOKEN_OF_TEAM"] = "s3cret-t0ken"
        host.catalog(web.url, "--token-env", "TOKEN_OF_TEAM")
        host.refuses("catalog", web.url, "--token-env", "NO_SUCH_TOKEN", says=["NO_SUCH_TOKEN"])


@test
def a_server_that_wants_a_token_says_how_to_give_one(host):
    wrong = host.file("wrong", "wr0ng-t0ken")
    with Web(token="s3cret-t0ken") as web:
        for command in [["catalog", web.url], ["call", web.url, "echo", "text=x"]]:
            for era in ["auto", "legacy", "modern"]:
                host.refuses(*command, "--era", era, says=["authorization", "--token-file"])
            host.refuses(*command, "--token-file", wrong, says=["authorization"]).expect_never_says("wr0ng-t0ken")
        host.fails("catalog", web.url, "--token-file", "missing", code=2, says=["missing"])
        host.fails("catalog", web.url, "--token-file", host.file("empty", "\n"), code=2, says=["empty"])
        host.fails("catalog", web.url, "--token-file", host.file("lines", "a\nb: c\n"), code=2)
        host.refuses("catalog", web.url, "--header", "no colon", says=["header"])
        host.refuses("catalog", web.url, "--header", "a b: c", says=["a b"])
        # A command gets its secrets from the environment.
        host.refuses("catalog", odd("results"), "--token-file", wrong, says=["environment"])
        host.refuses("catalog", odd("results"), "--header", "a: b", says=["environment"])


@test
def redirects_to_elsewhere_are_not_followed(host):
    token = host.file("token", "s3cret-t0ken")
    with Web() as elsewhere:
        for status in [301, 302, 303, 307, 308]:
            for place in [elsewhere.url, elsewhere.url.replace("127.0.0.1", "localhost"), elsewhere.url.removeprefix("http:")]:

                def redirect(request, status=status, place=place):
                    request.reply(status, Location=place)
                    return True

                with Web(handle=redirect) as web:
                    options = ["--token-file", token, "--header", "X-Key: k3y"]
                    for command in [["catalog", web.url], ["call", web.url, "echo", "text=x"]]:
                        ran = host.refuses(*command, *options)
                        ran.expect_never_says("s3cret-t0ken", "k3y")
                        # The others would turn a message into a question for a page, so they are answers that no server gives.
                        ran.expect_says(place.split("/")[2] if status in (307, 308) else str(status))
        expect_equal([request.requestline for request in elsewhere.requests], [], "what was asked for elsewhere")


@test
def what_is_no_server_is_told_so(host):
    answers = {
        "a page": lambda request: request.reply(200, b"<!doctype html>", "text/html"),
        "not found": lambda request: request.reply(404, b"no such page", "text/plain"),
        "broken": lambda request: request.reply(500, b"oops", "text/plain"),
        "busy": lambda request: request.reply(503, b"", Retry_After="1"),
        "not JSON": lambda request: request.reply(200, b"{"),
        "other JSON": lambda request: request.reply(200, b'{"hello": "world"}'),
        "nothing": lambda request: request.reply(200),
        "accepted": lambda request: request.reply(202),
        "hangs up": lambda request: request.connection.shutdown(socket.SHUT_RDWR),
    }
    for what, answer in answers.items():
        with Web(handle=lambda request: (answer(request), True)[1]) as web:
            ran = host.refuses("catalog", web.url, "--timeout", "20s")
            expect(web.origin in ran.err, f"{what} is not said of its address: {ran}")
            expect(ran.err.startswith("error: "), f"there is more than the error: {ran}")
    with Web(handle=lambda request: (request.start_stream(), True)[1]) as web:
        ran = host.fails("catalog", web.url, "--timeout", "20s", code=2, says=["does not keep to the protocol"])
        expect(ran.err.startswith("error: "), f"there is more than the error of an empty stream: {ran}")
    # And when nobody is there.
    ran = host.refuses("catalog", web.url, says=[web.origin])
    expect(ran.err.startswith("error: "), f"there is more than the error: {ran}")
    host.fails("catalog", "http://", code=2, says=["http://"])
    host.fails("catalog", "ftp://127.0.0.1/mcp", code=2, says=["ftp"])


@test
def a_server_over_http_that_does_not_answer_is_given_up(host):
    done = threading.Event()

    def wait(request):
        if request.message.get("method") != "tools/call":
            return False
        done.wait(60)
        return True

    def stream(request):
        if request.message.get("method") == "tools/call":
            request.start_stream()
            while not done.wait(0.05):
                request.wfile.write(b": still here\n\n")
            return True
        return False

    for handle in [wait, stream]:
        with Web(handle=handle) as web:
            # It can be listed.
            host.catalog(web.url)
            ran = host.run("call", web.url, "echo", "text=x", "--timeout", "2s")
            expect(ran.code in (1, 2) and "error: " in ran.err and "2 s" in ran.err, str(ran))
    done.set()


@test
def an_endless_answer_over_http_is_given_up(host):
    def endless(request):
        request.start_stream()
        try:
            while True:
                request.wfile.write(b"x" * (1 << 20))
        except OSError:
            return True

    def lines(request):
        request.start_stream()
        try:
            while True:
                request.wfile.write(b"data: " + b"x" * (1 << 20) + b"\n")
        except OSError:
            return True

    for handle in [endless, lines]:
        with Web(handle=handle) as web:
            expect_small(host, "catalog", web.url, code=2)


# Odd servers: what they have


@test
def missing_fields_are_errors_of_their_items(host):
    catalog = host.catalog(odd("missing-fields"))
    expect_valid(catalog)
    expect_equal(len(names(catalog)), 6, "the number of tools")
    expect_equal(len(names(catalog, "resource")), 4, "the number of resources")
    expect_equal(len(names(catalog, "resource-template")), 3, "the number of templates")
    expect_equal(len(names(catalog, "prompt")), 3, "the number of prompts")
    expect("error" not in items(catalog)["tool", "fine"], "the fine one has an error")
    expect("inputSchema" in items(catalog)["tool", "no-schema"]["error"], "a missing schema is not said")
    # What is no entry at all.
    expect_equal([problem["list"] for problem in catalog["problems"]], ["tools/list"], "the problems")
    # What is of a wrong type is kept.
    odd_one = next(item for item in catalog["items"] if item["type"] == "tool" and "title" in item["meta"].get("extensions", {}))
    expect_equal(odd_one["meta"]["extensions"], {"name": 5, "title": ["a"], "description": {"b": 1}}, "the extensions")
    odd_uri = items(catalog)["resource", "odd-uri"]
    expect_equal(odd_uri["meta"]["extensions"], {"uri": 1, "size": -1, "mimeType": 3}, "the extensions")

    expect_equal(names(host.catalog(odd("no-name"))), ["fine"], "the tools of a server without a name")
    host.does("call", odd("missing-fields"), "fine").expect_says("fine")
    host.does("call", odd("missing-fields"), "no-schema", "--args", '{"a": 1}').expect_says('no-schema {"a": 1}')
    host.does("catalog", odd("missing-fields")).expect_says("no-schema", "fine")
    host.does("catalog", odd("missing-fields"), "--markdown").expect_says("no-schema", "fine")
    # Those without a name have no path, or share one.
    openapi = host.does("catalog", odd("missing-fields"), "--openapi").json
    expect({"/tools/fine", "/tools/no-schema"} <= set(openapi["paths"]), f"the paths are {set(openapi['paths'])}")
    expect_openapi(openapi, len(openapi["paths"]))


@test
def bad_schemas_are_errors_of_their_tools(host):
    with Web() as elsewhere:
        target = odd("bad-schemas", f"{elsewhere.origin}/schema.json")
        catalog = host.catalog(target)
        expect_valid(catalog)
        tools = items(catalog)
        for name in ["type-unknown", "not-a-schema", "list", "bad-pattern", "no-such-reference", "elsewhere", "bad-output"]:
            expect("schema" in tools["tool", name].get("error", ""), f"{name} has no error: {tools['tool', name].get('error')}")
        expect("error" not in tools["tool", "fine"], "the fine one has an error")
        expect_equal(json.dumps(host.catalog(target)), json.dumps(catalog), "the second catalog")
        host.does("call", target, "fine", "--args", '{"a": 1}').expect_says('fine {"a": 1}')
        host.does("call", target).expect_says("bad-pattern", "fine")
        for tool in tools:
            host.run("call", target, tool[1], "--help", "--timeout", "30s")
        expect_openapi(host.does("catalog", target, "--openapi").json, len(tools))
        host.does("catalog", target, "--markdown").expect_says("bad-pattern", "fine")
        expect_equal([request.requestline for request in elsewhere.requests], [], "what was fetched for a schema")


@test
def schemas_that_take_for_ever_are_given_up(host):
    target = odd("slow-schemas")
    tools = ["doubling", "itself", "pattern"]
    expect_equal(names(host.catalog(target)), tools, "the tools")
    # No validator of OpenAPI comes to its end with these.
    for format in ["--markdown", "--openapi"]:
        host.does("catalog", target, format).expect_says(*tools)
    for tool in tools:
        host.does("call", target, tool, "--help").expect_says(tool)
    host.does("diff", target, target).expect_says("nothing changed")
    for tool in tools:
        # Who cannot say that it is wrong leaves it to the server.
        ran = host.run("call", target, tool, "--args", json.dumps({"a": "a" * 60 + "!"}))
        expect(ran.code in (0, 2), str(ran))


@test
def what_is_nested_too_deeply_is_told_at_once(host):
    ran = host.run("catalog", odd("deep"), "--json", "--timeout", "20s")
    ran.expect_never_says("did not answer")
    if ran.code == 0:
        expect_valid(ran.json)
        expect(ran.json.get("problems") or "error" in items(ran.json)["tool", "deep"], f"nothing is said of it in {ran}")
    else:
        expect(ran.code == 2 and ran.err.startswith("error: "), str(ran))


@test
def what_nobody_knows_is_kept(host):
    command = [sys.executable, HERE / "odd.py", "unknown-things"]
    told, lists, _ = raw.everything(command, False)
    catalog = host.catalog(stdio(*command))
    expect_valid(catalog)
    expect_complete(catalog, told, lists, False)
    extensions = items(catalog)["tool", "fine"]["meta"]["extensions"]
    expect_equal(extensions, {"kind": "agent", "costs": {"per": "call", "of": 9007199254740993}}, "the extensions")
    ran = host.does("call", stdio(*command), "hologram")
    expect(re.fullmatch(r"before\n\[.*hologram.*\]\nafter\n", ran.out), str(ran))
    expect_equal(host.does("call", stdio(*command), "hologram", "--json").json["content"][1], {"type": "hologram", "beams": [1]}, "it")


@test
def large_numbers_stay_what_they_are(host):
    command = [sys.executable, HERE / "odd.py", "numbers"]
    told, lists, _ = raw.everything(command, False)
    expect_complete(host.catalog(stdio(*command)), told, lists, False)
    for number in ["18446744073709551615", "-9223372036854775808", "9007199254740993"]:
        host.does("call", stdio(*command), "fine", f"n={number}").expect_says(f'fine {{"n": {number}}}')
    host.refuses("call", stdio(*command), "fine", "n=18446744073709551616", says=["n"])


@test
def twins_are_both_listed(host):
    catalog = host.catalog(odd("twins"))
    expect_valid(catalog)
    expect_equal(names(catalog), ["other", "twin", "twin"], "the tools")
    expect_equal([item["description"] for item in catalog["items"] if item["name"] == "twin"], ["the first", "the second"], "the twins")
    expect_equal(len([item for item in catalog["items"] if "error" in item]), 1, "the errors")
    expect_equal(names(catalog, "resource"), ["same", "same"], "the resources")
    expect_openapi(host.does("catalog", odd("twins"), "--openapi").json, len(set(names(catalog))))


# Odd servers: pages


@test
def a_thousand_tools_come_in_pages(host):
    catalog = host.catalog(odd("pages"))
    expect_valid(catalog)
    expect_equal(names(catalog), [f"tool-{n:04}" for n in range(1000)], "the tools")
    expect_equal(catalog.get("problems", []), [], "the problems")
    host.does("call", odd("pages"), "tool-0999").expect_says("tool-0999")
    expect_openapi(host.does("catalog", odd("pages"), "--openapi").json, 1000)


@test
def pages_without_end_are_given_up(host):
    for behaviour in ["same-cursor", "new-cursors", "empty-pages"]:
        catalog = host.catalog(odd(behaviour))
        expect_valid(catalog)
        expect_equal([problem["list"] for problem in catalog["problems"]], ["tools/list"], "the problems")
        if behaviour != "empty-pages":
            expect(len(names(catalog)) > 0, "what was read is lost")
    host.does("catalog", odd("same-cursor")).expect_says("fine", "tools/list")


@test
def pages_that_are_none_are_problems(host):
    catalog = host.catalog(odd("bad-pages"))
    expect_valid(catalog)
    expect_equal(names(catalog, "prompt"), ["fine"], "the prompts")
    lists = {problem["list"] for problem in catalog["problems"]}
    expect({"tools/list", "resources/list", "resources/templates/list"} <= lists, f"the problems are {catalog['problems']}")


@test
def a_list_that_fails_does_not_hide_the_others(host):
    catalog = host.catalog(odd("list-error"))
    expect_valid(catalog)
    expect_equal((names(catalog), names(catalog, "resource")), (["fine"], ["b"]), "the names")
    [problem] = catalog["problems"]
    expect_equal(problem["list"], "prompts/list", "the list")
    expect("the prompts are at lunch" in problem["message"], f"the reason is not in {problem}")
    host.does("catalog", odd("list-error")).expect_says("fine", "the prompts are at lunch")
    host.does("catalog", odd("list-error"), "--markdown").expect_says("fine", "the prompts are at lunch")
    host.does("call", odd("list-error"), "fine").expect_says("fine")


# Odd servers: how they talk


@test
def a_server_that_says_nothing_is_given_up(host):
    mark = f"silent-{os.getpid()}"
    for era in ["auto", "modern", "legacy"]:
        for command in [["catalog"], ["call"]]:
            target = odd("silently-stays", mark)
            host.refuses(*command, target, "--era", era, "--timeout", "1s", says=["1 s"])
            expect_nothing_left(mark)
    ran = host.run("call", odd("silent-calls"), "fine", "--timeout", "2s")
    expect(ran.code in (1, 2) and "error: " in ran.err and "2 s" in ran.err, str(ran))


@test
def what_a_server_says_before_it_ends_is_shown(host):
    for era in ["auto", "modern", "legacy"]:
        ran = host.fails("catalog", odd("exits"), "--era", era, code=2, says=["exit code 3", "I need a key", "set ODD_KEY"])
        ran.expect_never_says("\x1b", "\u202e")
    ran = host.run("call", odd("exits-later"), "fine")
    expect(ran.code in (1, 2) and "error: " in ran.err, str(ran))
    ran.expect_says("the disk is full")


@test
def a_command_that_does_not_start_is_told_so(host):
    ran = host.refuses("catalog", "stdio:/no/such/program", says=["/no/such/program"])
    expect_equal(ran.err.count("No such file"), 1, f"how often the cause is in {ran}")
    host.refuses("catalog", "stdio:no-such-program-anywhere x", says=["no-such-program-anywhere"])
    host.refuses("catalog", f"stdio:{host.file('text', 'x')}", says=["text"])
    host.fails("catalog", "stdio:", code=2, says=["stdio:"])
    host.fails("catalog", "stdio:'open quote", code=2, says=["quote"])
    host.refuses("catalog", "no-such-target", says=["no-such-target"])
    # Programs that are no servers: one gives back what it gets.
    host.fails("catalog", "stdio:cat", "--timeout", "2s", code=2)
    host.fails("catalog", "stdio:true", "--timeout", "2s", code=2)


@test
def a_command_is_split_as_a_shell_does_it(host):
    script = host.file("server with spaces.py", (HERE / "odd.py").read_text())
    for words in [f'"{script}"', f"'{script}'", str(script).replace(" ", "\\ "), f"{host.folder}/'server with 'spaces.py"]:
        host.does("call", f"stdio:{sys.executable} {words} twins", "other").expect_says("other")
    # And no further: nothing of it is run by a shell.
    host.run("catalog", f"stdio:{sys.executable} {HERE}/odd.py exits; touch {host.folder}/made", "--timeout", "5s")
    host.run("catalog", f"stdio:{sys.executable} {HERE}/odd.py exits $(touch {host.folder}/made)", "--timeout", "5s")
    expect(not (host.folder / "made").exists(), "a shell was asked")


@test
def what_is_no_message_is_passed_over(host):
    for behaviour in ["garbage", "wrong-ids", "logs", "old-version"]:
        target = odd(behaviour)
        expect_equal(names(host.catalog(target, "--timeout", "60s")), ["fine"], f"the tools of {behaviour}")
        expect_equal(host.does("call", target, "fine", "--args", '{"a": 1}').out, 'fine {"a": 1}\n', f"the text of {behaviour}")
    expect_equal(host.catalog(odd("old-version"))["server"]["protocol"]["version"], "2024-11-05", "the version")
    # One that does not answer what it does not know is given up in one era and tried in the other.
    expect_equal(names(host.catalog(odd("ignores-discover"))), ["fine"], "the tools of one that drops what it does not know")


@test
def wrong_ids_alone_are_no_answers(host):
    host.fails("catalog", odd("only-wrong-ids"), "--timeout", "3s", code=2)
    host.fails("call", odd("only-wrong-ids"), "fine", "--timeout", "3s", code=2)


def expect_small(host, *arguments, code):
    """It ends, and never needed the memory that was sent to it."""
    process = host.start(*arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    peak, done = 0, threading.Event()

    def watch():
        nonlocal peak
        while not done.wait(0.02):
            try:
                found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
                peak = max(peak, int(found[1])) if found else peak
            except OSError:
                pass

    watcher = threading.Thread(target=watch)
    watcher.start()
    out, err = process.communicate(timeout=120)
    done.set()
    watcher.join()
    expect(process.returncode == code and b"error: " in err, f"{arguments} ended with {process.returncode}: {err.decode()}")
    expect(peak < 250_000, f"{arguments} took {peak} kB")
    expect(b"panicked" not in err, err.decode())


@test
def an_answer_without_end_is_given_up(host):
    expect_small(host, "catalog", odd("endless-line"), "--timeout", "60s", code=2)
    ran = host.run("call", odd("huge-line"), "fine", "--timeout", "60s")
    expect(ran.code in (1, 2) and "error: " in ran.err, str(ran))


@test
def a_large_answer_is_one(host):
    expect_equal(host.does("call", odd("large-answer"), "fine").out, "x" * (3 << 20) + "\n", "the text")


@test
def a_server_that_dies_of_a_question_is_started_again(host):
    starts = host.folder / "starts"
    target = odd("dies-on-discover", starts)
    catalog = host.catalog(target)
    expect_equal(names(catalog), ["fine"], "the tools")
    expect_equal(host.does("call", target, "fine").out, "fine {}\n", "the text")
    starts.unlink()
    host.catalog(target, "--era", "legacy")
    expect_equal(starts.read_text(), "started\n", "the starts in the older era")
    host.fails("catalog", target, "--era", "modern", code=2, says=["expect initialized request"])


@test
def what_a_server_asks_for_is_answered(host):
    answers = host.does("call", odd("asks"), "fine", "--json").json
    expect_equal(answers["ping"], {}, "the answer to a ping")
    expect_equal(answers["no/such"], -32601, "the answer to an unknown request")
    expect(isinstance(answers["sampling/createMessage"], int), f"there is a model: {answers}")
    elicited = answers["elicitation/create"]
    expect(isinstance(elicited, int) or elicited["action"] in ("decline", "cancel"), f"there was an answer: {answers}")
    expect(isinstance(answers["roots/list"], int) or answers["roots/list"] == {"roots": []}, f"the roots are {answers['roots/list']}")


# Odd servers: what they leave behind


def expect_nothing_left(mark):
    left = processes_with(mark)
    # A process that was killed takes a moment to be gone.
    deadline = time.monotonic() + 10
    while left and time.monotonic() < deadline:
        time.sleep(0.05)
        left = processes_with(mark)
    for process in left:
        os.kill(process, signal.SIGKILL)
    expect_equal(left, {}, "what is left")


@test
def no_server_stays(host):
    for words in [["stays"], ["wraps", "wraps", "stays"], ["leaves-a-child"]]:
        mark = f"{'-'.join(words)}-{os.getpid()}"
        expect_equal(names(host.catalog(odd(*words, mark))), ["fine"], "the tools")
        expect_nothing_left(mark)
        expect_equal(host.does("call", odd(*words, mark), "fine").out, "fine {}\n", "the text")
        expect_nothing_left(mark)
    # Nor after a wrong command line, which is found only when the tools are known.
    host.refuses("call", odd("wraps", "stays", mark), "none")
    expect_nothing_left(mark)
    # One that a shell started and does not wait for.
    mark = f"background-{os.getpid()}"
    script = host.file("start", f"#!/bin/sh\nexec 3<&0\n{sys.executable} {HERE}/odd.py stays {mark} <&3 &\nwait\n")
    script.chmod(0o755)
    expect_equal(names(host.catalog(f"stdio:{script}", "--timeout", "30s")), ["fine"], "the tools")
    expect_nothing_left(mark)


@test
def no_server_stays_when_the_program_is_interrupted(host):
    for words in [["silently-stays"], ["wraps", "silently-stays"]]:
        for number in [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]:
            mark = f"interrupted-{number}-{'-'.join(words)}-{os.getpid()}"
            nothing = subprocess.DEVNULL
            process = host.start("catalog", odd(*words, mark), stdin=nothing, stdout=nothing, stderr=nothing)
            while len([command for command in processes_with(mark).values() if command.startswith(sys.executable)]) < len(words):
                expect(process.poll() is None, "it ended")
                time.sleep(0.02)
            process.send_signal(number)
            process.wait(60)
            expect(process.returncode != 0, "it was interrupted and says that all is well")
            expect_nothing_left(mark)


# Odd servers: text on a terminal


# What must not reach a terminal from a server. Colours may come from the program itself, but not these.
STEERING = ["\x1b]", "\x1b[2J", "\x1b[31mred", "\x07", "\x08", "\x9b", "\rover", "\u202e", "\u2066", "\U000e0041"]


@test
def nothing_steers_a_terminal(host):
    target = odd("hostile")
    for arguments in [
        ["catalog", target],
        ["catalog", target, "--json"],
        ["catalog", target, "--markdown"],
        ["catalog", target, "--openapi"],
        ["call", target],
        ["call", target, "fine", "--help"],
        ["call", target, "fine"],
        ["call", target, "fine", "--json"],
        ["call", target, "wrong"],
        ["call", target, "error"],
        ["call", target, "fine", "b=1"],
        ["call", target, f"name{HOSTILE}"],
        ["call", target, "non"],
        ["catalog", odd("exits")],
        ["diff", target, odd("twins")],
    ]:
        code, shown = host.on_terminal(*arguments)
        for part in STEERING:
            expect(part not in shown, f"{arguments} shows {part!r} on a terminal: {shown!r}")
        expect("panicked" not in shown, shown)


@test
def nothing_is_lost_where_no_terminal_is(host):
    target = odd("hostile")
    command = [sys.executable, HERE / "odd.py", "hostile"]
    told, lists, _ = raw.everything(command, False)
    catalog = host.catalog(target)
    expect_valid(catalog)
    expect_complete(catalog, told, lists, False)
    expect(HOSTILE in host.does("call", target, "fine").out, "the text of a result is not what it was")
    expect_equal(host.does("call", target, "fine", "--json").json["content"][0]["text"], f"text{HOSTILE}", "the text")
    expect_openapi(host.does("catalog", target, "--openapi").json, 4)
    page = host.does("catalog", target, "--markdown").out
    for active in [r"(?<!\\)<script", r"(?<!\\)\]\(http", r"(?m)^# heading"]:
        expect(not re.search(active, page), f"`{active}` is in the page {page}")
    expect_equal(page.count("```") % 2, 0, "the number of fences")


# Results


@test
def results_are_shown_to_people(host):
    target = odd("results")
    lines = host.does("call", target, "contents").out
    expect(lines.startswith("one\n[") and lines.endswith("]\ntwo\nlines\n"), lines)
    for part in ["image/png", "audio/wav", "in a resource", "a://blob", "a://link"]:
        expect(part in lines, f"{part} is not in {lines}")
    expect("iVBORw0KGgo=" not in lines and "UEsFBg==" not in lines, lines)
    expect_equal(len(host.does("call", target, "contents", "--json").json["content"]), 7, "the contents")
    host.does("call", target, "nothing")
    expect_equal(host.does("call", target, "nothing", "--json").json, {"content": []}, "nothing")
    structured = host.does("call", target, "structured", "--json")
    expect_equal(structured.json, {"n": 18446744073709551615}, "the structure")
    structured.expect_says("18446744073709551615")
    host.does("call", target, "structured").expect_says("18446744073709551615")
    expect_equal(host.does("call", target, "text-and-structure").out, "one\n", "the text")
    expect_equal(host.does("call", target, "text-and-structure", "--json").json, {"n": 1}, "the structure")


@test
def failures_are_told_by_the_exit_code(host):
    target = odd("results")
    expect_equal(host.fails("call", target, "wrong", code=1).err, "error: it did not work\n", "the message")
    ran = host.run("call", target, "wrong", "--json")
    expect_equal((ran.code, ran.json.get("isError")), (1, True), f"the failure of {ran}")
    host.fails("call", target, "refused", code=1, says=["not today"])
    host.fails("call", target, "structured-error", code=1, says=["half done"])
    host.fails("call", target, "no-result", code=1)
    # A result that is not what the tool says it gives.
    ran = host.does("call", target, "breaks-its-word")
    expect_equal(ran.out, "x\n", "the text")
    expect("warning: " in ran.err and "schema" in ran.err, str(ran))
    expect_equal(host.does("call", target, "no-structure").out, "only text\n", "the text")


@test
def a_server_gets_the_environment(host):
    host.variables["ODD_KEY"] = "for you"
    environment = json.loads(host.does("call", odd("results"), "environment").out)
    expect_equal(environment.get("ODD_KEY"), "for you", "a variable")


# Servers that clients have


@test
def servers_are_found_where_clients_keep_them(host):
    with Web(token="s3cret-t0ken") as web:
        home = host.folder / "home"
        (home / ".cursor").mkdir(parents=True)
        host.variables["HOME"] = str(home)
        configured = {
            "pipes": {"command": sys.executable, "args": [str(HERE / "odd.py"), "results"], "env": {"ODD_KEY": "from a file"}},
            "gone": {"command": "/no/such/program"},
            "web": {"url": web.url, "headers": {"Authorization": "Bearer s3cret-t0ken"}},
        }
        (home / ".cursor/mcp.json").write_text(json.dumps({"mcpServers": configured}))

        expect_equal(names(host.catalog("web", "--from", "cursor")), ["echo", "two"], "the tools")
        expect_equal(host.does("call", "web", "echo", "text=hi", "--from", "cursor").out, "hi\n", "the text")
        environment = json.loads(host.does("call", "--from", "cursor", "pipes", "environment").out)
        expect_equal(environment["ODD_KEY"], "from a file", "a variable")
        host.refuses("catalog", "other", "--from", "cursor", says=["other", "pipes", "gone", "web"])
        host.fails("catalog", "web", "--from", "nobody", code=2, says=["nobody", "cursor"])

        # One that does not start hides no other.
        ran = host.run("catalog", "--all", "--json")
        found = {server["name"]: server for server in ran.json["servers"]}
        expect_equal((ran.code, sorted(found)), (1, ["gone", "pipes", "web"]), f"what is found by {ran}")
        expect_valid(found["pipes"]["catalog"])
        expect_equal(found["web"]["catalog"], host.catalog("web", "--from", "cursor"), "the catalog")
        expect("/no/such/program" in found["gone"]["error"] and "catalog" not in found["gone"], f"the one that is gone is {found['gone']}")
        ran = host.run("catalog", "--all", "--from", "cursor")
        expect_equal(ran.code, 1, f"the exit code of {ran}")
        ran.expect_says("/no/such/program", "structured", "echo")
        ran.expect_never_says("s3cret-t0ken", "from a file")


# Differences


def changed(catalog, change):
    catalog = copy.deepcopy(catalog)
    change(items(catalog), catalog)
    return catalog


@test
def differences_are_told_and_breaking_ones_by_the_exit_code(host):
    target = stdio(*REAL["everything"].command)
    host.does("catalog", target, "--json", "-o", "old.json")
    old = json.loads((host.folder / "old.json").read_text())
    host.does("diff", "old.json", "old.json").expect_says("nothing changed")
    host.does("diff", "old.json", target).expect_says("nothing changed")
    host.does("diff", target, target).expect_says("nothing changed")

    def of_echo(change):
        return lambda items, catalog: change(items["tool", "echo"])

    def without_echo(items, catalog):
        catalog["items"].remove(items["tool", "echo"])

    def with_another(items, catalog):
        catalog["items"].insert(0, items["tool", "echo"] | {"name": "aaa"})

    cases = [
        (0, "aaa", with_another),
        (0, "description", of_echo(lambda echo: echo.update(description="other words"))),
        (0, "extra", of_echo(lambda echo: echo["detail"]["input"]["properties"].update(extra={"type": "string"}))),
        (1, "echo", without_echo),
        (1, "extra", of_echo(lambda echo: echo["detail"]["input"].update(required=["message", "extra"]))),
        (1, "message", of_echo(lambda echo: echo["detail"]["input"]["properties"]["message"].update(type="integer"))),
    ]
    for code, says, change in cases:
        new = host.file("new.json", changed(old, change))
        ran = host.run("diff", "old.json", new)
        expect(ran.code == code, str(ran))
        ran.expect_says(says)
        changes = host.run("diff", "old.json", new, "--json")
        expect(changes.code == code, str(changes))
        expect_equal(any(change["breaking"] for change in changes.json["changes"]), code == 1, f"what breaks in {changes}")
    expect_equal(host.does("diff", "old.json", "old.json", "--json").json["changes"], [], "the changes")
    # From a server to another.
    ran = host.run("diff", target, TEXT_TOOLS)
    expect(ran.code == 1, str(ran))


@test
def what_is_no_catalog_is_not_compared(host):
    host.file("good.json", host.catalog(TEXT_TOOLS))
    later = host.catalog(TEXT_TOOLS) | {"schemaVersion": 99}
    for text, says in [("{", "no catalog"), ("{}", "no catalog"), (later, "99")]:
        host.file("bad.json", text)
        host.fails("diff", "good.json", "bad.json", code=2, says=["bad.json", says])
    host.fails("diff", "good.json", "missing.json", code=2, says=["missing.json"])


def run(function):
    """What came of a test, in a line."""
    start, outcome = time.monotonic(), "ok"
    folder = WORK / function.__name__
    folder.mkdir()
    try:
        function(Host(folder))
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = ", ".join(str(frame.lineno) for frame in frames if frame.filename == __file__)
        outcome = f"FAIL at line {lines}: {str(error)[:6000] or repr(error)}"
    print(f"{function.__name__.replace('_', ' ')}: {outcome}, {time.monotonic() - start:.1f} s", flush=True)
    return outcome == "ok"


def main():
    only = sys.argv[1:]
    # As by Ctrl-C, so that the servers are ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    wanted = [function for function in TESTS if not only or any(part in function.__name__ for part in only)]
    # Most of the time is that of servers that start.
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        outcomes = list(threads.map(run, wanted))
    print(f"{outcomes.count(True)} passed, {outcomes.count(False)} failed")
    # To run nothing is a mistake of the caller, not a success.
    return not outcomes or not all(outcomes)


sys.exit(main())
