#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// `npx tasuki …`: the server and command line that was installed for this platform.

import { spawn } from "node:child_process";
import { findServer, noServer } from "./server.js";

/** As the command line itself says that something is not there. */
const UNAVAILABLE = 69;

function run(server: string): void {
  const child = spawn(server, process.argv.slice(2), { stdio: "inherit" });
  const passed = ["SIGTERM", "SIGHUP", "SIGINT"] as const;
  for (const signal of passed) {
    process.on(signal, () => {
      // A terminal sends Ctrl-C to both; twice would mean: at once.
      if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal);
    });
  }
  child.on("error", (error) => {
    console.error(`error: cannot start ${server}: ${error.message}`);
    process.exit(UNAVAILABLE);
  });
  child.on("exit", (code, signal) => {
    if (!signal) process.exit(code ?? 1);
    for (const name of passed) process.removeAllListeners(name);
    process.kill(process.pid, signal);
  });
}

const server = findServer();
if (server) {
  run(server);
} else {
  console.error(noServer());
  process.exitCode = UNAVAILABLE;
}
