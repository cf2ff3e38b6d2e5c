// SPDX-License-Identifier: Apache-2.0
// What the documents show is what happens: every block is compiled and run, and what follows it is
// compared.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Broker } from "../src/testing.js";
import { ROOT } from "./broker.js";

const HERE = fileURLToPath(new URL("../../", import.meta.url));
const PLACE = `${HERE}build/documents`;
const BLOCK = /^```(\w*)\n(.*?)^```\n(?:```text\n(.*?)^```$)?/gms;

const listed = ["ls-files", "--cached", "--others", "--exclude-standard", "--", "*.md"];
const documents = execFileSync("git", listed, { cwd: ROOT, encoding: "utf8" })
  .split("\n")
  .filter((name) => name && readFileSync(ROOT + name, "utf8").includes("\n```ts\n"));

interface Program {
  document: string;
  file: string;
  shows: string | undefined;
}

function written(): Program[] {
  rmSync(PLACE, { recursive: true, force: true });
  mkdirSync(PLACE, { recursive: true });
  const programs: Program[] = [];
  for (const document of documents) {
    for (const [, tag, text = "", shows] of readFileSync(ROOT + document, "utf8").matchAll(BLOCK)) {
      if (tag !== "ts") continue;
      const file = `${PLACE}/program-${programs.length}`;
      writeFileSync(`${file}.ts`, text);
      programs.push({ document, file, shows });
    }
  }
  return programs;
}

test("every block does what its document shows", async (t) => {
  const programs = written();
  assert.ok(programs.length > 3);
  // The package under its own name, as an importer finds it.
  mkdirSync(`${PLACE}/node_modules/tasuki`, { recursive: true });
  const build = [`${HERE}node_modules/.bin/tsc`, "--project", `${HERE}tsconfig.build.json`];
  const [tsc = "", ...rest] = build;
  execFileSync(tsc, [...rest, "--outDir", `${PLACE}/node_modules/tasuki/dist`]);
  writeFileSync(
    `${PLACE}/node_modules/tasuki/package.json`,
    readFileSync(`${HERE}package.json`, "utf8"),
  );
  writeFileSync(`${PLACE}/package.json`, '{ "type": "module" }');
  const config = {
    extends: "../../tsconfig.json",
    compilerOptions: { rootDir: ".", outDir: ".", typeRoots: ["../../node_modules/@types"] },
    include: ["*.ts"],
    exclude: ["node_modules"],
  };
  writeFileSync(`${PLACE}/tsconfig.json`, JSON.stringify(config));
  execFileSync(tsc, ["--project", PLACE], { encoding: "utf8" });
  for (const { document, file, shows } of programs) {
    await t.test(document, async () => {
      await using broker = await Broker.start();
      const env = { ...process.env, TASUKI_URL: broker.url, NO_COLOR: "1" };
      const printed = execFileSync(process.execPath, [`${file}.js`], { env, encoding: "utf8" });
      assert.equal(printed, shows ?? "");
    });
  }
});
