// SPDX-License-Identifier: Apache-2.0
// Before the guide's program: where the AI SDK finds models by their names.

import { model } from "./scripted-ai.js";

const provider = { specificationVersion: "v4", languageModel: () => model };
Object.assign(globalThis, { AI_SDK_DEFAULT_PROVIDER: provider });
