// SPDX-License-Identifier: Apache-2.0
// Keys: who an agent is, and what it signs. A request is signed as RFC 9421 says, with Ed25519 and
// one list of covered components. What outlives a request (an offer, an acceptance, a result) is
// signed apart, as a statement that anybody with the public key can check.

import { address, type JsonObject, sha256 } from "./json.js";

const PUBLIC = "ed25519:";
const SECRET = "ed25519-secret:";
const DIGITS = "0123456789abcdefghjkmnpqrstvwxyz";
const VALIDITY_S = 30;
const KEY_FILE_BYTES_MAX = 4096;
/** PKCS #8 around the 32 bytes of an Ed25519 secret. */
const PKCS8 = Uint8Array.from([48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 112, 4, 34, 4, 32]);
const encoder = new TextEncoder();

type CryptoKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

export interface Signed {
  key_id: string;
  signature: string;
}

/** An Ed25519 key pair. The secret half never leaves this machine, nor this object's text. */
export class Key {
  readonly #private: CryptoKey;
  readonly #seed: Uint8Array<ArrayBuffer>;

  private constructor(
    secret: CryptoKey,
    seed: Uint8Array<ArrayBuffer>,
    readonly publicBytes: Uint8Array<ArrayBuffer>,
    /** What names this key in a signature. */
    readonly id: string,
    /** Whose key it is, if that is known. */
    readonly agent: string | undefined,
    /** The key of the broker where it was enrolled, if that is known: requests are for no other. */
    readonly broker: string | undefined,
  ) {
    this.#private = secret;
    this.#seed = seed;
  }

  /** A new one. */
  static generate(agent?: string): Promise<Key> {
    return Key.fromSeed(crypto.getRandomValues(new Uint8Array(32)), agent);
  }

  /** From the 32 bytes of its secret. */
  static async fromSeed(seed: Uint8Array, agent?: string, broker?: string): Promise<Key> {
    if (seed.length !== 32) throw new TypeError(`a secret has 32 bytes, not ${seed.length}`);
    const wrapped = new Uint8Array([...PKCS8, ...seed]);
    const readable = await crypto.subtle.importKey("pkcs8", wrapped, "Ed25519", true, ["sign"]);
    const { x } = await crypto.subtle.exportKey("jwk", readable);
    const secret = await crypto.subtle.importKey("pkcs8", wrapped, "Ed25519", false, ["sign"]);
    const open = unbase64url(x ?? "");
    return new Key(secret, Uint8Array.from(seed), open, await keyId(open), agent, broker);
  }

  /** Reads a key file, as `tasuki keys new` and `save` write it. */
  static async load(path: string): Promise<Key> {
    const { open } = await import("node:fs/promises");
    const file = await open(path, "r");
    let text: string;
    try {
      const mode = (await file.stat()).mode & 0o777;
      if (globalThis.process?.platform !== "win32" && mode & 0o077) {
        throw new Error(
          `others can get at the key file ${path} (mode ${mode.toString(8)}): make it private ` +
            "with chmod 600, and replace the key if somebody may have read it",
        );
      }
      const { buffer, bytesRead } = await file.read(Buffer.alloc(KEY_FILE_BYTES_MAX));
      text = buffer.subarray(0, bytesRead).toString("utf8");
    } finally {
      await file.close();
    }
    const [first = "", ...rest] = text.split("\n");
    if (!first.startsWith(SECRET)) {
      throw new Error(`${path} is no key file: \`tasuki keys new\` makes one`);
    }
    const said = (name: string) =>
      rest
        .find((line) => line.startsWith(`${name}:`))
        ?.slice(name.length + 1)
        .trim();
    const seed = unbase64url(first.slice(SECRET.length).trim());
    return Key.fromSeed(seed, said("agent"), said("broker"));
  }

  /** Writes a key file that only its owner can read. One that is there is never overwritten. */
  async save(path: string): Promise<void> {
    const { open } = await import("node:fs/promises");
    const file = await open(path, "wx", 0o600);
    try {
      const whose = this.agent ? `agent: ${this.agent}\n` : "";
      const where = this.broker ? `broker: ${this.broker}\n` : "";
      await file.writeFile(`${SECRET}${base64url(this.#seed)}\n${whose}${where}`);
      await file.sync();
    } finally {
      await file.close();
    }
  }

  /** The public half, as it is enrolled. */
  get public(): string {
    return PUBLIC + base64url(this.publicBytes);
  }

  toString(): string {
    return `Key(${this.id})`;
  }

  /** Signs something that outlives a request. */
  async statement(kind: string, ...parts: (string | Uint8Array)[]): Promise<Signed> {
    const signature = base64url(await this.#sign(statement(kind, ...parts)));
    return { key_id: this.id, signature };
  }

  /** Shows that whoever wants this key enrolled for an agent has it. */
  async possession(agent: string): Promise<string> {
    return base64url(await this.#sign(statement("enroll", bare(agent), this.publicBytes)));
  }

  /** The headers that show from whom a request is, and for the broker with which key. */
  async headers(
    method: string,
    url: URL,
    content: string | undefined,
    audience?: string,
  ): Promise<JsonObject> {
    const created = Math.floor(Date.now() / 1000);
    const lines: [string, string][] = [
      ["@method", method],
      ["@authority", url.host.toLowerCase()],
      ["@path", url.pathname],
      ["@query", url.search || "?"],
    ];
    const headers: { [name: string]: string } = {};
    if (content) {
      const digest = base64(await sha256(encoder.encode(content)));
      headers["content-digest"] = `sha-256=:${digest}:`;
      lines.push(["content-digest", headers["content-digest"]]);
    }
    const listed = lines.map(([name]) => `"${name}"`).join(" ");
    const nonce = crypto.randomUUID().replaceAll("-", "");
    const params =
      `(${listed});created=${created};expires=${created + VALIDITY_S};` +
      `nonce="${nonce}";keyid="${this.id}";tag="tasuki-v1"` +
      (audience ? `;audience="${audience}"` : "");
    const covered = lines.map(([name, value]) => `"${name}": ${value}`);
    const base = [...covered, `"@signature-params": ${params}`].join("\n");
    const signature = base64(await this.#sign(encoder.encode(base)));
    headers["signature-input"] = `tasuki=${params}`;
    headers.signature = `tasuki=:${signature}:`;
    return headers;
  }

  async #sign(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
    return new Uint8Array(await crypto.subtle.sign("Ed25519", this.#private, bytes));
  }
}

/** Whether a statement was signed with this public key. Needs no broker. */
export async function verify(
  publicKey: string,
  signed: Signed,
  kind: string,
  ...parts: (string | Uint8Array)[]
): Promise<boolean> {
  const raw = unbase64url(publicKey.replace(PUBLIC, ""));
  if ((await keyId(raw)) !== signed.key_id) return false;
  const key = await crypto.subtle.importKey("raw", raw, "Ed25519", false, ["verify"]);
  const bytes = unbase64url(signed.signature);
  return crypto.subtle.verify("Ed25519", key, bytes, statement(kind, ...parts));
}

/** The bytes of a statement: lengths stand before contents, so that no two are the same. */
function statement(kind: string, ...parts: (string | Uint8Array)[]): Uint8Array<ArrayBuffer> {
  const contents = [kind, ...parts].map((it) => (typeof it === "string" ? encoder.encode(it) : it));
  const bytes: number[] = [...encoder.encode("tasuki-v1\0")];
  for (const content of contents) {
    const length = new DataView(new ArrayBuffer(8));
    length.setBigUint64(0, BigInt(content.length));
    bytes.push(...new Uint8Array(length.buffer), ...content);
  }
  return Uint8Array.from(bytes);
}

/** The address of what the sender itself says in an offer or an envelope: to whom, what, and in
 * whose words. This is what `signed` covers. */
export function authored(envelope: JsonObject): Promise<string> {
  const to = (envelope.asked_to ?? envelope.to) as { [kind: string]: string };
  return address({
    from_agent: bare(String(envelope.from_agent)),
    to: Object.fromEntries(Object.entries(to).map(([kind, name]) => [kind, bare(name)])),
    action: envelope.action ?? "request",
    control: envelope.control ?? "passed",
    intent: envelope.intent,
    payload: envelope.payload,
  });
}

/** A name without its tenant. */
export function bare(name: string): string {
  return name.slice(name.lastIndexOf("/") + 1);
}

async function keyId(raw: Uint8Array): Promise<string> {
  const digest = await sha256(Uint8Array.from([...encoder.encode("tasuki-key-v1\0"), ...raw]));
  let value = 0n;
  for (const byte of digest.subarray(0, 16)) value = (value << 8n) | BigInt(byte);
  let text = "";
  for (let place = 25; place >= 0; place -= 1) {
    text += DIGITS[Number((value >> BigInt(place * 5)) & 31n)];
  }
  return `key_${text}`;
}

function base64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}

function base64url(bytes: Uint8Array): string {
  return base64(bytes).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function unbase64url(text: string): Uint8Array<ArrayBuffer> {
  const raw = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(raw, (letter) => letter.charCodeAt(0));
}
