// The JavaScript SDKs' side: `interop.mjs write <table>`, `interop.mjs read <table> <writer>`,
// `interop.mjs send|receive|poison <queue>`.
import assert from "node:assert/strict";
import { TableClient, odata } from "@azure/data-tables";
import { QueueServiceClient } from "@azure/storage-queue";

const AWKWARD = "o'brien %25+é😀";
const GUID = "01234567-89ab-cdef-0123-456789abcdef";
const AT = "2014-08-22T00:50:32.1234567Z";
const BINARY = new Uint8Array([0, 1, 254, 255]);
const TEXT = "a \"quoted\" \\ text, é, 😀";

const [verb, name, writer] = process.argv.slice(2);
const table = TableClient.fromConnectionString(process.env.ENTABLE_AZURITE, name, {
  allowInsecureConnection: true,
});

async function write() {
  const partitionKey = "javascript";
  await table.createEntity({
    partitionKey,
    rowKey: "types",
    Yes: true,
    Int32: -5,
    Int64: 9007199254740993n,
    Whole: { type: "Double", value: 3 },
    Double: -1.5e300,
    Text: TEXT,
    At: { type: "DateTime", value: AT },
    Guid: { type: "Guid", value: GUID },
    Binary: BINARY,
  });
  await table.upsertEntity({ partitionKey, rowKey: AWKWARD, Text: AWKWARD }, "Replace");
  const row = (rowKey, N) => ({ partitionKey, rowKey, N });
  await table.submitTransaction([["create", row("egt-a", 1)], ["create", row("egt-b", 1)]]);
  await table.submitTransaction([
    ["update", row("egt-a", 2), "Merge"],
    ["delete", row("egt-b", 1)],
    ["upsert", row("egt-c", 3), "Replace"],
  ]);
}

async function read() {
  const plain = await table.getEntity(writer, "types");
  assert.equal(plain.Yes, true);
  assert.equal(plain.Int32, -5);
  assert.equal(plain.Int64, 9007199254740993n);
  assert.equal(plain.Text, TEXT);
  assert.equal(plain.Guid.value, GUID);
  assert.deepEqual(new Uint8Array(plain.Binary), BINARY);
  const typed = await table.getEntity(writer, "types", { disableTypeConversion: true });
  // A whole Double has no annotation in an answer, and JavaScript reads `3.0` as `3`: the SDK takes
  // it for an Int32.
  assert.equal(Number(typed.Whole.value ?? typed.Whole), 3);
  assert.equal(Number(typed.Double.value ?? typed.Double), -1.5e300);
  const at = writer === "python" ? AT.replace("7Z", "Z") : AT;
  assert.equal(typed.At.value, at);
  assert.equal((await table.getEntity(writer, AWKWARD)).Text, AWKWARD);
  assert.equal((await table.getEntity(writer, "egt-a")).N, 2);
  assert.equal((await table.getEntity(writer, "egt-c")).N, 3);
  await assert.rejects(table.getEntity(writer, "egt-b"), { statusCode: 404 });
  let rows = 0;
  const filter = odata`PartitionKey eq ${writer}`;
  for await (const _ of table.listEntities({ queryOptions: { filter } })) rows += 1;
  assert.equal(rows, 4);
}

const queue = (name) =>
  QueueServiceClient.fromConnectionString(process.env.ENTABLE_AZURITE).getQueueClient(name);
const message = (id) => JSON.stringify({ type: "Interop", version: 1, body: { id, text: TEXT } });
const decoded = (one) => JSON.parse(Buffer.from(one.messageText, "base64").toString("utf8"));

// As Azure Functions do it, and as this SDK does it by itself.
async function send() {
  const texts = [Buffer.from(message(1), "utf8").toString("base64"), message(2)];
  for (const text of texts) await queue(name).sendMessage(text, { messageTimeToLive: -1 });
}

async function receive() {
  const { receivedMessageItems } = await queue(name).receiveMessages({ visibilityTimeout: 60 });
  assert.equal(receivedMessageItems.length, 1);
  const [one] = receivedMessageItems;
  assert.ok(one.expiresOn.getUTCFullYear() >= 9999, `it expires: ${one.expiresOn}`);
  const { id, ...rest } = decoded(one);
  assert.match(id, /^[0-9a-f]{24}$/);
  assert.deepEqual(rest, { format: 1, type: "Interop", version: 1, body: { id: 0, text: TEXT } });
  await queue(name).deleteMessage(one.messageId, one.popReceipt);
}

async function poison() {
  const { peekedMessageItems } = await queue(`${name}-poison`).peekMessages();
  assert.deepEqual(decoded(peekedMessageItems[0]).body.id, 1);
}

await { write, read, send, receive, poison }[verb]();
console.log(`javascript: ${verb} ${writer ?? ""}`);
