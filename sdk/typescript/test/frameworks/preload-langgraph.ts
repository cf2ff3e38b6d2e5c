// SPDX-License-Identifier: Apache-2.0
// Before the guide's program: a package that is not installed is the scripted model.

import { register } from "node:module";

const fake = new URL("./langchain.js", import.meta.url).href;
const source = `export async function resolve(name, context, next) {
  return name === "@langchain/openai" ? { url: "${fake}", shortCircuit: true } : next(name, context);
}`;
register(`data:text/javascript,${encodeURIComponent(source)}`);
