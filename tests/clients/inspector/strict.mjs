// Lists the tools of every component with the MCP inspector's strict check of schemas, in both eras of the protocol.
//
// GUESTS_DIR holds the components and their calls, HOST_BIN is the server, INSPECTOR the inspector's command line.

import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const { GUESTS_DIR, HOST_BIN, HOST_HOME, INSPECTOR } = process.env;

function problem(name, era) {
  const calls = JSON.parse(readFileSync(join(GUESTS_DIR, `${name}.calls.json`), "utf8"));
  const state = HOST_HOME === undefined ? [] : ["-e", `HOST_HOME=${HOST_HOME}`];
  const run = spawnSync(
    INSPECTOR,
    ["--cli", "--protocol-era", era, "--method", "tools/list", "--strict", ...state]
      .concat(["--", HOST_BIN, "serve", join(GUESTS_DIR, `${name}.wasm`)]),
    { encoding: "utf8", timeout: 120_000 },
  );
  if (run.error) return run.error.message;
  if (run.status !== 0) return `exit ${run.status}: ${run.stderr}`;

  // Warnings leave the exit code alone, but are worth a look.
  const warnings = run.stderr.match(/^\d+ errors?, \d+ warnings? across .*$/m);
  if (warnings) console.log(`${name} ${era}: ${warnings[0]}`);

  // The inspector leaves out tools that it can not read, and is content with the rest.
  const listed = new Set(JSON.parse(run.stdout).tools.map((tool) => tool.name));
  const lost = [...new Set(calls.map((call) => call.tool)).difference(listed)];
  if (lost.length > 0) return `the inspector does not show ${lost}`;
}

let passed = 0;
let failed = 0;

const ending = ".calls.json";
const components = readdirSync(GUESTS_DIR).filter((file) => file.endsWith(ending)).sort();
for (const component of components) {
  const name = component.slice(0, -ending.length);
  for (const era of ["legacy", "modern"]) {
    const found = problem(name, era);
    if (found === undefined) {
      passed += 1;
    } else {
      failed += 1;
      console.log(`FAIL ${name} ${era}: ${found}`);
    }
  }
}
console.log(`${passed} passed, ${failed} failed`);
// An empty folder is a mistake of the caller, not a success.
process.exit(failed > 0 || passed === 0 ? 1 : 0);
