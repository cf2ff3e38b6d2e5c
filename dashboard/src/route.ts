// SPDX-License-Identifier: Apache-2.0
// Where one is stands behind the #, so that pages work below any path and their filters can be sent
// to somebody else.
import { useEffect, useState } from "preact/hooks";

export interface Place {
  /** The parts of the path: ["tasks", "task_…"]. */
  at: string[];
  query: URLSearchParams;
}

export function read(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  const at = path.split("/").filter((piece) => piece !== "").map((piece) => {
    try {
      return decodeURIComponent(piece);
    } catch {
      return piece;
    }
  });
  return { at, query: new URLSearchParams(query) };
}

export function link(at: string[], query: Record<string, string> = {}): string {
  const kept = Object.entries(query).filter(([, value]) => value !== "");
  const text = new URLSearchParams(kept).toString();
  return `#/${at.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

export const task = (id: string): string => link(["tasks", id]);
export const letter = (id: string): string => link(["letters", id]);

export function usePlace(): Place {
  const [place, set] = useState(() => read(location.hash));
  useEffect(() => {
    const moved = () => set(read(location.hash));
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  return place;
}

/** Changes the filters without a new entry in the browser's history. */
export function refine(at: string[], query: Record<string, string>): void {
  history.replaceState(null, "", link(at, query));
  dispatchEvent(new HashChangeEvent("hashchange"));
}
