"""Adds, updates and publishes components, from files, over HTTPS and with registries; see README.md.

HOST_BIN is the program, REPOSITORY has the components, WORK is a folder for everything.
"""

import asyncio
import json
import os
import sys
import time
from pathlib import Path

from mcp import Client, StdioServerParameters

from components import large, number, wat
from host import Host, digest, expect, expect_equal, hex_digest
from servers import PASSWORD, USER, Authority, File, Registry, Website, docker_config

REPOSITORY, WORK = Path(os.environ["REPOSITORY"]), Path(os.environ["WORK"])
TEXT_TOOLS = (REPOSITORY / "examples/text-tools/text-tools.wasm").read_bytes()
PROGRAM = (REPOSITORY / "test-components/cli-getopt/cli-getopt-module.wasm").read_bytes()

WASM = "application/wasm"
POLICY = "application/vnd.wassette.policy+yaml"

TESTS = []


def test(function):
    TESTS.append(function)
    return function


class World:
    """The servers, which most tests share."""

    def __init__(self):
        self.authority = Authority(WORK)
        self.registry = Registry(WORK / "registry")
        self.locked = Registry(WORK / "locked-registry", password=True)
        self.private = Registry(WORK / "private-registry", authority=self.authority)

    @property
    def trust(self):
        return ("--ca-file", str(self.authority.file))

    def website(self):
        return Website(self.authority)


# Files and directories


# How often one process tries.
ATTEMPTS = 3


@test
def a_file_is_added_by_its_path(world, host):
    host.file("x.wasm", number(7))
    host.does("add", "x.wasm").expect_says("added `x`", hex_digest(number(7)), "number")
    host.expect_has(x=number(7))
    host.expect_answers("x", 7)
    expect_equal(host.components()["x"]["source"], str(host.folder / "x.wasm"), "the source")


@test
def a_file_is_added_once_however_it_is_spelled(world, host):
    path = host.file("a folder/x.wasm", number(7))
    host.does("add", path)
    host.does("add", path).expect_says("was added before, and is the same")
    host.does("add", "./a folder/x.wasm").expect_says("was added before, and is the same")
    host.does("add", f"file://{host.folder}/a%20folder/x.wasm").expect_says("was added before, and is the same")
    host.expect_has(x=number(7))


@test
def a_file_is_added_under_another_name(world, host):
    path = host.file("x.wasm", number(7))
    host.does("add", f"file://{path}", "--name", "seven").expect_says("added `seven`")
    host.does("add", path)
    host.expect_has(seven=number(7), x=number(7))
    host.expect_answers("seven", 7)


@test
def a_name_that_is_taken_is_not_taken_over(world, host):
    host.does("add", host.file("a/x.wasm", number(1)))
    other = host.file("b/x.wasm", number(2))
    host.refuses("add", other, says=["already", str(host.folder / "a/x.wasm"), "hint: ", "--name"])
    host.does("add", other, "--name", "y")
    host.expect_has(x=number(1), y=number(2))
    host.expect_answers("x", 1)


@test
def new_bytes_in_a_file_wait_for_an_update(world, host):
    path = host.file("x.wasm", number(1))
    host.does("add", path)
    host.file("x.wasm", number(2))
    host.expect_answers("x", 1)
    host.refuses("add", path, says=["hint: `host update x`"])
    host.does("update", "x").expect_says("updated `x`")
    host.expect_has(x=number(2))
    host.expect_answers("x", 2)


@test
def all_that_is_good_in_a_directory_is_added(world, host):
    host.file("all/a.wasm", number(1))
    host.file("all/broken.wasm", number(2)[:-9])
    host.file("all/c.wat", wat(3))
    host.file("all/page.wasm", b"<!doctype html>")
    host.file("all/README.md", b"not for hosts")
    ran = host.run("add", "all")
    expect_equal(ran.code, 1, f"the exit code of {ran}")
    ran.expect_says("broken.wasm", "page.wasm", "is not WebAssembly", "2 of 4 were not added", "added `a`", "added `c`")
    expect_equal(list(host.components()), ["a", "c"], "the list")
    host.expect_answers("a", 1)
    host.expect_answers("c", 3)
    host.refuses("add", "all", "--name", "x", says=["one by one"])


@test
def a_digest_that_is_given_has_to_be_right(world, host):
    path, right, wrong = host.file("x.wasm", number(7)), hex_digest(number(7)), hex_digest(number(8))
    host.refuses("add", path, "--sha256", wrong, says=[right, wrong, "hint: "])
    host.refuses("add", path, "--sha256", "123", says=["--sha256"])
    host.expect_has()
    host.does("add", path, "--sha256", right)
    host.does("add", path, "--sha256", f"sha256:{right}").expect_says("was added before")
    host.expect_has(x=number(7))
    host.expect_answers("x", 7)


@test
def the_digest_of_a_text_is_that_of_its_file(world, host):
    # Which is what `sha256sum` prints, and what a download of it is compared with.
    host.does("add", host.file("x.wat", wat(7)), "--sha256", digest(wat(7)))
    host.expect_answers("x", 7)


@test
def names_of_files_cannot_spoil_the_store(world, host):
    host.does("add", host.file("x.wasm", number(7)))
    host.file("all/good.wasm", number(1))
    host.file("all/line\nbreak.wasm", number(2))
    host.file("all/\udcff.wasm", number(3))
    host.run("add", "all")
    found = host.components()
    expect({"x", "good"} <= set(found), f"the list is {found}")
    host.expect_answers("x", 7)
    # What could be added can be found again.
    host.run("update", "--accept-changes").expect_says("`x` is as it was added")
    for id, component in found.items():
        expect(Path(component["source"]).exists(), f"{id} is from {component['source']!r}, which does not exist")


@test
def programs_are_added_like_components(world, host):
    host.does("add", host.file("lines.wasm", PROGRAM))
    host.expect_has(lines=PROGRAM)
    ran = host.does("call", "lines", "lines", "--args", '{"flags": {"number": true}, "stdin": "one\\n"}')
    expect_equal(ran.out, "1\tone\n", "what it prints")


@test
def what_is_no_source_is_refused_with_a_hint(world, host):
    for text, part in [
        ("nothing.wasm", "nothing.wasm"),
        ("http://127.0.0.1/x.wasm", "hint: use `https://`"),
        ("ghcr.io/user/tool:1", "hint: write `oci://ghcr.io/user/tool:1`"),
        ("https://me:secret@127.0.0.1/x.wasm", "hint: downloads are anonymous"),
        ("s3://bucket/x.wasm", "no kind of source"),
        ("", "hint: give a path"),
    ]:
        ran = host.refuses("add", text, says=[part])
        expect("secret" not in ran.err, f"the password is shown by {ran}")


# HTTPS


@test
def a_download_needs_an_authority_that_is_trusted(world, host):
    site = world.website()
    url = site.serve("/x.wasm", TEXT_TOOLS)
    host.refuses("add", url, says=["is not trusted", "hint: ", "--ca-file"])
    expect_equal(site.ranges("/x.wasm"), [], "what was sent to somebody unknown")
    host.refuses("add", url, "--ca-file", "nowhere.pem", says=["nowhere.pem", "hint: "])
    host.refuses("add", url, "--ca-file", host.file("empty.pem", b"none"), says=["empty.pem", "hint: "])
    host.does("add", url, *world.trust).expect_says("added `x`")
    host.does("add", url, "--name", "y", HOST_CA_FILE=str(world.authority.file)).expect_says("added `y`")
    host.expect_has(x=TEXT_TOOLS, y=TEXT_TOOLS)
    expect_equal(host.does("call", "x", "slugify", "title=A B").out, "a-b\n", "the answer")
    expect_equal(host.components()["x"]["source"], url, "the source")


@test
def a_certificate_has_to_be_for_the_server(world, host):
    site = Website(Authority(host.folder, names=["localhost"]))
    trust = ("--ca-file", host.folder / "ca.pem")
    url = site.serve("/x.wasm", number(7))
    host.refuses("add", url, *trust, says=["is not trusted", "127.0.0.1"])
    host.does("add", url.replace("127.0.0.1", "localhost"), *trust)
    host.expect_answers("x", 7)
    plain = Website().serve("/x.wasm", number(7)).replace("http:", "https:")
    host.refuses("add", plain, "--name", "y", *trust, says=["does not speak TLS", "hint: "])


@test
def redirects_are_followed_over_https_only(world, host):
    site, other, plain = world.website(), world.website(), Website()

    def to(target):
        return lambda request: request.reply(302, Location=target)

    end = other.serve("/files/end.wasm", number(7))
    site.serve("/relative", to("below/here"))
    site.serve("/below/here", to("../chain"))
    site.serve("/chain", to(end))
    url = site.serve("/start.wasm", to("/relative"))
    host.does("add", url, *world.trust).expect_says("added `start`")
    host.expect_has(start=number(7))
    host.expect_answers("start", 7)
    expect_equal(host.components()["start"]["source"], url, "the source, which is what the person named")

    downgrade = site.serve("/downgrade", to(plain.serve("/x.wasm", number(8))))
    host.refuses("add", downgrade, *world.trust, says=["not https", "hint: "])
    expect_equal(plain.ranges("/x.wasm"), [], "what was asked for in plain HTTP")
    site.serve("/there", to("/back"))
    host.refuses("add", site.serve("/back", to("/there")), *world.trust, says=["leads in a circle", "hint: "])
    for hop in range(9):
        site.serve(f"/hop/{hop}", to(f"/hop/{hop + 1}"))
    host.refuses("add", site.base + "/hop/0", *world.trust, says=["more than 5", "hint: "])
    for target in ["file:///etc/passwd", "https://me:secret@127.0.0.1/", "gopher://127.0.0.1/"]:
        ran = host.refuses("add", site.serve("/elsewhere", to(target)), *world.trust, says=["leads on to", "hint: "])
        expect("secret" not in ran.err, f"the password is shown by {ran}")


@test
def a_download_that_breaks_off_goes_on(world, host):
    site, data = world.website(), large(7)
    url = site.serve("/x.wasm", File(data, cut=150_000, breaks=2))
    host.does("add", url, *world.trust)
    expect_equal(site.ranges("/x.wasm"), [None, "bytes=150000-", "bytes=300000-"], "what was asked for")
    host.expect_has(x=data)
    host.expect_answers("x", 7)


@test
def a_download_goes_on_in_the_next_process(world, host):
    site, data = world.website(), large(7)
    file = File(data, cut=50_000, breaks=ATTEMPTS)
    url = site.serve("/x.wasm", file)
    host.refuses("add", url, *world.trust, says=[url, "hint: try again"])
    expect_equal(file.breaks, 0, "how often it could still have broken off")
    host.does("add", url, *world.trust).expect_says("added `x`")
    kept = [f"bytes={start}-" for start in range(50_000, (ATTEMPTS + 1) * 50_000, 50_000)]
    expect_equal(site.ranges("/x.wasm"), [None, *kept], "what was asked for")
    host.expect_has(x=data)
    host.expect_answers("x", 7)


@test
def a_download_starts_over_when_the_file_has_changed(world, host):
    site = world.website()
    url = site.serve("/x.wasm", File(large(1), cut=50_000, breaks=ATTEMPTS))
    host.refuses("add", url, *world.trust, says=["hint: try again"])
    site.serve("/x.wasm", File(large(2)))
    host.does("add", url, *world.trust)
    expect_equal(site.ranges("/x.wasm")[-1], f"bytes={ATTEMPTS * 50_000}-", "what was asked for at last")
    host.expect_has(x=large(2))
    host.expect_answers("x", 2)

    # A server that pays no heed to If-Range, and sends the end of another file.
    url = site.serve("/y.wasm", File(large(3), cut=50_000, breaks=ATTEMPTS, careless=True))
    host.refuses("add", url, *world.trust, says=["hint: try again"])
    site.serve("/y.wasm", File(large(4), careless=True))
    host.does("add", url, *world.trust)
    expect_equal(site.ranges("/y.wasm")[-2:], [f"bytes={ATTEMPTS * 50_000}-", None], "what was asked for at last")
    host.expect_has(x=large(2), y=large(4))
    host.expect_answers("y", 4)


@test
def a_download_that_cannot_be_continued_safely_starts_over(world, host):
    site, data, answers = world.website(), large(7), []

    def without_validator(request):
        answers.append(request)
        request.reply(200, data[:50_000] if len(answers) < 3 else data, Content_Length=len(data))

    host.does("add", site.serve("/x.wasm", without_validator), *world.trust)
    expect_equal(site.ranges("/x.wasm"), [None, None, None], "what was asked for")
    host.expect_has(x=data)
    host.expect_answers("x", 7)


@test
def a_slow_download_takes_its_time(world, host):
    site, data = world.website(), large(7, size=4000)

    def drip(request):
        request.reply(200, Content_Length=len(data))
        for start in range(0, len(data), 200):
            request.wfile.write(data[start : start + 200])
            time.sleep(0.1)

    host.does("add", site.serve("/x.wasm", drip), *world.trust)
    expect_equal(len(site.ranges("/x.wasm")), 1, "the number of requests")
    host.expect_has(x=data)
    host.expect_answers("x", 7)


@test
def a_length_that_is_not_true_adds_nothing(world, host):
    site, data = world.website(), number(7)

    def too_short(request):
        request.reply(200, data, Content_Length=len(data) + 10)

    def too_long(request):
        request.reply(200, data + b"more", Content_Length=len(data) - 10)

    def huge(request):
        request.reply(200, data, Content_Length=513 << 20)

    host.refuses("add", site.serve("/short.wasm", too_short), *world.trust, says=["short.wasm", "hint: try again"])
    host.refuses("add", site.serve("/long.wasm", too_long), *world.trust, says=["long.wasm"])
    host.refuses("add", site.serve("/huge.wasm", huge), *world.trust, says=["larger than 512MiB"])
    expect_equal(len(site.ranges("/huge.wasm")), 1, "how often something too large was asked for")
    host.expect_has()


@test
def an_answer_without_a_length_is_taken_to_its_end(world, host):
    site, data = world.website(), large(7)

    def chunked(request):
        chunks = [data[start : start + 65_000] for start in range(0, len(data), 65_000)] + [b""]
        request.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for chunk in chunks:
            request.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")

    host.does("add", site.serve("/x.wasm", chunked), *world.trust)
    host.expect_has(x=data)
    host.expect_answers("x", 7)


@test
def what_is_no_component_adds_nothing(world, host):
    site = world.website()
    page = site.serve("/page.wasm", b"<!doctype html><title>Log in</title>")
    host.refuses("add", page, *world.trust, says=["page", "is not WebAssembly", "<!doctype html>"])
    host.refuses("add", site.base + "/none.wasm", *world.trust, says=["status 404", "hint: check the URL"])
    for status, part in [(500, "hint: the server has a problem"), (403, "hint: downloads are anonymous"), (204, "hint: ")]:
        url = site.serve("/status.wasm", lambda request, status=status: request.reply(status))
        host.refuses("add", url, *world.trust, says=[f"status {status}", part])
    encoded = site.serve("/encoded.wasm", lambda request: request.reply(200, number(7), Content_Encoding="gzip"))
    host.refuses("add", encoded, *world.trust, says=["compressed", "hint: "])
    host.refuses("add", site.serve("/empty.wasm", b""), *world.trust, says=["empty"])
    site.stop()
    host.refuses("add", page, *world.trust, says=["could not be reached", "hint: "])
    host.expect_has()


@test
def a_problem_with_the_bytes_names_where_they_are_from(world, host):
    page = host.file("page.wasm", b"<html>")
    world.registry.push_with_oras("problem:1", (page, WASM))
    for source in [str(page), world.website().serve("/page.wasm", b"<html>"), world.registry.url("problem:1")]:
        host.refuses("add", source, *world.trust, says=[source, "is not WebAssembly"])


@test
def a_download_with_another_digest_adds_nothing(world, host):
    site = world.website()
    url = site.serve("/x.wasm", number(7))
    right, wrong = hex_digest(number(7)), hex_digest(number(8))
    host.refuses("add", url, *world.trust, "--sha256", wrong, says=[right, wrong, "hint: "])
    host.does("add", url, *world.trust, "--sha256", right)
    host.expect_has(x=number(7))
    host.expect_answers("x", 7)


@test
def a_query_is_a_secret(world, host):
    site = world.website()
    url = site.serve("/x.wasm?token=s3cret", number(7))
    for ran in [
        host.does("add", url, *world.trust),
        host.refuses("add", site.base + "/y.wasm?token=s3cret", *world.trust, says=["status 404"]),
        host.does("list"),
        host.does("update", *world.trust),
    ]:
        expect("s3cret" not in ran.out + ran.err, f"the token is shown by {ran}")
    host.expect_answers("x", 7)


@test
def text_is_for_files_only(world, host):
    site = world.website()
    url = site.serve("/x.wat", wat(7))
    host.refuses("add", url, *world.trust, says=[f"what came from {url} cannot be used", "is not WebAssembly"])


# Registries


@test
def what_is_pushed_can_be_added_by_tag_and_by_digest(world, host):
    for registry, options in [(world.registry, ()), (world.private, world.trust)]:
        name = "team/tools" if registry is world.registry else "team/private"
        path = host.file("tools.wasm", TEXT_TOOLS)
        ran = host.does("push", path, registry.url(f"{name}:1"), *options)
        pinned = ran.out.split()[-1]
        expect(pinned.startswith(registry.url(f"{name}:1@sha256:")), f"no reference in {ran}")
        id = name.split("/")[1]
        host.does("add", registry.url(f"{name}:1"), *options).expect_says(f"added `{id}`")
        host.does("add", pinned, "--name", f"{id}-pinned", *options)
        host.does("add", registry.url(f"{name}@{pinned.split('@')[1]}"), "--name", f"{id}-digest", *options)
        for id, is_pinned in [(id, False), (f"{id}-pinned", True), (f"{id}-digest", True)]:
            info = host.info(id)
            expect_equal(info["manifest"], pinned.split("@")[1], "the manifest")
            expect_equal((info["pinned"], info["digest"]), (is_pinned, digest(TEXT_TOOLS)), "what is known of it")
            expect_equal(host.does("call", id, "slugify", "title=A B").out, "a-b\n", "the answer")


@test
def what_was_not_added_can_be_looked_at(world, host):
    def tools(target, *options):
        items = json.loads(host.does("catalog", target, "--json", *options).out)["items"]
        # Its resources have its id in their names, which comes from its source.
        return [item["name"] for item in items if item["type"] == "tool"]

    path = host.file("tools.wasm", TEXT_TOOLS)
    for registry, options in [(world.registry, ()), (world.private, world.trust)]:
        url = registry.url("team/looked-at:1")
        host.does("push", path, url, *options)
        expect_equal(tools(url, *options), tools(path), "the tools")
    host.does("catalog", f"file://{path}").expect_says("example_text_tools_slugify")
    host.refuses("call", world.registry.url("team/looked-at:1"), "slugify", says=["has to be added", "hint: `host add"])
    expect("tools" not in host.does("list").out, "looking at it added it")


@test
def what_was_added_can_be_pushed(world, host):
    host.does("add", host.file("x.wasm", number(7)))
    host.does("add", host.file("lines.wasm", PROGRAM))
    for id in ["x", "lines"]:
        host.does("push", id, world.registry.url(f"pushed/{id}"))
        host.does("add", world.registry.url(f"pushed/{id}:latest"), "--name", f"again-{id}")
    host.expect_has(**{"x": number(7), "again-x": number(7), "lines": PROGRAM, "again-lines": PROGRAM})
    host.expect_answers("again-x", 7)
    pushed = world.registry.pull_with_oras("pushed/x:latest", host.folder / "pulled")
    expect(pushed == [number(7)], "oras pulls something else than what was pushed")


@test
def text_is_pushed_as_a_binary(world, host):
    host.does("push", host.file("x.wat", wat(7)), world.registry.url("text:1"))
    [pulled] = world.registry.pull_with_oras("text:1", host.folder / "pulled")
    expect(pulled.startswith(b"\0asm"), f"text was pushed: {pulled[:40]}")
    host.does("add", world.registry.url("text:1"))
    host.expect_answers("text", 7)


@test
def what_cannot_be_pushed_is_refused(world, host):
    path = host.file("x.wasm", number(7))
    host.refuses("push", path, world.registry.url(f"x@{digest(number(7))}"), says=["hint: leave out the `@sha256:"])
    host.refuses("push", path, host.folder / "y.wasm", says=["hint: write `oci://"])
    host.refuses("push", "nobody", world.registry.url("x:1"), says=["nobody"])
    host.refuses("push", host.file("page.wasm", b"<html>"), world.registry.url("x:1"), says=["is not WebAssembly"])
    host.refuses("push", path, "oci://127.0.0.1:1/x:1", says=["could not be reached", "hint: "])


@test
def what_oras_pushed_can_be_added(world, host):
    for registry, options in [(world.registry, ()), (world.private, world.trust)]:
        registry.push_with_oras("by-oras/plain:1", (host.file("tools.wasm", TEXT_TOOLS), WASM))
        name = f"plain-{len(options)}"
        host.does("add", registry.url("by-oras/plain:1"), "--name", name, *options).expect_says(f"added `{name}`")
        expect_equal(host.does("call", name, "slugify", "title=A B").out, "a-b\n", "the answer")
    host.expect_has(**{"plain-0": TEXT_TOOLS, "plain-2": TEXT_TOOLS})


@test
def a_policy_that_comes_along_is_shown_and_not_applied(world, host):
    wanted = 'version: "1.0"\npermissions:\n  storage:\n    allow:\n      - uri: "fs:///etc"\n        access: ["read", "write"]\n'
    policy = host.file("policy.yaml", wanted.encode())
    world.registry.push_with_oras("by-oras/policy:1", (host.file("x.wasm", number(7)), WASM), (policy, POLICY))
    ran = host.does("add", world.registry.url("by-oras/policy:1"))
    ran.expect_says("a policy", POLICY, 'uri: "fs:///etc"', "unless you grant it")
    expect_equal(host.info("policy")["grants"], [], "the grants")
    host.does("info", "policy").expect_says("grants   none")
    host.expect_has(policy=number(7))
    host.expect_answers("policy", 7)


@test
def what_comes_along_cannot_write_to_the_terminal(world, host):
    policy = host.file("\x1b[31mpolicy.yaml", b"a: \x1b[2J\x1b]0;owned\x07 \xe2\x80\xae gnihton\rnote: it is harmless\n")
    world.registry.push_with_oras("by-oras/rude:1", (host.file("x.wasm", number(7)), WASM), (policy, POLICY))
    ran = host.does("add", world.registry.url("by-oras/rude:1"))
    ran.expect_says("a policy")
    for character in "\x1b\x07\r\u202e":
        expect(character not in ran.out + ran.err, f"{character!r} of a stranger is printed by {ran.command}: {ran.err!r}")


@test
def artifacts_that_are_not_clear_are_refused(world, host):
    x, y, readme = host.file("x.wasm", number(1)), host.file("y.wasm", number(2)), host.file("readme.md", b"# Hello")
    world.registry.push_with_oras("unclear/two:1", (x, WASM), (y, WASM))
    says = ["more than one WebAssembly layer", "x.wasm", "y.wasm", "hint: "]
    host.refuses("add", world.registry.url("unclear/two:1"), says=says)
    world.registry.push_with_oras("unclear/none:1", (readme, "text/markdown"))
    host.refuses("add", world.registry.url("unclear/none:1"), says=["no WebAssembly", "readme.md", "hint: "])
    world.registry.push_with_oras("unclear/page:1", (host.file("page.wasm", b"<html>"), WASM))
    host.refuses("add", world.registry.url("unclear/page:1"), says=["is not WebAssembly", "page"])
    for missing in ["unclear/two:2", "unclear/nobody:1", f"unclear/two@{digest(b'')}"]:
        url = world.registry.url(missing)
        host.refuses("add", url, says=[f"there is no `{url.removeprefix('oci://')}`", "hint: check the name and the tag"])
    world.registry.push_with_oras("unclear/right:1", (x, WASM))
    right, wrong = hex_digest(number(1)), hex_digest(number(2))
    host.refuses("add", world.registry.url("unclear/right:1"), "--sha256", wrong, says=[right, wrong, "hint: "])
    host.expect_has()


@test
def a_registry_of_a_private_authority_has_to_be_trusted(world, host):
    path, url = host.file("x.wasm", number(7)), world.private.url("trusted:1")
    host.refuses("push", path, url, says=["is not trusted", "hint: ", "--ca-file"])
    host.does("push", path, url, HOST_CA_FILE=str(world.authority.file))
    host.refuses("add", url, says=["is not trusted", "hint: ", "--ca-file"])
    host.does("add", url, HOST_CA_FILE=str(world.authority.file))
    host.refuses("update", code=1, says=["is not trusted", "hint: ", "--ca-file"])
    host.expect_has(trusted=number(7))
    host.expect_answers("trusted", 7)


@test
def credentials_come_from_docker_or_the_environment(world, host):
    address, path = world.locked.address, host.file("x.wasm", number(7))
    docker = docker_config(host.folder / "docker", address)
    given = {"HOST_REGISTRY": address, "HOST_REGISTRY_USERNAME": USER, "HOST_REGISTRY_PASSWORD": PASSWORD}
    for name, login in [("docker", docker), ("given", given)]:
        host.does("push", path, world.locked.url(f"{name}:1"), **login)
        host.does("add", world.locked.url(f"{name}:1"), **login)
        host.does("update", name, **login).expect_says("is as it was added")
        host.expect_answers(name, 7)
    host.expect_has(docker=number(7), given=number(7))


@test
def missing_and_wrong_credentials_are_refused_with_a_hint(world, host):
    address, path, url = world.locked.address, host.file("x.wasm", number(7)), world.locked.url("denied:1")
    wrong_docker = docker_config(host.folder / "docker", address, password="s3cret")
    elsewhere = docker_config(host.folder / "elsewhere", "127.0.0.1:1")
    password = {"HOST_REGISTRY_USERNAME": USER, "HOST_REGISTRY_PASSWORD": "s3cret"}
    broken = host.file("broken/config.json", b"{").parent
    for login, part in [
        ({}, "somebody without credentials"),
        (wrong_docker, wrong_docker["DOCKER_CONFIG"]),
        (elsewhere, "somebody without credentials"),
        ({"HOST_REGISTRY": address, **password}, "HOST_REGISTRY"),
        ({"HOST_REGISTRY": "ghcr.io", **password}, "somebody without credentials"),
        (password, "somebody without credentials"),
        ({"DOCKER_CONFIG": str(broken)}, "config.json"),
    ]:
        for command in [("push", path, url), ("add", url)]:
            ran = host.refuses(*command, **login, says=[address, part, "hint: ", f"`docker login {address}`"])
            expect("s3cret" not in ran.out + ran.err, f"the password is shown by {ran}")
    host.expect_has()


# Updates


class Published:
    """One component at a place where it can be replaced."""

    def __init__(self, world, host, id, over):
        self.host, self.id, self.registry = host, id, world.registry
        if over == "https":
            self.site, self.options = world.website(), world.trust
            self.url = f"{self.site.base}/{id}.wasm"
        else:
            # Tests share the registry.
            self.site, self.options = None, ()
            self.url = world.registry.url(f"{host.folder.name.replace('_', '-')}/{id}:1")

    def publish(self, data):
        """Returns what can be given after `@`, if it is in a registry."""
        if self.site:
            self.site.serve(f"/{self.id}.wasm", File(data))
            return None
        return self.host.does("push", self.host.file("published.wasm", data), self.url).out.strip().split("@")[1]


def over_both(function):
    """The same for a component from a website and for one from a registry."""
    for over in ["https", "oci"]:

        def run(world, host, over=over):
            function(host, lambda id: Published(world, host, id, over))

        run.__name__ = f"{function.__name__}_over_{over}"
        TESTS.append(run)
    return function


@over_both
def new_bytes_with_the_same_tools_are_taken(host, published):
    x = published("x")
    x.publish(number(1))
    host.does("add", x.url, *x.options)
    host.does("update", *x.options).expect_says("`x` is as it was added")
    x.publish(number(2))
    host.expect_answers("x", 1)
    host.refuses("add", x.url, *x.options, says=["hint: `host update x`"])
    ran = host.does("update", "x", *x.options)
    ran.expect_says("what agents see of it stays the same", "updated `x`", hex_digest(number(1)), hex_digest(number(2)))
    host.expect_has(x=number(2))
    host.expect_answers("x", 2)
    expect(host.info("x")["updatedAt"], "it does not say when it was updated")
    host.does("update", "x", *x.options).expect_says("`x` is as it was added")


@over_both
def changed_tools_are_shown_and_wait_for_consent(host, published):
    x = published("x")
    x.publish(number(1))
    host.does("add", x.url, *x.options)
    x.publish(number(2, name="other"))
    ran = host.run("update", "x", *x.options)
    expect_equal(ran.code, 1, f"the exit code of {ran}")
    ran.expect_says("+ tool `other`", "- tool `number`", "hint: ", "--accept-changes")
    host.expect_has(x=number(1))
    expect_equal(host.tools("x"), ["number"], "the tools before consent")
    host.expect_answers("x", 1)
    host.does("update", "x", "--accept-changes", *x.options).expect_says("updated `x`")
    host.expect_has(x=number(2, name="other"))
    expect_equal(host.tools("x"), ["other"], "the tools after consent")
    host.expect_answers("x", 2, tool="other")


@over_both
def a_person_is_asked_for_consent(host, published):
    x = published("x")
    x.publish(number(1))
    host.does("add", x.url, *x.options)
    x.publish(number(2, wide=True))
    for answer in ["n", "", "maybe"]:
        code, shown = host.asked("update", "x", *x.options, answer=answer)
        expect_equal(code, 1, f"the exit code after `{answer}` and {shown}")
        expect("~ tool `number`" in shown and "func() -> s64" in shown, f"the change is not shown: {shown}")
        host.expect_has(x=number(1))
    code, shown = host.asked("update", "x", *x.options, answer="y")
    expect_equal(code, 0, f"the exit code after `y` and {shown}")
    host.expect_has(x=number(2, wide=True))
    host.expect_answers("x", 2)


@over_both
def grants_are_for_the_bytes_that_they_were_given_to(host, published):
    x = published("x")
    x.publish(number(1))
    granted = host.folder / "granted"
    granted.mkdir()

    def grants():
        return [grant["host"] for grant in host.info("x")["grants"]]

    host.does("add", x.url, f"--allow-read={granted}", *x.options)
    host.does("update", "x", *x.options)
    expect_equal(grants(), [str(granted)], "the grants of the same bytes")
    x.publish(number(2))
    host.does("update", "x", "--keep-grants", *x.options)
    expect_equal(grants(), [str(granted)], "the grants that were kept")
    x.publish(number(3))
    host.does("update", "x", *x.options).expect_says("has lost what was granted", "hint: ")
    expect_equal(grants(), [], "the grants of new bytes")
    host.expect_has(x=number(3))

    # As the hint says.
    host.does("add", x.url, "--name", "x", f"--allow-read={granted}", *x.options)
    expect_equal(grants(), [str(granted)], "the grants that were given again")
    for version, answer, kept in [(4, "y", [str(granted)]), (5, "n", [])]:
        x.publish(number(version))
        code, shown = host.asked("update", "x", *x.options, answer=answer)
        expect(code == 0 and str(granted) in shown, f"the person is not asked for {granted}: {shown}")
        expect_equal(grants(), kept, f"the grants after `{answer}`")
    host.expect_has(x=number(5))
    host.expect_answers("x", 5)


@over_both
def a_given_digest_stays(host, published):
    x = published("x")
    manifest = x.publish(number(1))
    host.does("add", x.url, "--sha256", digest(number(1)), *x.options)
    expected = {"x": number(1)}
    if manifest:
        repository = x.url.removesuffix(":1")
        host.does("add", f"{repository}@{manifest}", "--name", "pinned")
        host.does("add", f"{repository}:1@{manifest}", "--name", "both")
        expected |= {"pinned": number(1), "both": number(1)}
    x.publish(number(2))
    for id in expected:
        host.does("update", id, *x.options).expect_says(f"`{id}` is pinned to its digest, and stays")
        host.does("info", id).expect_says("(pinned)")
        host.expect_answers(id, 1)
    host.expect_has(**expected)


@over_both
def a_digest_that_is_given_later_counts_too(host, published):
    x = published("x")
    x.publish(number(1))
    host.does("add", x.url, *x.options)
    host.does("add", x.url, "--sha256", digest(number(1)), *x.options)
    expect(host.info("x")["pinned"], "the digest is forgotten")
    x.publish(number(2))
    host.does("update", "x", *x.options).expect_says("`x` is pinned to its digest, and stays")
    host.expect_has(x=number(1))
    host.expect_answers("x", 1)


@over_both
def a_damaged_file_is_fetched_again(host, published):
    x = published("x")
    x.publish(number(1))
    for id, pin in [("x", ()), ("pinned", ("--sha256", digest(number(1))))]:
        host.does("add", x.url, "--name", id, *pin, *x.options)
        [file] = host.home.glob(f"components/{hex_digest(number(1))}*")
        file.chmod(0o600)
        file.write_bytes(b"damaged")
        expect_equal(host.run("verify").code, 1, "the exit code of verify")
        host.does("update", id, *x.options)
        host.does("verify")
        host.expect_answers(id, 1)
    host.expect_has(x=number(1), pinned=number(1))


@over_both
def one_that_is_gone_keeps_no_other_from_being_updated(host, published):
    gone, here = published("gone"), published("here")
    for one in [gone, here]:
        one.publish(number(1))
        host.does("add", one.url, *one.options)
    if gone.site:
        gone.site.stop()
    else:
        gone.registry.forget(gone.url)
    here.publish(number(2))
    ran = host.run("update", *here.options)
    expect_equal(ran.code, 1, f"the exit code of {ran}")
    ran.expect_says("`gone` was not updated", "updated `here`")
    host.expect_has(gone=number(1), here=number(2))
    host.expect_answers("gone", 1)
    host.expect_answers("here", 2)
    host.refuses("update", "nobody", says=["nobody"])


@test
def a_tag_that_has_not_moved_costs_no_layer(world, host):
    url = world.registry.url("counted:1")
    host.does("push", host.file("x.wasm", number(1)), url)
    host.does("add", url)
    layers = world.registry.requests("GET /v2/counted/blobs/")
    expect_equal(layers, 1, "the number of layers that were fetched to add it")
    host.does("update").expect_says("is as it was added")
    expect_equal(world.registry.requests("GET /v2/counted/blobs/"), layers, "the number of layers after an update")
    host.does("push", host.file("x.wasm", number(2)), url)
    host.does("update").expect_says("updated `counted`")
    expect_equal(world.registry.requests("GET /v2/counted/blobs/"), layers + 1, "the number of layers after the tag moved")
    host.expect_has(counted=number(2))
    host.expect_answers("counted", 2)


@test
def the_same_bytes_in_a_new_manifest_are_fetched_once(world, host):
    url, policy = world.registry.url("again:1"), host.file("policy.yaml", b"wants: everything")
    x = host.file("x.wasm", number(1))
    world.registry.push_with_oras("again:1", (x, WASM))
    host.does("add", url)
    world.registry.push_with_oras("again:1", (x, WASM), (policy, POLICY))
    host.does("update")
    layers = world.registry.requests("GET /v2/again/blobs/")
    host.does("update").expect_says("is as it was added")
    expect_equal(world.registry.requests("GET /v2/again/blobs/"), layers, "the number of layers after another update")
    expect_equal(host.info("again")["grants"], [], "the grants")
    host.expect_has(again=number(1))
    host.expect_answers("again", 1)


# Starting


@test
def all_that_was_added_is_served_without_a_network(world, host):
    site, registry = world.website(), Registry(host.folder / "registry")
    host.does("add", site.serve("/tools.wasm", TEXT_TOOLS), *world.trust)
    host.does("push", host.file("lines.wasm", PROGRAM), registry.url("lines:1"))
    host.does("add", registry.url("lines:1"))
    file = host.file("seven.wasm", number(7))
    host.does("add", file)
    site.stop()
    registry.stop()
    file.unlink()

    async def serve():
        server = StdioServerParameters(command=os.environ["HOST_BIN"], args=["serve"], env={"HOST_HOME": str(host.home)})
        async with Client(server, read_timeout_seconds=60) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            expect(tools >= {"number", "lines", "example_text_tools_slugify"}, f"the tools are {tools}")
            for tool, arguments, result in [
                ("number", {}, 7),
                ("example_text_tools_slugify", {"title": "A B"}, "a-b"),
                ("lines", {"stdin": "one\n"}, {"stdout": "one\n", "stderr": "", "exitCode": 0}),
            ]:
                answer = await client.call_tool(tool, arguments)
                expect_equal(answer.structured_content, {"result": result}, f"the result of {tool}")

    asyncio.run(serve())
    host.expect_has(lines=PROGRAM, seven=number(7), tools=TEXT_TOOLS)
    host.does("verify")


def server_of(host, *options):
    arguments = ["serve", *options]
    return StdioServerParameters(command=os.environ["HOST_BIN"], args=arguments, env={"HOST_HOME": str(host.home)})


class Heard:
    """What a client was told, in either era of the protocol."""

    def __init__(self):
        self.changes = asyncio.Queue()

    async def notified(self, message):
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            await self.changes.put(message)

    async def listen(self, client):
        async with client.listen(tools_list_changed=True) as events:
            await self.changes.put("listening")
            async for event in events:
                await self.changes.put(event)

    async def one(self):
        await asyncio.wait_for(self.changes.get(), 60)
        expect(self.changes.empty(), "more than one change was told")


async def with_client(host, era, options, use):
    heard = Heard()
    # The client hands events of a subscription to this handler as well.
    handler = heard.notified if era == "legacy" else None
    async with Client(server_of(host, *options), mode=era, message_handler=handler, read_timeout_seconds=60) as client:
        listening = None
        if era == "2026-07-28":
            listening = asyncio.create_task(heard.listen(client))
            await heard.one()
        await use(client, heard)
        if listening:
            listening.cancel()
            await asyncio.wait([listening])


async def names(client):
    return {tool.name for tool in (await client.list_tools()).tools}


@test
def an_official_client_hears_of_every_change(world, host):
    for era in ["legacy", "2026-07-28"]:
        host.does("add", host.file("one.wasm", number(1, "one")))

        async def use(client, heard):
            expect_equal(await names(client), {"one"}, "the tools")
            host.does("add", host.file("two.wasm", number(2, "two")))
            await heard.one()
            expect_equal(await names(client), {"one", "two"}, "the tools")
            host.file("two.wasm", number(3, "two"))
            host.does("update", "two")
            await heard.one()
            answer = await client.call_tool("two", {})
            expect_equal(answer.structured_content, {"result": 3}, "the result")
            host.does("remove", "two")
            await heard.one()
            expect_equal(await names(client), {"one"}, "the tools")

        asyncio.run(with_client(host, era, ["--watch"], use))
        host.does("remove", "one")


@test
def an_official_client_manages_what_it_may(world, host):
    file = host.file("allowed/two.wasm", number(2, "two"))
    folder = Path(file).parent.resolve()
    host.config(f'[agent]\nsources = ["{folder}/*"]\ndirectories = ["{folder}"]\n')
    for era in ["legacy", "2026-07-28"]:

        async def use(client, heard):
            async def manage(tool, **arguments):
                answer = await client.call_tool(tool, arguments)
                return answer.is_error, answer.structured_content and answer.structured_content["result"]

            is_error, loaded = await manage("load_component", source=str(folder / "two.wasm"))
            expect_equal((is_error, loaded["outcome"]), (False, "added"), "loading")
            await heard.one()
            answer = await client.call_tool("two", {})
            expect_equal(answer.structured_content, {"result": 2}, "the result")
            permission = {"kind": "read", "host": str(folder)}
            is_error, policy = await manage("grant_permission", id="two", permission=permission)
            expect_equal((is_error, len(policy["grants"])), (False, 1), "granting")
            expect((await manage("load_component", source="/etc/hostname"))[0], "what is not allowed was loaded")
            is_error, _ = await manage("unload_component", id="two")
            expect(not is_error, "it was not unloaded")
            await heard.one()
            expect("two" not in await names(client), "it is still there")

        asyncio.run(with_client(host, era, ["--allow-agent-admin"], use))


def main():
    only = sys.argv[1:]
    world, passed, failed = World(), 0, 0
    for function in TESTS:
        if only and not any(part in function.__name__ for part in only):
            continue
        start, outcome = time.monotonic(), "ok"
        folder = WORK / function.__name__
        folder.mkdir()
        try:
            function(world, Host(folder))
            passed += 1
        except Exception as error:
            failed += 1
            # The client's task groups wrap what happened.
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            outcome = f"FAIL: {error or repr(error)}"
        print(f"{function.__name__.replace('_', ' ')}: {outcome}, {time.monotonic() - start:.1f} s", flush=True)
    print(f"{passed} passed, {failed} failed")
    # To run nothing is a mistake of the caller, not a success.
    return failed > 0 or passed == 0


sys.exit(main())
