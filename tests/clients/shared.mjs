// What the tests in Node share: the count of checks, limits of time, and a server over HTTP.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

const { HOST_BIN } = process.env;

// A large component is compiled at its first call, on a machine that may be busy with other tests.
export const TIMEOUT_MS = 120_000;

let passed = 0;
let failed = 0;

export async function check(name, test) {
  try {
    await test();
    passed += 1;
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${name}: ${error.message}`);
  }
}

// Prints the result and ends the process.
export function finish() {
  console.log(`${passed} passed, ${failed} failed`);
  // An empty folder is a mistake of the caller, not a success.
  process.exit(failed > 0 || passed === 0 ? 1 : 0);
}

export function expect(condition, message) {
  if (!condition) throw new Error(message);
}

// The result of something that must not take for ever.
export async function soon(promise, otherwise) {
  const timer = new AbortController();
  const late = sleep(TIMEOUT_MS, undefined, { signal: timer.signal }).then(() => {
    throw new Error(otherwise);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    timer.abort();
    late.catch(() => {});
  }
}

export async function until(condition) {
  while (!condition()) await sleep(10);
}

export async function withFolder(use) {
  const folder = mkdtempSync(join(tmpdir(), "test-clients-"));
  try {
    await use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

// Starts a server over HTTP, hands its address to `use`, and ends it.
export async function listening(args, use) {
  const server = spawn(HOST_BIN, ["serve", "--http", "127.0.0.1:0", ...args], { stdio: ["ignore", "ignore", "pipe"] });
  const ended = once(server, "close");
  const address = new Promise((resolve, reject) => {
    createInterface(server.stderr).on("line", (line) => {
      process.stderr.write(`${line}\n`);
      const found = line.match(/http:\/\/\S+\/mcp/);
      if (found) resolve(found[0]);
    });
    ended.then(() => reject(new Error("the server ended before it listened")), reject);
  });
  try {
    await use(await soon(address, "the server does not tell its address"));
  } finally {
    server.kill();
    await soon(ended, "the server does not end").finally(() => server.kill("SIGKILL"));
  }
  expect(server.exitCode === 0, `the server ended with ${server.exitCode ?? server.signalCode}`);
}
