// Builds the pages into the folder that the broker takes them from. `--check` compares instead.
import { build } from "esbuild";
import { readFile, writeFile, mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "../crates/tasuki-http/ui");

const result = await build({
  absWorkingDir: here,
  entryPoints: { app: "src/main.tsx" },
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
  write: false,
  outdir: out,
});
const licence = "/* Includes Preact, copyright (c) Jason Miller, under the MIT licence: see LICENSE-preact. */\n";
const files = new Map([
  ["app.js", licence + result.outputFiles[0].text],
  ["app.css", await readFile(join(here, "src/app.css"), "utf8")],
  ["index.html", await readFile(join(here, "src/index.html"), "utf8")],
  ["LICENSE-preact", await readFile(join(here, "node_modules/preact/LICENSE"), "utf8")],
]);

await mkdir(out, { recursive: true });
let stale = 0;
for (const [name, text] of files) {
  const path = join(out, name);
  const was = await readFile(path, "utf8").catch(() => null);
  if (was === text) continue;
  if (process.argv.includes("--check")) {
    console.error(`crates/tasuki-http/ui/${name} is out of date: run cargo xtask dashboard`);
    stale += 1;
  } else {
    await writeFile(path, text);
  }
}
process.exit(stale ? 1 : 0);
