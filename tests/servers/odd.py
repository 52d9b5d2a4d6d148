"""odd.py BEHAVIOUR [ARGUMENT...]: a server over pipes that is odd in the one way that is asked for. It needs nothing but Python.

Behaviours are the classes below. What is the same for all is in `Server`.
"""

import json
import os
import signal
import subprocess
import sys
import time

# What a terminal obeys, and what makes text look like other text: a title, a cleared screen, red, an eight-bit control, a bell, going back
# over what was shown, a right-to-left override, an isolate, and letters that nobody sees.
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x9b1mbold\rover\x08\u202eesrever\u2066\U000e0041seen"
OBJECT = {"type": "object"}


def tool(name, **more):
    return {"name": name, "inputSchema": OBJECT} | more


def text(text, **more):
    return {"content": [{"type": "text", "text": text}]} | more


class Refusal(Exception):
    pass


class Server:
    """One that does as it should."""

    tools = [tool("fine", description="Works.")]
    capabilities = {"tools": {}}
    info = {"name": "odd", "version": "1"}

    def run(self):
        for line in sys.stdin:
            self.receive(json.loads(line))

    def receive(self, message):
        if "method" not in message or "id" not in message:
            return
        try:
            self.send(id=message["id"], result=self.answer(message["method"], message.get("params") or {}))
        except Refusal as refusal:
            code, reason = refusal.args
            self.send(id=message["id"], error={"code": code, "message": reason})

    def answer(self, method, params):
        match method:
            case "initialize":
                return {"protocolVersion": params["protocolVersion"], "capabilities": self.capabilities, "serverInfo": self.info}
            case "tools/list":
                return self.page("tools", self.tools, params)
            case "tools/call":
                return self.call(params["name"], params.get("arguments"))
            case "ping":
                return {}
        raise Refusal(-32601, f"no method {method}")

    def page(self, key, entries, params):
        return {key: entries}

    def call(self, name, arguments):
        return text(f"{name} {json.dumps(arguments)}")

    def send(self, **message):
        self.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")

    def write(self, line):
        sys.stdout.write(line)
        sys.stdout.flush()


# What is in the lists


class Lists(Server):
    """One that has all lists, in the class attribute of each."""

    resources, resource_templates, prompts = [], [], []
    capabilities = {"tools": {}, "resources": {}, "prompts": {}}

    def answer(self, method, params):
        match method:
            case "resources/list":
                return self.page("resources", self.resources, params)
            case "resources/templates/list":
                return self.page("resourceTemplates", self.resource_templates, params)
            case "prompts/list":
                return self.page("prompts", self.prompts, params)
        return super().answer(method, params)


class MissingFields(Lists):
    tools = [
        {},
        {"name": "no-schema"},
        {"inputSchema": OBJECT, "description": "no name"},
        {"name": 5, "title": ["a"], "description": {"b": 1}, "inputSchema": OBJECT},
        {"name": "odd-parts", "inputSchema": OBJECT, "annotations": "none", "icons": 7, "_meta": [1], "execution": "yes"},
        None,
        "just a name",
        tool("fine"),
    ]
    resources = [{}, {"uri": "a://b"}, {"name": "no-uri"}, {"uri": 1, "name": "odd-uri", "size": -1, "mimeType": 3}]
    resource_templates = [{}, {"name": "no-template"}, {"name": "unclosed", "uriTemplate": "a://{b"}]
    prompts = [{}, {"name": "odd-arguments", "arguments": "none"}, {"name": "nameless", "arguments": [{"required": True}, 3]}]


class NoName(Server):
    info = {}


class BadSchemas(Server):
    """Each schema is bad in its own way; one asks for what is at the address in the argument."""

    def __init__(self, address):
        schemas = {
            "type-unknown": {"type": "objekt"},
            "not-a-schema": "object",
            "list": [],
            "no-object": {"type": "string"},
            "bad-pattern": {"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}},
            "no-such-reference": {"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}},
            "elsewhere": {"type": "object", "properties": {"a": {"$ref": address}}},
        }
        self.tools = [tool(name, inputSchema=schema) for name, schema in schemas.items()]
        self.tools += [tool("bad-output", outputSchema={"type": "objekt"}), tool("fine")]


class SlowSchemas(Server):
    """Schemas that take for ever: a pattern that goes back and forth, references that each double the work, one to itself."""

    pattern = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    definitions = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)} | {"d40": {"type": "string"}}
    doubling = {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions}
    tools = [tool("pattern", inputSchema=pattern), tool("doubling", inputSchema=doubling), tool("itself", inputSchema={"$ref": "#"})]


class Deep(Server):
    """A schema that is nested deeper than most programs can read."""

    def __init__(self):
        self.tools = [tool("deep", inputSchema="SCHEMA"), tool("fine")]
        # As text, because Python does not write what is nested so deeply either.
        self.schema = '{"properties": {"a": ' * 5000 + "{}" + "}}" * 5000

    def write(self, line):
        super().write(line.replace('"SCHEMA"', self.schema))


class UnknownThings(Lists):
    """Fields, capabilities and contents of protocols that are not written yet."""

    tools = [
        tool("fine", kind="agent", costs={"per": "call", "of": 9007199254740993}),
        tool("hologram"),
    ]
    resources = [{"uri": "a://b", "name": "b", "kind": "stream", "children": [{"uri": "a://b/c"}]}]
    prompts = [{"name": "p", "arguments": [{"name": "a", "choices": ["x"]}], "tone": "kind"}]
    capabilities = Lists.capabilities | {"agents": {"listChanged": True}, "experimental": {"x": {"y": 1}}}
    info = Server.info | {"mood": "good"}

    def call(self, name, arguments):
        content = [{"type": "text", "text": "before"}, {"type": "hologram", "beams": [1]}, {"type": "text", "text": "after"}]
        return {"content": content, "structure": 1}


class Numbers(Server):
    """Numbers that a program loses that has only 64-bit floats."""

    limits = {"minimum": -9223372036854775808, "maximum": 18446744073709551615, "multipleOf": 0.1, "default": 9007199254740993}
    tools = [tool("fine", inputSchema={"type": "object", "properties": {"n": {"type": "integer"} | limits | {"multipleOf": 1}}})]


class Twins(Lists):
    tools = [tool("twin", description="the first"), tool("twin", description="the second"), tool("other")]
    resources = [{"uri": "a://1", "name": "same"}, {"uri": "a://2", "name": "same"}]


class Hostile(Lists):
    info = {"name": f"name{HOSTILE}", "version": HOSTILE, "title": HOSTILE}
    tools = [
        tool("fine", title=HOSTILE, description=HOSTILE, inputSchema={"type": "object", "properties": {"a": {"description": HOSTILE}}}),
        tool(f"name{HOSTILE}", description="| cell | <script>alert(1)</script> ![](http://127.0.0.1/x)\n# heading\n```\nopen"),
        tool("wrong", description=HOSTILE),
        tool("error"),
    ]
    resources = [{"uri": f"a://{HOSTILE}", "name": f"resource{HOSTILE}", "description": HOSTILE}]
    prompts = [{"name": f"prompt{HOSTILE}", "arguments": [{"name": HOSTILE, "description": HOSTILE}]}]

    def call(self, name, arguments):
        match name:
            case "error":
                raise Refusal(-32000, f"refused{HOSTILE}")
            case "wrong":
                return text(f"wrong{HOSTILE}", isError=True)
        return {"content": [{"type": "text", "text": f"text{HOSTILE}"}, {"type": "image", "data": "", "mimeType": HOSTILE}]}


# How lists are cut into pages


class Pages(Server):
    """1,000 tools, 37 at a time."""

    tools = [tool(f"tool-{n:04}", description=f"Number {n}.") for n in range(1000)]

    def page(self, key, entries, params):
        start = int(params.get("cursor", "0"))
        page = {key: entries[start : start + 37]}
        return page | {"nextCursor": str(start + 37)} if start + 37 < len(entries) else page


class SameCursor(Server):
    def page(self, key, entries, params):
        return {key: entries, "nextCursor": "again"}


class NewCursors(Server):
    def page(self, key, entries, params):
        number = int(params.get("cursor", "0"))
        return {key: [tool(f"tool-{number}")], "nextCursor": str(number + 1)}


class EmptyPages(Server):
    def page(self, key, entries, params):
        return {key: [], "nextCursor": str(int(params.get("cursor", "0")) + 1)}


class BadPages(Lists):
    """Pages that are not what the protocol says they are."""

    def answer(self, method, params):
        match method:
            case "tools/list":
                return {"tools": {"a": tool("a")}}
            case "resources/list":
                return {}
            case "resources/templates/list":
                return []
            case "prompts/list":
                return {"prompts": [{"name": "fine"}], "nextCursor": 7}
        return super().answer(method, params)


class ListError(Lists):
    resources = [{"uri": "a://b", "name": "b"}]

    def answer(self, method, params):
        if method == "prompts/list":
            raise Refusal(-32603, "the prompts are at lunch")
        return super().answer(method, params)


# How it talks


class Silent(Server):
    def receive(self, message):
        pass


class SilentCalls(Server):
    def receive(self, message):
        if message.get("method") != "tools/call":
            super().receive(message)


class Exits(Server):
    def run(self):
        sys.stderr.write(f"I need a key{HOSTILE}: set ODD_KEY\n")
        sys.exit(3)


class ExitsLater(Server):
    """In the middle of a call."""

    def call(self, name, arguments):
        sys.stderr.write("the disk is full\n")
        sys.exit(4)


class Garbage(Server):
    """Like servers that print what they do."""

    def send(self, **message):
        for line in ["Starting…\n", "\n", "{not json\n", "[]\n", "null\n", '"text"\n', "{}\n", '{"jsonrpc": "2.0"}\n']:
            self.write(line)
        sys.stdout.buffer.write(b"\xff\xfe not text\n")
        sys.stdout.buffer.flush()
        super().send(**message)


class HugeLine(Server):
    def call(self, name, arguments):
        block = "x" * (1 << 20)
        self.write('{"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "')
        for _ in range(300):
            self.write(block)
        self.write('"}]}}\n')
        return text("done")


class EndlessLine(Server):
    def receive(self, message):
        while True:
            self.write("x" * (1 << 20))


class LargeAnswer(Server):
    """Large, and still one that somebody may want."""

    def call(self, name, arguments):
        return text("x" * (3 << 20))


class DiesOnDiscover(Server):
    """Like servers of the first Rust SDK, which take the first message for an `initialize`. `file` counts the starts."""

    def __init__(self, file):
        with open(file, "a") as starts:
            starts.write("started\n")

    def receive(self, message):
        if message.get("method") == "server/discover":
            sys.stderr.write("expect initialized request\n")
            sys.exit(1)
        super().receive(message)


class IgnoresDiscover(Server):
    """Like servers that drop what they do not know."""

    def receive(self, message):
        if message.get("method") != "server/discover":
            super().receive(message)


class WrongIds(Server):
    """Once it is introduced: answers that nobody waits for, and then the right one."""

    def send(self, **message):
        if "serverInfo" not in message.get("result", {}) and "error" not in message:
            for id in [987654, None, "1", -1, 1.5, {"a": 1}, True]:
                super().send(id=id, result=text("not this one"))
        super().send(**message)


class OnlyWrongIds(Server):
    def send(self, **message):
        super().send(**message | {"id": 987654})


class Asks(Server):
    """Asks the client for all that a server may ask for, and tells in the result what the answers were."""

    def call(self, name, arguments):
        answers = {}
        for method, params in {
            "ping": None,
            "roots/list": None,
            "sampling/createMessage": {"messages": [], "maxTokens": 1},
            "elicitation/create": {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}},
            "no/such": {},
        }.items():
            self.send(method="notifications/message", params={"level": "info", "data": method})
            self.send(method="notifications/no/such")
            self.send(method="notifications/tools/list_changed")
            self.send(id=f"ask-{method}", method=method, **({} if params is None else {"params": params}))
            for line in sys.stdin:
                answer = json.loads(line)
                if answer.get("id") == f"ask-{method}":
                    answers[method] = answer.get("result", answer.get("error", {}).get("code"))
                    break
        return text("asked", structuredContent=answers)


class OldVersion(Server):
    """The first version of the protocol, whatever is asked for."""

    def answer(self, method, params):
        answer = super().answer(method, params)
        return answer | {"protocolVersion": "2024-11-05"} if method == "initialize" else answer


class Logs(Server):
    """Writes as much to stderr as a pipe does not hold before it answers anything."""

    def run(self):
        for n in range(20000):
            sys.stderr.write(f"log line {n}\n")
        super().run()


# What it leaves behind


class Stays(Server):
    """Does not end when its input does, nor when it is asked to."""

    def __init__(self, mark):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def run(self):
        super().run()
        while True:
            time.sleep(60)


class SilentlyStays(Stays):
    def receive(self, message):
        pass


class Wraps(Server):
    """Starts another one and waits for it, as `npx` does."""

    def __init__(self, *command):
        self.command = command

    def run(self):
        sys.exit(subprocess.call([sys.executable, __file__, *self.command]))


class LeavesAChild(Server):
    """Ends when it should, but has started something that does not, and that holds its pipes."""

    def __init__(self, mark):
        subprocess.Popen([sys.executable, "-c", "import sys, time; time.sleep(600)", mark])


# What it answers to calls


class Results(Server):
    output = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    tools = [
        tool("contents"),
        tool("nothing"),
        tool("wrong"),
        tool("refused"),
        tool("structured", outputSchema=output),
        tool("text-and-structure", outputSchema=output),
        tool("breaks-its-word", outputSchema=output),
        tool("no-structure", outputSchema=output),
        tool("structured-error", outputSchema=output),
        tool("no-result"),
        tool("environment"),
    ]

    def call(self, name, arguments):
        match name:
            case "contents":
                resource = {"uri": "a://text", "mimeType": "text/plain", "text": "in a resource"}
                blob = {"uri": "a://blob", "mimeType": "application/zip", "blob": "UEsFBg=="}
                link = {"type": "resource_link", "uri": "a://link", "name": "a-link"}
                contents = [
                    {"type": "text", "text": "one"},
                    {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
                    {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
                    {"type": "resource", "resource": resource},
                    {"type": "resource", "resource": blob},
                    link,
                    {"type": "text", "text": "two\nlines"},
                ]
                return {"content": contents}
            case "nothing":
                return {"content": []}
            case "wrong":
                return text("it did not work", isError=True)
            case "refused":
                raise Refusal(-32000, "not today")
            case "structured":
                return {"content": [], "structuredContent": {"n": 18446744073709551615}}
            case "text-and-structure":
                return text("one", structuredContent={"n": 1})
            case "breaks-its-word":
                return text("x", structuredContent={"n": "x"})
            case "no-structure":
                return text("only text")
            case "structured-error":
                return text("half done", structuredContent={"n": 1}, isError=True)
            case "no-result":
                return "done"
            case "environment":
                return text(json.dumps(dict(os.environ)))


def main():
    name, *arguments = sys.argv[1:]
    classes = {kind.__name__: kind for kind in globals().values() if isinstance(kind, type)}
    server = classes["".join(part.title() for part in name.split("-"))](*arguments)
    try:
        server.run()
    except (BrokenPipeError, KeyboardInterrupt):
        # The client went away.
        os._exit(0)


if __name__ == "__main__":
    main()
