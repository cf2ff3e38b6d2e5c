// SPDX-License-Identifier: Apache-2.0
// Before the guide's program: where OpenAI Agents finds models by their names.

import { setDefaultModelProvider, setTracingDisabled } from "@openai/agents";
import { Scripted } from "./openai.js";

setTracingDisabled(true);
setDefaultModelProvider({ getModel: () => new Scripted() });
