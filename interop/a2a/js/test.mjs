// SPDX-License-Identifier: Apache-2.0
// @a2a-js/sdk 1.3.0 as a client, on both bindings.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Role, TaskState } from '@a2a-js/sdk';
import { ClientFactory, ClientFactoryOptions } from '@a2a-js/sdk/client';

const root = join(import.meta.dirname, '..', '..', '..');
const binary = process.env.TASUKI_BIN ?? join(root, 'target', 'debug', 'tasuki');
const extension = 'https://w3id.org/tasuki/a2a/handoff/v1';
let directory, port, url, broker;

async function freePort() {
  const probe = createServer();
  await new Promise((done) => probe.listen(0, '127.0.0.1', done));
  const found = probe.address().port;
  await new Promise((done) => probe.close(done));
  return found;
}

async function start() {
  const data = join(directory, 'data');
  const options = ['serve', '--listen', `127.0.0.1:${port}`, '--data', data, '--until-stdin-closes'];
  broker = spawn(binary, options, { stdio: ['pipe', 'ignore', 'ignore'] });
  for (let left = 600; left > 0; left -= 1) {
    const ready = await fetch(`${url}/readyz`).then((it) => it.ok, () => false);
    if (ready) return;
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error('the broker is not ready');
}

async function kill() {
  const ended = new Promise((done) => broker.once('exit', done));
  broker.kill('SIGKILL');
  await ended;
}

async function ask(path, body) {
  const headers = { 'content-type': 'application/json' };
  const reply = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  const said = await reply.json();
  assert.ok(reply.ok, JSON.stringify(said));
  return said;
}

async function claim() {
  const claimed = await ask('/v1/claims', { agent: 'coder', max: 1, wait_ms: 50000 });
  const held = claimed.claims[0];
  const proof = { claim_id: held.claim_id, fence: held.fence };
  return { held, act: (what, more) => ask(`/v1/handoffs/${held.handoff_id}/${what}`, { ...proof, ...more }) };
}

async function complete(text) {
  const { act } = await claim();
  await act('complete', { payload: { type: 'text', text } });
}

async function connect(binding) {
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    preferredTransports: [binding],
  });
  const card = '/agents/coder/.well-known/agent-card.json';
  return new ClientFactory(options).createFromUrl(url, card);
}

function request(text, taskId = '', returnImmediately = true) {
  const part = { content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' };
  const message = {
    messageId: 'm-1', contextId: '', taskId, role: Role.ROLE_USER, parts: [part],
    metadata: undefined, extensions: [], referenceTaskIds: [],
  };
  const configuration = {
    acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately,
  };
  return { tenant: '', message, configuration, metadata: undefined };
}

async function all(pieces) {
  const told = [];
  for await (const piece of pieces) told.push(piece.payload);
  return told;
}

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tasuki-a2a-'));
  port = await freePort();
  url = `http://127.0.0.1:${port}`;
  await start();
  const skill = { name: 'code', description: 'Writes code.', tags: ['rust'] };
  await ask('/v1/agents', {
    manifest: { agent_id: 'coder', description: 'Writes code.', capabilities: [skill] },
  });
});

after(async () => {
  await kill();
  await rm(directory, { recursive: true });
});

for (const binding of ['JSONRPC', 'HTTP+JSON']) {
  test(`${binding}: a stream tells everything that a worker does`, async () => {
    const client = await connect(binding);
    const [told] = await Promise.all([
      all(client.sendMessageStream(request('Add it.', '', false))),
      complete('done'),
    ]);
    const artifact = told.find((it) => it.$case === 'artifactUpdate').value.artifact;
    assert.equal(artifact.parts[0].content.value, 'done');
    assert.equal(told.at(-1).value.status.state, TaskState.TASK_STATE_COMPLETED);
  });

  test(`${binding}: a send that waits is answered at the end`, async () => {
    const client = await connect(binding);
    const [task] = await Promise.all([
      client.sendMessage(request('Add it.', '', false)),
      complete('done'),
    ]);
    assert.equal(task.status.state, TaskState.TASK_STATE_COMPLETED);
  });

  test(`${binding}: a restart between send and get loses nothing`, async () => {
    const client = await connect(binding);
    const sent = await client.sendMessage(request('Add it.'));
    assert.equal(sent.status.state, TaskState.TASK_STATE_SUBMITTED);
    await kill();
    await start();
    const asked = { tenant: '', id: sent.id };
    assert.deepEqual(await client.getTask(asked), sent);
    await complete('done');
    const done = await client.getTask(asked);
    assert.equal(done.status.state, TaskState.TASK_STATE_COMPLETED);
  });

  test(`${binding}: a worker that is killed costs an attempt and not the task`, async () => {
    const client = await connect(binding);
    const said = request('Add it.');
    said.metadata = { [extension]: { terms: { lease_ms: 1000, backoff_ms: 100 } } };
    const sent = await client.sendMessage(said);
    const program = `const body = '{"agent":"coder","max":1,"wait_ms":50000}';
      const headers = { 'content-type': 'application/json' };
      await (await fetch('${url}/v1/claims', { method: 'POST', headers, body })).json();
      console.log('claimed'); setInterval(() => {}, 1e6);`;
    const worker = spawn(process.execPath, ['--input-type=module', '-e', program]);
    await new Promise((done) => worker.stdout.once('data', done));
    const ended = new Promise((done) => worker.once('exit', done));
    worker.kill('SIGKILL');
    await ended;
    await Promise.all([
      all(client.resubscribeTask({ tenant: '', id: sent.id })),
      complete('done'),
    ]);
    const done = await client.getTask({ tenant: '', id: sent.id });
    assert.equal(done.status.state, TaskState.TASK_STATE_COMPLETED);
    assert.equal(done.metadata[extension].attempt, 2);
  });

  test(`${binding}: a question is answered by the next message`, async () => {
    const client = await connect(binding);
    const asking = claim().then(({ act }) => act('ask', { text: 'Which path?' }));
    const [task] = await Promise.all([
      client.sendMessage(request('Add it.', '', false)),
      asking,
    ]);
    assert.equal(task.status.state, TaskState.TASK_STATE_INPUT_REQUIRED);
    const [done] = await Promise.all([
      client.sendMessage(request('/users', task.id, false)),
      complete('done'),
    ]);
    assert.equal(done.id, task.id);
    assert.equal(done.status.state, TaskState.TASK_STATE_COMPLETED);
  });

  test(`${binding}: cancelling, listing and coming back`, async () => {
    const client = await connect(binding);
    const sent = await client.sendMessage(request('Add it.'));
    const stream = client.resubscribeTask({ tenant: '', id: sent.id });
    const first = await stream.next();
    assert.equal(first.value.payload.value.id, sent.id);
    await client.cancelTask({ tenant: '', id: sent.id, metadata: undefined });
    const told = await all(stream);
    assert.equal(told.at(-1).value.status.state, TaskState.TASK_STATE_CANCELED);
    const listed = await client.listTasks({
      tenant: '', contextId: sent.contextId, status: TaskState.TASK_STATE_UNSPECIFIED,
      pageToken: '', statusTimestampAfter: undefined,
    });
    assert.deepEqual(listed.tasks.map((it) => it.id), [sent.id]);
    await assert.rejects(client.getTask({ tenant: '', id: 'no-such-task' }));
  });
}
