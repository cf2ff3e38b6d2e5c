// SPDX-License-Identifier: Apache-2.0
// The shell around the pages: who looks, where they are, and the way to everything else.
import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { call, Failed, get, whenSignedOut } from "./api.ts";
import { useOnline } from "./live.ts";
import { type Me, type Seat, SeatContext } from "./me.ts";
import { Fault } from "./parts.tsx";
import { AgentPage, AgentsPage } from "./pages/agents.tsx";
import { InboxPage } from "./pages/inbox.tsx";
import { LetterPage, LettersPage } from "./pages/letters.tsx";
import { AlertsPage, AuditPage, FidelityPage, PipelinesPage, ReadyPage } from "./pages/others.tsx";
import { Overview } from "./pages/overview.tsx";
import { PopulationPage } from "./pages/population.tsx";
import { TaskPage } from "./pages/task.tsx";
import { TasksPage } from "./pages/tasks.tsx";
import { link, usePlace } from "./route.ts";
import { heardTime } from "./words.ts";

const PAGES: [string, string][] = [
  ["", "Overview"], ["tasks", "Tasks"], ["ready", "Waiting"], ["letters", "Dead letters"], ["inbox", "Inbox"],
  ["agents", "Agents"], ["pipelines", "Pipelines"], ["fidelity", "Fidelity"], ["alerts", "Alerts"], ["audit", "Audit"],
  ["population", "Population"],
];

const NAME_KEY = "tasuki-name";

function Page() {
  const { at } = usePlace();
  const [page, id] = at;
  switch (page) {
    case undefined: return <Overview />;
    case "tasks": return id ? <TaskPage key={id} id={id} /> : <TasksPage />;
    case "letters": return id ? <LetterPage key={id} id={id} /> : <LettersPage />;
    case "agents": return id ? <AgentPage key={id} name={id} /> : <AgentsPage />;
    case "ready": return <ReadyPage />;
    case "inbox": return <InboxPage />;
    case "pipelines": return <PipelinesPage />;
    case "fidelity": return <FidelityPage />;
    case "alerts": return <AlertsPage />;
    case "audit": return <AuditPage />;
    case "population": return <PopulationPage />;
    default: return <><h1>Nothing is here</h1><p><a href={link([])}>Back to the overview</a></p></>;
  }
}

function App() {
  const [me, setMe] = useState<Me | null>(null);
  const [failed, setFailed] = useState<Failed | undefined>(undefined);
  const [signedOut, setSignedOut] = useState(false);
  const load = async () => {
    try {
      const got = await get<Me>("/v1/session");
      heardTime(got.now);
      setMe(got);
      setFailed(undefined);
      setSignedOut(false);
    } catch (error) {
      if (!(error instanceof Failed)) throw error;
      if (error.status === 401) setSignedOut(true);
      else {
        setFailed(error);
        setTimeout(() => void load(), 3000);
      }
    }
  };
  useEffect(() => {
    whenSignedOut(() => setSignedOut(true));
    void load();
  }, []);
  if (signedOut) return <SignIn done={() => void load()} />;
  if (!me) return <main><h1>Tasuki</h1><Fault failed={failed} />{failed ? null : <p role="status">Loading…</p>}</main>;
  return <Shell me={me} leave={() => { setMe(null); setSignedOut(true); }} />;
}

function Shell({ me, leave }: { me: Me; leave: () => void }) {
  const { at } = usePlace();
  const online = useOnline();
  const [name, setName] = useState(me.agent_id ?? localStorage.getItem(NAME_KEY) ?? "operator");
  const seat: Seat = { me, by: me.agent_id ?? name };
  const main = useRef<HTMLElement>(null);
  const here = at[0] ?? "";
  const title = PAGES.find(([page]) => page === here)?.[1] ?? "Tasuki";
  const where = at.join("/");
  const moved = useRef(false);
  useEffect(() => {
    document.title = `${at[1] ?? title} · Tasuki`;
    // Whoever goes to another page begins at its top, also with a screen reader.
    if (moved.current) {
      main.current?.focus();
      scrollTo(0, 0);
    }
    moved.current = true;
  }, [where]);
  const rename = (event: Event) => {
    const text = (event.currentTarget as HTMLInputElement).value.trim();
    if (text === "") return;
    localStorage.setItem(NAME_KEY, text);
    setName(text);
  };
  return (
    <SeatContext.Provider value={seat}>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>Skip to the page</a>
      <header class="top">
        <strong>Tasuki</strong>
        <nav aria-label="Pages">
          {PAGES.map(([page, label]) => (
            <a key={page} href={link(page ? [page] : [])} aria-current={page === here ? "page" : undefined}>{label}</a>
          ))}
          <a href="../docs">API</a>
        </nav>
        {me.authentication ? (
          <span>
            {me.agent_id}{" "}
            <button type="button" onClick={() => void call("DELETE", "/ui/session").finally(leave)}>Sign out</button>
          </span>
        ) : (
          <label class="line">Acting as <input value={name} size={10} onChange={rename} /></label>
        )}
      </header>
      {online ? null : <div class="note bad" role="alert" style="margin:1rem">The broker does not answer. What is shown may be old; the page tries again by itself.</div>}
      <main id="main" ref={main} tabIndex={-1}><Page /></main>
    </SeatContext.Provider>
  );
}

function SignIn({ done }: { done: () => void }) {
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState<Failed | undefined>(undefined);
  const enter = async (event: Event) => {
    event.preventDefault();
    const token = (new FormData(event.currentTarget as HTMLFormElement).get("token") as string).trim();
    setBusy(true);
    try {
      await call("POST", "/ui/session", {}, { token });
      done();
    } catch (error) {
      if (error instanceof Failed) setFailed(error);
      else throw error;
    } finally {
      setBusy(false);
    }
  };
  return (
    <main style="max-width:34rem">
      <h1>Sign in to Tasuki</h1>
      <p>This broker asks who its callers are. A token is issued by <code>tasuki token issue</code>.</p>
      <Fault failed={failed} />
      <form onSubmit={(event) => void enter(event)}>
        <label style="display:flex">Token<input name="token" type="password" autoComplete="off" required /></label>
        <div class="row"><button class="main" type="submit" disabled={busy}>Sign in</button></div>
      </form>
      <p class="faint">It becomes a session of eight hours that no script can read. The token itself is not kept.</p>
    </main>
  );
}

const root = document.getElementById("app");
if (root) render(<App />, root);
