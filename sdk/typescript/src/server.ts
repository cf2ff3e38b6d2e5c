// SPDX-License-Identifier: Apache-2.0
// Where the server is, if it was installed with this package: a package of its own for each platform
// has it, and npm installs the one that fits.

import { createRequire } from "node:module";

/** The package with the server, by platform and processor. */
export const SERVERS: Readonly<Record<string, string>> = {
  "linux x64": "@tasuki/server-linux-x64",
  "linux arm64": "@tasuki/server-linux-arm64",
  "darwin x64": "@tasuki/server-darwin-x64",
  "darwin arm64": "@tasuki/server-darwin-arm64",
};

/** The path of the server: `TASUKI_BIN`, or the one that was installed with this package. */
export function findServer(): string | undefined {
  if (process.env.TASUKI_BIN) return process.env.TASUKI_BIN;
  const name = SERVERS[`${process.platform} ${process.arch}`];
  if (!name) return undefined;
  try {
    return createRequire(import.meta.url).resolve(`${name}/bin/tasuki`);
  } catch {
    return undefined;
  }
}

/** Why there is none, and what to do. */
export function noServer(): string {
  const here = `${process.platform} ${process.arch}`;
  const name = SERVERS[here];
  const why = name
    ? `the package ${name}, which has the server, is not installed`
    : `there is no server for ${here}; there is one for ${Object.keys(SERVERS).join(", ")}`;
  const hint = name
    ? "install again without --omit=optional, or name a server in TASUKI_BIN"
    : "build it from its source, and name it in TASUKI_BIN";
  return `error: ${why}\nhint:  ${hint}`;
}
