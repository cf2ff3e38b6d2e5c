// SPDX-License-Identifier: Apache-2.0
// Packs what is published on npm: `node tools/pack.mjs FOLDER BINARY` writes into FOLDER the package with the
// server for this platform, and the package `tasuki` that asks for it. Needs `npm run build` before.

import { execFileSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { SERVERS } from "../dist/server.js";

const [folder, binary] = process.argv.slice(2);
if (!folder || !binary) {
  console.error("usage: node tools/pack.mjs FOLDER BINARY");
  process.exit(2);
}
const root = resolve(import.meta.dirname ?? new URL(".", import.meta.url).pathname, "..");
const sdk = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const said = execFileSync(binary, ["--version"], { encoding: "utf8" }).trim();
if (said !== `tasuki ${sdk.version}`) {
  throw new Error(`${binary} is ${said}, and the package is ${sdk.version}`);
}
const name = SERVERS[`${process.platform} ${process.arch}`];
if (!name) throw new Error(`there is no package for ${process.platform} ${process.arch}`);

mkdirSync(folder, { recursive: true });
const stage = mkdtempSync(join(tmpdir(), "tasuki-pack-"));
try {
  server(join(stage, "server"));
  whole(join(stage, "tasuki"));
} finally {
  rmSync(stage, { recursive: true, force: true });
}

/** The server alone, for one platform. */
function server(place) {
  mkdirSync(join(place, "bin"), { recursive: true });
  cpSync(binary, join(place, "bin/tasuki"));
  chmodSync(join(place, "bin/tasuki"), 0o755);
  cpSync(join(root, "LICENSE"), join(place, "LICENSE"));
  const { version, license, engines } = sdk;
  const description = `The server of tasuki for ${process.platform} ${process.arch}`;
  const fits = { os: [process.platform], cpu: [process.arch] };
  if (process.platform === "linux") fits.libc = ["glibc"];
  write(place, { name, version, description, license, engines, ...fits, files: ["bin"] });
  pack(place);
}

/** The SDK, and whichever server fits. */
function whole(place) {
  for (const part of ["dist", "LICENSE", "README.md"]) {
    cpSync(join(root, part), join(place, part), { recursive: true });
  }
  const { scripts: _, devDependencies: __, ...published } = sdk;
  const servers = Object.values(SERVERS).map((server) => [server, sdk.version]);
  write(place, { ...published, optionalDependencies: Object.fromEntries(servers) });
  pack(place);
}

function write(place, manifest) {
  writeFileSync(join(place, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
}

function pack(place) {
  const npm = ["pack", "--silent", "--ignore-scripts", "--pack-destination", resolve(folder)];
  console.log(execFileSync("npm", npm, { cwd: place, encoding: "utf8" }).trim());
}
