// Makes the calls of every component through the official TypeScript clients, in both eras of the protocol.
//
// GUESTS_DIR holds the components and their calls, HOST_BIN is the server; ../README.md has the format of the calls.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";

import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as SdkClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as SdkStdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { Ajv2020 } from "ajv/dist/2020.js";

import { TIMEOUT_MS, check, expect, finish } from "../shared.mjs";

const { GUESTS_DIR, HOST_BIN, HOST_HOME } = process.env;

const options = { timeout: TIMEOUT_MS };

const info = { name: "test-clients", version: "1.0.0" };

const clients = [
  {
    name: "client legacy",
    version: "2025-11-25",
    client: () => new Client(info),
    Transport: StdioClientTransport,
  },
  {
    name: "client 2026-07-28",
    version: "2026-07-28",
    client: () => new Client(info, { versionNegotiation: { mode: { pin: "2026-07-28" } } }),
    Transport: StdioClientTransport,
  },
  {
    name: "sdk",
    version: "2025-11-25",
    client: () => new SdkClient(info),
    Transport: SdkStdioClientTransport,
  },
];

// The clients' own check of results is draft-07 in one and 2020-12 in the other; this one is 2020-12 for all.
const ajv = new Ajv2020({ strict: false, logger: false });

function expectValid(value, schema, name) {
  const valid = ajv.validate(schema, value);
  expect(valid, `${JSON.stringify(value)} is not valid against ${name}: ${ajv.errorsText()}`);
}

// Integers that a JavaScript number would round are sent digit by digit.
function parseExactly(text) {
  return JSON.parse(text, (_, value, { source }) =>
    typeof value === "number" && /^-?\d+$/.test(source) && !Number.isSafeInteger(value) ? JSON.rawJSON(source) : value,
  );
}

function checkList(listed, calls) {
  expect(listed.nextCursor === undefined, "the list of tools has more than one page");
  const tools = new Set(listed.tools.map((tool) => tool.name));
  const called = new Set(calls.map((call) => call.tool));
  expect(tools.size === listed.tools.length, "two tools have the same name");
  const missing = [[...tools.difference(called)], [...called.difference(tools)]];
  expect(missing.flat().length === 0, `tools without a call: ${missing[0]}, calls without a tool: ${missing[1]}`);
}

// What a program left behind. Its text is what it printed, not the JSON of all of it.
function isProgram(result) {
  return result !== null && typeof result === "object" && "exitCode" in result;
}

async function checkCall(client, tool, call, exactArguments) {
  if (!("error" in call) && call.schema !== false) expectValid(call.arguments, tool.inputSchema, "inputSchema");

  const request = { name: tool.name, arguments: exactArguments };
  const result = await (client instanceof SdkClient
    ? client.callTool(request, undefined, options)
    : client.callTool(request, options));
  const text = result.content.map((block) => block.text).join("");
  const structured = result.structuredContent;

  expect(Boolean(result.isError) === "error" in call, `isError is ${result.isError}: ${text}`);
  expect(text.includes(call.error ?? ""), `\`${call.error}\` is not in the error: ${text}`);
  if (structured !== undefined) {
    expect(tool.outputSchema, "structuredContent without an outputSchema");
    expectValid(structured, tool.outputSchema, "outputSchema");
  }
  if ("result" in call) {
    const same = isDeepStrictEqual(structured, { result: call.result });
    expect(same, `structuredContent is ${JSON.stringify(structured)}`);
  } else if (!("error" in call)) {
    expect(structured === undefined, `an unexpected result: ${JSON.stringify(structured)}`);
  }
  if ("text" in call) {
    expect(text.includes(call.text), `\`${call.text}\` is not in the text: ${text}`);
  } else if (isProgram(call.result ?? null)) {
    const printed = ["stdout", "stderr"].filter((key) => !(`${key}Encoding` in call.result)).map((key) => call.result[key]);
    expect(text && printed.every((part) => text.includes(part.trim())), `${printed} is not in the text: ${text}`);
  } else if ("result" in call) {
    expect(isDeepStrictEqual(JSON.parse(text), structured), `the text is not the structuredContent: ${text}`);
  } else {
    expect(text, "no text");
  }
}

async function checkComponent(name, kind) {
  const file = readFileSync(join(GUESTS_DIR, `${name}.calls.json`), "utf8");
  const calls = JSON.parse(file);
  const exact = parseExactly(file);

  const transport = new kind.Transport({
    command: HOST_BIN,
    args: ["serve", "--timeout", "5s", join(GUESTS_DIR, `${name}.wasm`)],
    // Some calls run into the limit, in every era; see calls.json. Clients hand only a few variables down; HOST_HOME is none of them.
    env: HOST_HOME === undefined ? {} : { HOST_HOME },
  });
  let version;
  transport.setProtocolVersion = (chosen) => (version = chosen);

  const client = kind.client();
  try {
    await client.connect(transport, options);
    expect(version === kind.version, `the server chose ${version}`);
    const listed = await client.listTools({}, options);
    checkList(listed, calls);
    const tools = new Map(listed.tools.map((tool) => [tool.name, tool]));
    for (const [index, call] of calls.entries()) {
      await check(`${name} ${kind.name} [${index}] ${call.tool}`, () =>
        checkCall(client, tools.get(call.tool), call, exact[index].arguments),
      );
    }
  } finally {
    await client.close();
  }
}

const ending = ".calls.json";
const components = readdirSync(GUESTS_DIR).filter((file) => file.endsWith(ending)).sort();
for (const component of components) {
  const name = component.slice(0, -ending.length);
  for (const kind of clients) {
    const start = performance.now();
    await check(`${name} ${kind.name}`, () => checkComponent(name, kind));
    console.log(`${name} ${kind.name}: ${((performance.now() - start) / 1000).toFixed(1)} s`);
  }
}
finish();
