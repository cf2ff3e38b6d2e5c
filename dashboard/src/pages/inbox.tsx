// SPDX-License-Identifier: Apache-2.0
// What waits for a person: approvals and questions.
import { useState } from "preact/hooks";
import { Failed, get, part, post } from "../api.ts";
import { useLive } from "../live.ts";
import { useMay, useSeat } from "../me.ts";
import { Act, Ask, Asked, Empty, Facts, Fault, Id, When } from "../parts.tsx";
import { task } from "../route.ts";
import type { Envelope, Handoff, Handoffs, OpenQuestion, Questions } from "../wire.ts";
import { pretty, span, target } from "../words.ts";

export function InboxPage() {
  const live = useLive("inbox", async (signal) => {
    const [approvals, questions] = await Promise.all([
      get<Handoffs>("/v1/handoffs", { state: "awaiting_approval", limit: 100 }, signal),
      get<Questions>("/v1/questions", { limit: 100 }, signal),
    ]);
    return { approvals: approvals.handoffs, questions: questions.questions };
  });
  return (
    <>
      <h1>Approvals and questions</h1>
      <Asked live={live}>
        {({ approvals, questions }) => (
          <>
            <h2>Questions</h2>
            {questions.length === 0 ? <Empty>Nobody has asked anything.</Empty> : null}
            {questions.map((one) => <QuestionCard key={one.question} one={one} again={live.again} />)}
            <h2>Approvals</h2>
            {approvals.length === 0 ? <Empty>Nothing waits for an approval.</Empty> : null}
            {approvals.map((one) => <ApprovalCard key={one.handoff_id} one={one} again={live.again} />)}
          </>
        )}
      </Asked>
    </>
  );
}

function QuestionCard({ one, again }: { one: OpenQuestion; again: () => void }) {
  const { by } = useSeat();
  const may = useMay();
  const [text, setText] = useState("");
  const [isJson, setIsJson] = useState(one.schema !== undefined && one.schema !== null);
  const answer = () => {
    let value: unknown = text;
    if (isJson) {
      try {
        value = JSON.parse(text);
      } catch (error) {
        throw new Failed(400, { code: "invalid_json", message: String(error), hint: "write JSON, or take the tick away" });
      }
    }
    return post(`/v1/handoffs/${part(one.handoff_id)}/answer`, { by, answer: value, question: one.question });
  };
  return (
    <section class="card" style="margin:.6rem 0" aria-label={`Question of ${one.asked_by}`}>
      <strong>{one.asked_by} asks{one.kind === "authorization" ? " for leave" : ""}:</strong>
      <p class="wrap">{one.text ?? ""}</p>
      <Facts rows={[
        ["Task", <Id id={one.task_id} to={task(one.task_id)} />],
        ["Asked", <When at={one.asked_at} />],
        ["To be answered within", one.answered_at ? null : span(one.answer_left_ms)],
        ["Without an answer", one.default === undefined || one.default === null ? "it fails" : <code>{JSON.stringify(one.default)}</code>],
        ["Details", one.details && Object.keys(one.details).length ? <pre tabIndex={0}>{pretty(one.details)}</pre> : null],
        ["Must fit", one.schema ? <pre tabIndex={0}>{pretty(one.schema)}</pre> : null],
      ]} />
      {may("question_answer") && !one.answered_at ? (
        <>
          <label>
            Answer
            <textarea rows={3} value={text} onInput={(event) => setText((event.currentTarget as HTMLTextAreaElement).value)} />
          </label>
          <div class="row">
            <label class="line"><input type="checkbox" checked={isJson} onChange={() => setIsJson(!isJson)} /> it is JSON</label>
            <Act label="Answer" main run={async () => answer()} done={again} />
          </div>
        </>
      ) : null}
    </section>
  );
}

function ApprovalCard({ one, again }: { one: Handoff; again: () => void }) {
  const { by } = useSeat();
  const may = useMay();
  const envelope = useLive<Envelope>(`approve ${one.handoff_id}`, (signal) => get(`/v1/handoffs/${part(one.handoff_id)}/envelope`, {}, signal));
  return (
    <section class="card" style="margin:.6rem 0" aria-label={`Handoff of ${one.from_agent} to ${target(one.to)}`}>
      <strong>{one.from_agent} → {target(one.to)}</strong>
      <Facts rows={[
        ["Task", <Id id={one.task_id} to={task(one.task_id)} />],
        ["Offered", <When at={one.offered_at} />],
        ["Expires", <When at={one.expires_at} />],
        ["Approvers", one.contract?.approvers?.join(", ")],
        ["Asks", envelope.value?.ask],
        ["Intent", envelope.value?.intent],
      ]} />
      <Fault failed={envelope.failed} />
      {envelope.value ? <details><summary>Envelope</summary><pre tabIndex={0}>{pretty(envelope.value)}</pre></details> : null}
      {may("handoff_approve") ? (
        <div class="row">
          <Act label="Approve" main run={() => post(`/v1/handoffs/${part(one.handoff_id)}/approve`, { by })} done={again} />
          <Ask label="Reject" title="Reject it" danger fields={[{ name: "reason", label: "Reason" }]} done={again}
            run={({ reason }) => post(`/v1/handoffs/${part(one.handoff_id)}/reject`, { by, reason })} />
        </div>
      ) : null}
    </section>
  );
}
