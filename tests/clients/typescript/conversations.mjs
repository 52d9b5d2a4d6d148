// Holds conversations with components through the official TypeScript clients, over stdio and HTTP, in both eras of the protocol.
//
// GUESTS_DIR holds the components, HOST_BIN is the server; ../README.md has what the conversations are about.

import { copyFileSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as SdkClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as SdkStdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as SdkHttpClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CreateMessageRequestSchema, ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

import { TIMEOUT_MS, check, expect, finish, listening, soon, until, withFolder } from "../shared.mjs";

const { GUESTS_DIR, HOST_BIN, HOST_HOME } = process.env;

const options = { timeout: TIMEOUT_MS };
const info = { name: "test-clients", version: "1.0.0" };
const guest = (name) => join(GUESTS_DIR, `${name}.wasm`);

const current = {
  Stdio: StdioClientTransport,
  Http: StreamableHTTPClientTransport,
  call: (client, request, more) => client.callTool(request, { ...options, ...more }),
  handle: (client, method, handler) => client.setRequestHandler(method, handler),
};
const clients = [
  {
    ...current,
    name: "client legacy",
    version: "2025-11-25",
    client: (more) => new Client(info, more),
  },
  {
    ...current,
    name: "client auto",
    version: "2026-07-28",
    client: (more) => new Client(info, { versionNegotiation: { mode: "auto" }, ...more }),
  },
  {
    name: "sdk",
    version: "2025-11-25",
    client: (more) => new SdkClient(info, more),
    Stdio: SdkStdioClientTransport,
    Http: SdkHttpClientTransport,
    call: (client, request, more) => client.callTool(request, undefined, { ...options, ...more }),
    handle: (client, method, handler) => client.setRequestHandler(sdkSchemas[method], handler),
  },
];
const sdkSchemas = {
  "elicitation/create": ElicitRequestSchema,
  "sampling/createMessage": CreateMessageRequestSchema,
};

// Connects, hands a client to `talk`, and closes it.
async function connected(kind, transport, clientOptions, talk) {
  let version;
  const tell = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (chosen) => {
    version = chosen;
    tell?.(chosen);
  };

  const client = kind.client(clientOptions);
  try {
    await client.connect(transport, options);
    expect(version === kind.version, `the server chose ${version}`);
    await talk(client);
  } finally {
    await client.close();
  }
}

// `connect(kind, args, clientOptions, talk)`: `talk` gets a client of a server that was started with these arguments.
const transports = {
  // Clients hand only a few variables down; HOST_HOME is none of them.
  stdio: (kind, args, clientOptions, talk) => {
    const env = HOST_HOME === undefined ? {} : { HOST_HOME };
    return connected(kind, new kind.Stdio({ command: HOST_BIN, args: ["serve", ...args], env }), clientOptions, talk);
  },
  http: (kind, args, clientOptions, talk) =>
    listening(args, (address) => connected(kind, new kind.Http(new URL(address)), clientOptions, talk)),
};

async function textOf(kind, client, name, args = {}, more = {}) {
  const result = await kind.call(client, { name, arguments: args }, more);
  const text = result.content.map((block) => block.text).join("");
  expect(!result.isError, `\`${name}\` failed: ${text}`);
  return text;
}

async function expectSimpleText(kind, client) {
  const text = await textOf(kind, client, "test_simple_text");
  expect(text === "This is a simple text response for testing.", `the text is: ${text}`);
}

function expectAll(wanted, found, what) {
  expect(wanted.every((one) => found.includes(one)), `the ${what} are ${found}`);
}

async function lists(kind, connect) {
  await connect(kind, [guest("conformance")], {}, async (client) => {
    const { tools } = await client.listTools({}, options);
    expectAll(["test_simple_text", "test_elicitation"], tools.map((tool) => tool.name), "tools");
    await expectSimpleText(kind, client);

    const { resources } = await client.listResources({}, options);
    expectAll(["test://static-text"], resources.map((resource) => resource.uri), "resources");
    const [text] = (await client.readResource({ uri: "test://static-text" }, options)).contents;
    expect(text.text === "This is the content of the static text resource.", `the resource is: ${text.text}`);

    const { resourceTemplates } = await client.listResourceTemplates({}, options);
    expectAll(["test://template/{id}/data"], resourceTemplates.map((template) => template.uriTemplate), "templates");
    const [data] = (await client.readResource({ uri: "test://template/123/data" }, options)).contents;
    expect(JSON.parse(data.text).id === "123", `the resource of the template is: ${data.text}`);

    const { prompts } = await client.listPrompts({}, options);
    expectAll(["test_simple_prompt", "test_prompt_with_arguments"], prompts.map((prompt) => prompt.name), "prompts");
    const request = { name: "test_prompt_with_arguments", arguments: { arg1: "one", arg2: "two" } };
    const prompt = (await client.getPrompt(request, options)).messages[0].content.text;
    expect(prompt.includes("one") && prompt.includes("two"), `the prompt is: ${prompt}`);
  });
}

// These clients handle a notification a moment after they read it, and forget it if the answer came in the same chunk. So the last report
// of a call is lost now and then, but not of each of ten.
async function progress(kind, connect) {
  let reports = [];
  const onprogress = ({ progress, total }) => reports.push([progress, total]);
  await connect(kind, [guest("conformance")], {}, async (client) => {
    for (let attempt = 0; attempt < 10 && reports.length < 3; attempt++) {
      reports = [];
      await textOf(kind, client, "test_tool_with_progress", {}, { onprogress });
      await sleep(50);
    }
  });
  expect(isDeepStrictEqual(reports, [[0, 100], [50, 100], [100, 100]]), `the reports are ${JSON.stringify(reports)}`);
}

// With room for one call only, the next one is answered only if the cancelled one is gone.
const cancellation = (name, tool, args) => async (kind, connect) => {
  const limits = ["--timeout", "1h", "--max-cpu", "1h", "--max-concurrent-calls", "1"];
  await connect(kind, [...limits, guest(name)], {}, async (client) => {
    const taken = new AbortController();
    const running = Promise.withResolvers();
    const request = { name: tool, arguments: args };
    const call = kind.call(client, request, { signal: taken.signal, onprogress: running.resolve });
    call.then(() => running.reject(new Error("the call came to an end")), running.reject);
    await soon(running.promise, "no progress is reported");

    taken.abort("not needed any more");
    await soon(
      call.then(
        () => expect(false, "a cancelled call has a result"),
        () => {},
      ),
      "the cancelled call does not end",
    );
    const text = await textOf(kind, client, "add", { a: 2, b: 40 });
    expect(text.includes("42"), `the sum is: ${text}`);
  });
};

async function questions(kind, connect) {
  const answers = {
    "Who?": { action: "accept", content: { username: "ada", email: "ada@example.com" } },
    "Again?": { action: "decline" },
    "What is your name?": { action: "accept", content: { name: "Ada" } },
    "Step 1: What is your name?": { action: "accept", content: { name: "Ada" } },
    "Step 2: What is your favorite color?": { action: "accept", content: { color: "green" } },
  };
  const conversations = [
    ["test_elicitation", { message: "Who?" }, ["action=accept", "ada@example.com"], [["Who?", "email", "username"]]],
    ["test_elicitation", { message: "Again?" }, ["action=decline"], [["Again?", "email", "username"]]],
    ["test_input_required_result_elicitation", {}, ["Hello, Ada!"], [["What is your name?", "name"]]],
    [
      "test_input_required_result_multi_round",
      {},
      ["Ada", "green"],
      [["Step 1: What is your name?", "name"], ["Step 2: What is your favorite color?", "color"]],
    ],
    ["test_sampling", { prompt: "Which color?" }, ["It is blue."], [["Which color?", 100]]],
  ];
  const capabilities = { elicitation: { form: {} }, sampling: {} };
  await connect(kind, [guest("conformance")], { capabilities }, async (client) => {
    let asked;
    kind.handle(client, "elicitation/create", ({ params }) => {
      // The user is told which component asks.
      const message = params.message.replace(/^conformance asks: /, "");
      expect(message !== params.message, `it is \`${params.message}\` that is asked`);
      asked.push([message, ...Object.keys(params.requestedSchema.properties).sort()]);
      return answers[message] ?? { action: "cancel" };
    });
    kind.handle(client, "sampling/createMessage", ({ params }) => {
      asked.push([[params.messages[0].content].flat()[0].text, params.maxTokens]);
      return { role: "assistant", model: "test", content: { type: "text", text: "It is blue." } };
    });
    for (const [tool, args, parts, expected] of conversations) {
      asked = [];
      const text = await textOf(kind, client, tool, args);
      expect(parts.every((part) => text.includes(part)), `\`${tool}\` answers: ${text}`);
      expect(isDeepStrictEqual(asked, expected), `\`${tool}\` asks ${JSON.stringify(asked)}`);
    }
  });
}

async function changes(kind, connect) {
  await withFolder(async (folder) => {
    copyFileSync(guest("conformance"), join(folder, "conformance.wasm"));
    let tools;
    const onChanged = (error, list) => (tools = error === null ? list.map((tool) => tool.name) : [error.message]);
    const listChanged = { tools: { onChanged, debounceMs: 0 } };
    await connect(kind, ["--watch", folder], { listChanged }, async (client) => {
      // Older clients open the stream for changes in the background, and nobody is told what happened before.
      const trigger = async () => {
        while (tools === undefined) {
          await textOf(kind, client, "test_trigger_tool_change");
          await sleep(200);
        }
      };
      await soon(trigger(), "the client is not told what the component says");
      expect(!tools.includes("increment"), "the tool is there before its component");

      // A name that is not followed, so that the component is complete when it is found.
      copyFileSync(guest("counter"), join(folder, "counter.part"));
      renameSync(join(folder, "counter.part"), join(folder, "counter.wasm"));
      await soon(until(() => tools.includes("increment")), "the client is not told of a new component");
    });
  });
}

async function token(kind) {
  await withFolder(async (folder) => {
    const file = join(folder, "token");
    await listening(["--token-file", file, guest("conformance")], async (address) => {
      const url = new URL(address);
      const headers = { Authorization: `Bearer ${readFileSync(file, "utf8").trim()}` };
      await connected(kind, new kind.Http(url, { requestInit: { headers } }), {}, (client) => expectSimpleText(kind, client));
      const status = await connected(kind, new kind.Http(url), {}, (client) => client.listTools({}, options)).then(
        () => 200,
        (error) => error.data?.status ?? error.code,
      );
      expect(status === 401, `without the token: ${status}`);
    });
  });
}

const conversations = {
  lists,
  progress,
  "cancel a wait": cancellation("evil-17-host-sleep", "sleep", { seconds: 3600 }),
  "cancel a loop": cancellation("evil-17-infinite-loop", "spin", {}),
  questions,
  changes,
};

for (const kind of clients) {
  for (const [transport, connect] of Object.entries(transports)) {
    const start = performance.now();
    for (const [name, conversation] of Object.entries(conversations)) {
      await check(`${kind.name} ${transport}, ${name}`, () => conversation(kind, connect));
    }
    console.log(`${kind.name} ${transport}: ${((performance.now() - start) / 1000).toFixed(1)} s`);
  }
  await check(`${kind.name} http, token`, () => token(kind));
}
finish();
