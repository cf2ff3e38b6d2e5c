// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const cli = fileURLToPath(new URL("../src/cli.js", import.meta.url));

test("without a server for this platform it says which package has it", () => {
  const { TASUKI_BIN: _, ...env } = process.env;
  const ran = spawnSync(process.execPath, [cli, "serve"], { env, encoding: "utf8" });
  assert.equal(ran.status, 69);
  assert.match(ran.stderr, /@tasuki\/server-\w+-\w+, which has the server, is not installed/);
  assert.match(ran.stderr, /--omit=optional/);
});

test("a server that is named is the one that runs, and ends as it does", () => {
  const env = { ...process.env, TASUKI_BIN: process.execPath };
  const ran = spawnSync(process.execPath, [cli, "-e", "process.exit(7)"], { env });
  assert.equal(ran.status, 7);
});
