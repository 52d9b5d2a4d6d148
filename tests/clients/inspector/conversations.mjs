// Holds conversations with components through the MCP inspector's two command lines, over stdio and HTTP, in both eras of the
// protocol: `mcp-inspector --cli` connects for one request, `mcpdo` keeps a connection, and can so be asked and interrupted.
//
// GUESTS_DIR holds the components, HOST_BIN is the server, INSPECTOR and MCPDO are the command lines; ../README.md has what the
// conversations are about.

import { execFile } from "node:child_process";
import { copyFileSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";

import { TIMEOUT_MS, check, expect, finish, listening, soon, withFolder } from "../shared.mjs";

const { GUESTS_DIR, HOST_BIN, HOST_HOME, INSPECTOR, MCPDO } = process.env;

const versions = { legacy: "2025-11-25", modern: "2026-07-28" };
const guest = (name) => join(GUESTS_DIR, `${name}.wasm`);

// Connecting has a limit of its own.
const patience = ["--connect-timeout", String(TIMEOUT_MS)];

// Hands `use` the arguments that make a client connect to a server that was started with `args`.
const transports = {
  stdio: (args, use) => {
    const state = HOST_HOME === undefined ? [] : ["-e", `HOST_HOME=${HOST_HOME}`];
    return use([...state, ...patience, "--", HOST_BIN, "serve", ...args]);
  },
  http: (args, use) => listening(args, (address) => use([...patience, address])),
};

function run(command, args, { env, type = (stdin) => stdin.end() } = {}) {
  return new Promise((resolve, reject) => {
    const child = execFile(command, args, { env, timeout: TIMEOUT_MS }, (error, stdout, stderr) => {
      process.stderr.write(stderr);
      // A program that was not found or took too long; one that failed has a number instead.
      if (typeof error?.code === "string" || error?.killed) reject(error);
      else resolve({ code: child.exitCode, stdout, stderr });
    });
    // Whether a program still reads what is typed is its own affair.
    child.stdin.on("error", () => {});
    type(child.stdin);
  });
}

async function json(command, args) {
  const { code, stdout, stderr } = await run(command, args);
  expect(code === 0, `exit ${code}: ${stderr}`);
  return JSON.parse(stdout);
}

function textOf(result) {
  const text = result.content.map((block) => block.text).join("");
  expect(!result.isError, `the call failed: ${text}`);
  return text;
}

function expectSimpleText(result) {
  expect(textOf(result) === "This is a simple text response for testing.", `the text is: ${textOf(result)}`);
}

function expectAll(wanted, found, what) {
  expect(wanted.every((one) => found.includes(one)), `the ${what} are ${found}`);
}

async function lists(era, connect) {
  await connect([guest("conformance")], async (target) => {
    const cli = ["--cli", "--format", "json", "--protocol-era", era];
    const ask = async (...request) => (await json(INSPECTOR, [...cli, "--method", ...request, ...target])).result;

    const { protocolVersion } = await ask("initialize");
    expect(protocolVersion === versions[era], `the server chose ${protocolVersion}`);

    const { tools } = await ask("tools/list");
    expectAll(["test_simple_text", "test_elicitation"], tools.map((tool) => tool.name), "tools");
    expectSimpleText(await ask("tools/call", "--tool-name", "test_simple_text"));

    const { resources } = await ask("resources/list");
    expectAll(["test://static-text"], resources.map((resource) => resource.uri), "resources");
    const [text] = (await ask("resources/read", "--uri", "test://static-text")).contents;
    expect(text.text === "This is the content of the static text resource.", `the resource is: ${text.text}`);

    const { resourceTemplates } = await ask("resources/templates/list");
    expectAll(["test://template/{id}/data"], resourceTemplates.map((template) => template.uriTemplate), "templates");
    const [data] = (await ask("resources/read", "--uri", "test://template/123/data")).contents;
    expect(JSON.parse(data.text).id === "123", `the resource of the template is: ${data.text}`);

    const { prompts } = await ask("prompts/list");
    expectAll(["test_simple_prompt", "test_prompt_with_arguments"], prompts.map((prompt) => prompt.name), "prompts");
    const values = ["--prompt-args", "arg1=one", "arg2=two"];
    const filled = await ask("prompts/get", "--prompt-name", "test_prompt_with_arguments", ...values);
    const prompt = filled.messages[0].content.text;
    expect(prompt.includes("one") && prompt.includes("two"), `the prompt is: ${prompt}`);

    // It shows no progress, but can ask for it, and must not stumble over it.
    textOf(await ask("tools/call", "--tool-name", "test_tool_with_progress", "--tool-metadata", "progressToken=abc"));

    // It says that it cannot be asked, so the call fails instead of waiting for an answer.
    const request = ["tools/call", "--tool-name", "test_elicitation", "--tool-arg", "message=Who?"];
    const { code, stdout } = await run(INSPECTOR, [...cli, "--method", ...request, ...target]);
    expect(code !== 0, `a question to a client that cannot be asked: ${stdout}`);
  });
}

async function token(era) {
  await withFolder(async (folder) => {
    const file = join(folder, "token");
    await listening(["--token-file", file, guest("conformance")], async (address) => {
      const cli = ["--cli", "--format", "json", "--protocol-era", era, "--stored-auth-only", ...patience];
      const request = [address, "--method", "tools/call", "--tool-name", "test_simple_text"];
      const header = ["--header", `Authorization: Bearer ${readFileSync(file, "utf8").trim()}`];
      expectSimpleText((await json(INSPECTOR, [...cli, ...request, ...header])).result);
      const { stderr } = await run(INSPECTOR, [...cli, ...request]);
      expect(stderr.includes("auth_required"), `without the token: ${stderr}`);
    });
  });
}

// Hands `talk` a function that runs one command of `mcpdo` on a connection that is kept meanwhile.
async function connected(era, target, talk) {
  const { name } = await json(MCPDO, ["--format", "json", "connect", "--era", era, ...target]);
  const command = (...args) => json(MCPDO, ["--format", "json", "--connection", name, ...args]);
  try {
    const { protocolVersion } = await command("connections/show");
    expect(protocolVersion === versions[era], `the server chose ${protocolVersion}`);
    await talk(command, name);
  } finally {
    await run(MCPDO, ["disconnect", name]);
  }
}

// Types Ctrl-C in a terminal where a call runs, and tells whether that took the call back.
async function interrupted(connection, tool, args, wait) {
  const line = 'exec "$MCPDO" --connection "$CONNECTION" tools/call "$TOOL" "$ARGUMENTS"';
  const env = { ...process.env, SHELL: "/bin/sh", CONNECTION: connection, TOOL: tool, ARGUMENTS: JSON.stringify(args) };
  const type = (stdin) => setTimeout(() => stdin.write("\x03"), wait);
  const { stdout } = await run("script", ["-qefc", line, "/dev/null"], { env, type });
  return stdout.includes("cancelled");
}

// With room for one call only, the next one is answered only if the cancelled one is gone.
const cancellation = (name, tool, args) => async (era, connect) => {
  const limits = ["--timeout", "1h", "--max-cpu", "1h", "--max-concurrent-calls", "1"];
  await connect([...limits, guest(name)], (target) =>
    connected(era, target, async (command, connection) => {
      // Nothing shows that the call runs, so that it may be too early for Ctrl-C.
      let wait = 2_000;
      while (!(await interrupted(connection, tool, args, wait))) {
        wait *= 2;
        expect(wait < TIMEOUT_MS, "the call is not cancelled");
      }
      const text = textOf(await command("tools/call", "add", '{"a": 2, "b": 40}'));
      expect(text.includes("42"), `the sum is: ${text}`);
    }),
  );
};

async function questions(era, connect) {
  const conversations = [
    {
      call: ["test_elicitation", '{"message": "Who?"}'],
      rounds: [{ asks: ["Who?", "email", "username"], answer: ['{"username": "ada", "email": "ada@example.com"}'] }],
      parts: ["action=accept", "ada@example.com"],
    },
    {
      call: ["test_elicitation", '{"message": "Again?"}'],
      rounds: [{ asks: ["Again?", "email", "username"], answer: ["--decline"] }],
      parts: ["action=decline"],
    },
    {
      call: ["test_input_required_result_elicitation"],
      rounds: [{ asks: ["What is your name?", "name"], answer: ['{"name": "Ada"}'] }],
      parts: ["Hello, Ada!"],
    },
    {
      call: ["test_input_required_result_multi_round"],
      rounds: [
        { asks: ["Step 1: What is your name?", "name"], answer: ['{"name": "Ada"}'] },
        { asks: ["Step 2: What is your favorite color?", "color"], answer: ['{"color": "green"}'] },
      ],
      parts: ["Ada", "green"],
    },
  ];
  await connect([guest("conformance")], (target) =>
    connected(era, target, async (command) => {
      for (const { call, rounds, parts } of conversations) {
        let result = await command("tools/call", ...call);
        for (const { asks, answer } of rounds) {
          const pending = result.elicitationPending;
          expect(pending, `\`${call[0]}\` does not ask, but answers: ${JSON.stringify(result)}`);
          const asked = [pending.message, ...Object.keys(pending.requestedSchema.properties).sort()];
          const [message, ...properties] = asks;
          expect(isDeepStrictEqual(asked, [`conformance asks: ${message}`, ...properties]), `\`${call[0]}\` asks ${JSON.stringify(asked)}`);
          result = await command("elicitation/respond", pending.elicitationId, ...answer);
        }
        const text = textOf(result);
        expect(parts.every((part) => text.includes(part)), `\`${call[0]}\` answers: ${text}`);
      }
    }),
  );
}

// It does not show that it is told, but what it lists next.
async function changes(era, connect) {
  await withFolder(async (folder) => {
    copyFileSync(guest("conformance"), join(folder, "conformance.wasm"));
    await connect(["--watch", folder], (target) =>
      connected(era, target, async (command) => {
        const has = async (name) => (await command("tools/list")).tools.some((tool) => tool.name === name);
        expect(!(await has("increment")), "the tool is there before its component");

        // A name that is not followed, so that the component is complete when it is found.
        copyFileSync(guest("counter"), join(folder, "counter.part"));
        renameSync(join(folder, "counter.part"), join(folder, "counter.wasm"));
        const see = async () => {
          while (!(await has("increment"))) await sleep(200);
        };
        await soon(see(), "a new component is not listed");
      }),
    );
  });
}

const conversations = {
  lists,
  "cancel a wait": cancellation("evil-17-host-sleep", "sleep", { seconds: 3600 }),
  "cancel a loop": cancellation("evil-17-infinite-loop", "spin", {}),
  questions,
  changes,
};

await withFolder(async (folder) => {
  // A process of its own keeps the connections of `mcpdo`; nobody else's, and no keychain.
  process.env.MCP_INSPECTOR_DAEMON_DIR = folder;
  process.env.MCP_INSPECTOR_SECRET_STORE = "file";
  for (const era of Object.keys(versions)) {
    for (const [transport, connect] of Object.entries(transports)) {
      const start = performance.now();
      for (const [name, conversation] of Object.entries(conversations)) {
        await check(`${transport} ${era}, ${name}`, () => conversation(era, connect));
      }
      console.log(`${transport} ${era}: ${((performance.now() - start) / 1000).toFixed(1)} s`);
    }
    await check(`http ${era}, token`, () => token(era));
  }
  await run(MCPDO, ["daemon", "stop"]);
});
finish();
