// Lists the tools of every component with the MCP inspector's strict check of schemas, in both eras of the protocol.
//
// GUESTS_DIR holds the components and their calls, HOST_BIN is the server, INSPECTOR the inspector's command line.

import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { TIMEOUT_MS, check, expect, finish } from "../shared.mjs";

const { GUESTS_DIR, HOST_BIN, HOST_HOME, INSPECTOR } = process.env;

function checkComponent(name, era) {
  const calls = JSON.parse(readFileSync(join(GUESTS_DIR, `${name}.calls.json`), "utf8"));
  const state = HOST_HOME === undefined ? [] : ["-e", `HOST_HOME=${HOST_HOME}`];
  const run = spawnSync(
    INSPECTOR,
    ["--cli", "--protocol-era", era, "--method", "tools/list", "--strict", ...state]
      .concat(["--", HOST_BIN, "serve", join(GUESTS_DIR, `${name}.wasm`)]),
    { encoding: "utf8", timeout: TIMEOUT_MS },
  );
  if (run.error) throw run.error;
  expect(run.status === 0, `exit ${run.status}: ${run.stderr}`);

  // Warnings leave the exit code alone, but are worth a look.
  const warnings = run.stderr.match(/^\d+ errors?, \d+ warnings? across .*$/m);
  if (warnings) console.log(`${name} ${era}: ${warnings[0]}`);

  // The inspector leaves out tools that it can not read, and is content with the rest.
  const listed = new Set(JSON.parse(run.stdout).tools.map((tool) => tool.name));
  const lost = [...new Set(calls.map((call) => call.tool)).difference(listed)];
  expect(lost.length === 0, `the inspector does not show ${lost}`);
}

const ending = ".calls.json";
const components = readdirSync(GUESTS_DIR).filter((file) => file.endsWith(ending)).sort();
for (const component of components) {
  const name = component.slice(0, -ending.length);
  for (const era of ["legacy", "modern"]) {
    await check(`${name} ${era}`, () => checkComponent(name, era));
  }
}
finish();
