// A conversation of the reference clients with `gcdump mcp`: node .ci/mcp.mjs FOLDER GCDUMP, the folder with their packages as .ci/mcp prints it.
import assert from 'node:assert/strict';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const [folder, program] = process.argv.slice(2).map((p) => path.resolve(p));
const repository = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const from = (file) => import(pathToFileURL(path.join(folder, 'node_modules/@modelcontextprotocol', file)));
const dump = path.join(repository, 'dumps/net10-wks-basics-heap.dmp.zst');
const corpus = path.join(repository, 'dumps/corpus');
const leak = (which) => path.join(corpus, `net10-wks-leak-heap.${which}.dmp.zst`);
const object = '0x7f316dc27908';

const filled = (example) =>
  JSON.parse(
    JSON.stringify(example)
      .replaceAll('0x7f31535a25f8', object)
      .replaceAll('before.dmp', leak('before'))
      .replaceAll('after.dmp', leak('after')),
  );

async function talk(name, client, transport) {
  await client.connect(transport);
  assert.equal(client.getServerVersion().name, 'gcdump');
  assert.match(client.getInstructions(), /never an instruction/);
  const { tools } = await client.listTools();
  assert.ok(tools.length >= 15 && tools.length <= 20, `${tools.length} tools`);
  assert.ok(JSON.stringify(tools).length <= 25000);
  let calls = 0;
  for (const tool of tools) {
    for (const example of tool.inputSchema.examples ?? [{}]) {
      const result = await client.callTool({ name: tool.name, arguments: filled(example) });
      assert.ok(!result.isError, `${tool.name}: ${result.content[0].text}`);
      JSON.parse(result.content[0].text);
      assert.ok(result.content.reduce((bytes, part) => bytes + part.text.length, 0) <= 8000, tool.name);
      calls += 1;
    }
  }
  for (const [tool, given] of [
    ['object', { address: '0x10' }],
    ['heap', { dump: '/etc/passwd' }],
    ['heap', { dump: path.join(corpus, '../../../etc/passwd') }],
    ['stat', { top: 'some' }],
  ]) {
    const result = await client.callTool({ name: tool, arguments: given });
    assert.ok(result.isError && result.content[0].text.length > 10, tool);
  }
  await assert.rejects(client.callTool({ name: 'trim', arguments: {} }));
  // A call that its client gives up, and one behind it.
  const stop = new AbortController();
  const given = client.callTool({ name: 'retained', arguments: { dump: leak('after') } }, undefined, { signal: stop.signal });
  const given2 = client.callTool({ name: 'retained', arguments: { dump: leak('after') } }, { signal: stop.signal });
  const both = Promise.allSettled([given, given2]);
  stop.abort();
  await both;
  const { content } = await client.callTool({ name: 'heap', arguments: {} });
  assert.equal(JSON.parse(content[0].text).command, 'heap');
  const { prompts } = await client.listPrompts();
  assert.equal(prompts.length, 3);
  assert.equal((await client.getPrompt({ name: 'crash' })).messages.length, 1);
  const { resources } = await client.listResources();
  assert.ok((await client.readResource({ uri: resources[0].uri })).contents[0].text.length > 100);
  await client.close();
  console.log(`${name}: ${tools.length} tools, ${calls} calls`);
}

const server = { command: program, args: ['mcp', '--no-local-files', '--root', corpus, dump], stderr: 'inherit' };
const about = { name: 'gcdump-ci', version: '1' };

const v1 = await from('sdk/dist/esm/client/index.js');
const v1stdio = await from('sdk/dist/esm/client/stdio.js');
await talk('sdk 1', new v1.Client(about), new v1stdio.StdioClientTransport(server));

const v2 = await from('client/dist/index.mjs');
const v2stdio = await from('client/dist/stdio.mjs');
await talk('client 2, handshake', new v2.Client(about), new v2stdio.StdioClientTransport(server));
for (const mode of ['auto', { pin: '2026-07-28' }]) {
  const client = new v2.Client(about, { versionNegotiation: { mode } });
  await talk(`client 2, ${JSON.stringify(mode)}`, client, new v2stdio.StdioClientTransport(server));
  assert.equal(client.getProtocolEra?.() ?? 'modern', 'modern');
}
