// The JavaScript SDK's share of the benches: user and system microseconds for each operation.
import assert from "node:assert/strict";
import { TableClient, odata } from "@azure/data-tables";

const [POINTS, TRANSACTIONS, TRANSACTION, QUERIES, QUERIED] = [400, 20, 100, 4, 5000];
const EMAIL = "jonesj@contoso.example";
const NOTES =
  "a note of a hundred and twenty characters or so, which is what a row of a real " +
  "table has, give or take some few words more";
const HIRED = new Date("2014-08-22T00:50:32Z");

const key = (at) => `empid_${String(at).padStart(6, "0")}`;
const employee = (partitionKey, at) => ({
  partitionKey,
  rowKey: key(at),
  FirstName: "Don",
  LastName: "Hall",
  Age: 34,
  Email: EMAIL,
  Salary: 55000.5,
  Hired: HIRED,
  Notes: NOTES,
});

async function measured(name, count, work) {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  console.log(name, (user + system) / count);
}

const table = TableClient.fromConnectionString(
  process.env.ENTABLE_AZURITE,
  `BenchJavaScript${process.pid}`,
  { allowInsecureConnection: true },
);
await table.createTable();
await table.createEntity(employee("single", POINTS));
await measured("insert", POINTS, async () => {
  for (let at = 0; at < POINTS; at++) await table.createEntity(employee("single", at));
});
await measured("get", POINTS, async () => {
  for (let at = 0; at < POINTS; at++) {
    assert.equal((await table.getEntity("single", key(at))).Age, 34);
  }
});
async function transact(first, last) {
  for (let part = first; part < last; part++) {
    const rows = [];
    for (let at = 0; at < TRANSACTION; at++) {
      rows.push(["create", employee("many", part * TRANSACTION + at)]);
    }
    await table.submitTransaction(rows);
  }
}
await measured("transaction", TRANSACTIONS * TRANSACTION, () => transact(0, TRANSACTIONS));
await transact(TRANSACTIONS, QUERIED / TRANSACTION);
await measured("query", QUERIES * QUERIED, async () => {
  for (let query = 0; query < QUERIES; query++) {
    let rows = 0;
    const queryOptions = { filter: odata`PartitionKey eq ${"many"}` };
    for await (const _ of table.listEntities({ queryOptions })) rows += 1;
    assert.equal(rows, QUERIED);
  }
});
await table.deleteTable();
