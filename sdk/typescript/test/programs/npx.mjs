// SPDX-License-Identifier: Apache-2.0
// What somebody does who wants the server alone: `npx tasuki …`.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { createInterface } from "node:readline";

const npx = (words) => spawnSync("npx", ["--no-install", "tasuki", ...words], { encoding: "utf8" });

assert.match(npx(["--version"]).stdout, /^tasuki \d+\.\d+\.\d+\n$/);
// How a command ends is how the server says it ends.
assert.equal(npx(["ready", "--url", "http://127.0.0.1:1"]).status, 69);
const demo = npx(["demo"]);
assert.equal(demo.status, 0, demo.stderr);
assert.match(demo.stdout, /promises kept/);

// A signal reaches the server, which ends in order.
const served = spawn("node_modules/.bin/tasuki", ["dev", "--port", "0"]);
await new Promise((ready) => {
  createInterface(served.stdout).on("line", (line) => line === "ready" && ready());
});
const ended = new Promise((resolve) => served.once("exit", (code) => resolve(code)));
served.kill("SIGTERM");
assert.equal(await ended, 0);
console.log("the server alone works");
