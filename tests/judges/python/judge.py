"""A plugin of pytest: the SDK's own table tests against a server of this machine.

The variable ENTABLE_SERVED holds the endpoint. Each line of `differences.txt` is a test that fails, and the reason. A
listed test that passes fails the run, and so does a line without a test.
"""

import os
import pathlib
import sys
import time
import types

import pytest

ENDPOINT = os.environ["ENTABLE_SERVED"]
# Tests of Cosmos DB, and of Entra ID, which needs TLS.
OTHERS = ("cosmos", "aad", "challenge_auth")

# The tests wait half a minute for settings to take effect in a data centre, and clients between attempts.
time.sleep = lambda _seconds: None

# The tests import it, and use it only with Entra ID.
sys.modules["azure.identity"] = types.ModuleType("azure.identity")
sys.modules["azure.identity.aio"] = types.ModuleType("azure.identity.aio")
for name in ("azure.identity", "azure.identity.aio"):
    sys.modules[name].DefaultAzureCredential = None


def pytest_ignore_collect(collection_path):
    return True if any(other in collection_path.name for other in OTHERS) else None


def differences():
    lines = pathlib.Path(__file__).with_name("differences.txt").read_text().splitlines()
    pairs = (line.split(": ", 1) for line in lines if line and not line.startswith("#"))
    return {test: reason for test, reason in pairs}


def pytest_collection_modifyitems(items):
    from _shared.testcase import TableTestCase

    original = TableTestCase.account_url

    def account_url(self, account, kind):
        # Tests without a server compare addresses with those of Azure.
        return original(self, account, kind) if "UnitTest" in type(self).__name__ else ENDPOINT

    TableTestCase.account_url = account_url
    listed = differences()
    for item in items:
        if item.name.startswith("test_retry_on_socket_timeout"):
            item.add_marker(pytest.mark.skip(reason="whether a server is slower than a timeout depends on the machine"))
        name = f"{item.path.stem}::{item.name}"
        reason = listed.pop(name, None)
        if reason:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
    if listed:
        raise pytest.UsageError(f"differences.txt lists tests that do not exist: {sorted(listed)}")
