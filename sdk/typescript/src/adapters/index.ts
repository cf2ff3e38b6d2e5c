// SPDX-License-Identifier: Apache-2.0
// What adapters are made of, for frameworks that have none here: `tasuki/adapters`. The suite of
// `interop/frameworks` holds whatever is made of it.

export { why } from "../handoffs.js";
export * from "./run.js";
export { brief, classified, expectedSchema, type Serving, served } from "./serving.js";
