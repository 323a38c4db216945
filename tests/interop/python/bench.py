"""The Python SDK's share of the benches: user and system microseconds for each operation."""

import os
import resource
from datetime import datetime, timezone

from azure.data.tables import TableServiceClient

POINTS, TRANSACTIONS, TRANSACTION, QUERIES, QUERIED = 400, 20, 100, 4, 5000
EMAIL = "jonesj@contoso.example"
NOTES = ("a note of a hundred and twenty characters or so, which is what a row of a real "
         "table has, give or take some few words more")
HIRED = datetime(2014, 8, 22, 0, 50, 32, tzinfo=timezone.utc)


def employee(partition, at):
    return {
        "PartitionKey": partition, "RowKey": f"empid_{at:06}", "FirstName": "Don",
        "LastName": "Hall", "Age": 34, "Email": EMAIL, "Salary": 55000.5, "Hired": HIRED,
        "Notes": NOTES,
    }


def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measured(name, count, work):
    before = cpu()
    work()
    print(name, (cpu() - before) * 1e6 / count)


service = TableServiceClient.from_connection_string(os.environ["ENTABLE_AZURITE"])
table = service.create_table(f"BenchPython{os.getpid()}")
table.create_entity(employee("single", POINTS))


def insert():
    for at in range(POINTS):
        table.create_entity(employee("single", at))


def get():
    for at in range(POINTS):
        assert table.get_entity("single", f"empid_{at:06}")["Age"] == 34


def transact(first, last):
    for part in range(first, last):
        rows = range(part * TRANSACTION, (part + 1) * TRANSACTION)
        table.submit_transaction([("create", employee("many", at)) for at in rows])


def query():
    for _ in range(QUERIES):
        assert sum(1 for _ in table.query_entities("PartitionKey eq 'many'")) == QUERIED


measured("insert", POINTS, insert)
measured("get", POINTS, get)
measured("transaction", TRANSACTIONS * TRANSACTION, lambda: transact(0, TRANSACTIONS))
transact(TRANSACTIONS, QUERIED // TRANSACTION)
measured("query", QUERIES * QUERIED, query)
table.delete_table()
