"""The Python SDK's side: `interop.py write <table>`, `interop.py read <table> <writer>`."""

import os
import sys
import uuid
from datetime import datetime, timezone

from azure.core.exceptions import ResourceNotFoundError
from azure.data.tables import EdmType, EntityProperty, TableClient

AWKWARD = "o'brien %25+é😀"
GUID = uuid.UUID("01234567-89ab-cdef-0123-456789abcdef")
BINARY = bytes([0, 1, 254, 255])
TEXT = "a \"quoted\" \\ text, é, 😀"


def client(table):
    return TableClient.from_connection_string(os.environ["ENTABLE_AZURITE"], table_name=table)


def write(table):
    at = datetime(2014, 8, 22, 0, 50, 32, 123456, tzinfo=timezone.utc)
    table.create_entity({
        "PartitionKey": "python",
        "RowKey": "types",
        "Yes": True,
        "Int32": -5,
        "Int64": EntityProperty(9007199254740993, EdmType.INT64),
        "Whole": 3.0,
        "Double": -1.5e300,
        "Text": TEXT,
        "At": at,
        "Guid": GUID,
        "Binary": BINARY,
    })
    table.upsert_entity({"PartitionKey": "python", "RowKey": AWKWARD, "Text": AWKWARD})

    def row(key, n):
        return {"PartitionKey": "python", "RowKey": key, "N": n}

    table.submit_transaction([("create", row("egt-a", 1)), ("create", row("egt-b", 1))])
    table.submit_transaction([
        ("update", row("egt-a", 2), {"mode": "merge"}),
        ("delete", row("egt-b", 1)),
        ("upsert", row("egt-c", 3)),
    ])


def equal(what, found, expected):
    if found != expected:
        raise SystemExit(f"python: {what} is {found!r}, expected {expected!r}")


def read(table, writer):
    row = table.get_entity(writer, "types")
    equal("Yes", row["Yes"], True)
    equal("Int32", row["Int32"], -5)
    equal("Int64", row["Int64"], EntityProperty(9007199254740993, EdmType.INT64))
    equal("Whole", (row["Whole"], type(row["Whole"])), (3.0, float))
    equal("Double", row["Double"], -1.5e300)
    equal("Text", row["Text"], TEXT)
    equal("At", row["At"].tables_service_value, "2014-08-22T00:50:32.1234567Z")
    equal("Guid", row["Guid"], GUID)
    equal("Binary", row["Binary"], BINARY)
    equal("awkward", table.get_entity(writer, AWKWARD)["Text"], AWKWARD)
    equal("egt-a", table.get_entity(writer, "egt-a")["N"], 2)
    equal("egt-c", table.get_entity(writer, "egt-c")["N"], 3)
    try:
        table.get_entity(writer, "egt-b")
        raise SystemExit("python: egt-b is there")
    except ResourceNotFoundError:
        pass
    rows = table.query_entities("PartitionKey eq @who", parameters={"who": writer})
    equal("rows", len(list(rows)), 4)


if __name__ == "__main__":
    verb, name, *rest = sys.argv[1:]
    with client(name) as opened:
        write(opened) if verb == "write" else read(opened, *rest)
    print(f"python: {verb} {' '.join(rest)}")
