// SPDX-License-Identifier: Apache-2.0
// Who looks at the page and what it may do, as the broker says it. The broker refuses what is not
// allowed in any case; the page only leaves out what would be refused.
import { createContext } from "preact";
import { useContext } from "preact/hooks";

export interface Me {
  /** The agent that asks; absent where the broker does not ask who anybody is. */
  agent_id?: string | null;
  tenant: string;
  /** Whether the broker asks who its callers are. */
  authentication: boolean;
  /** Operations of the table that the caller may use. */
  operations: string[];
  version: string;
  now: string;
}

export interface Seat {
  me: Me;
  /** In whose name things are done. */
  by: string;
}

export const SeatContext = createContext<Seat | null>(null);

export function useSeat(): Seat {
  const seat = useContext(SeatContext);
  if (!seat) throw new Error("pages are shown to somebody");
  return seat;
}

export function useMay(): (operation: string) => boolean {
  const { me } = useSeat();
  return (operation) => me.operations.includes(operation);
}
