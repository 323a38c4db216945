"""What the SDK's own table tests use of Microsoft's recording tools, for a server that is there: nothing is recorded."""

import hashlib
import inspect
import os

import pytest

SETTINGS = {
    "tables_storage_account_name": "devstoreaccount1",
    "tables_primary_storage_account_key": "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
}


def get_credential(**_options):
    pytest.skip("Entra ID needs TLS")


def is_live():
    return True


def _accepted(test, given):
    """Returns the arguments of `given` that the test has a parameter for."""
    parameters = inspect.signature(test).parameters.values()
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return given
    names = {one.name for one in parameters}
    return {name: value for name, value in given.items() if name in names}


def with_arguments(test, more):
    """Returns the test as pytest calls it: with `more` arguments that are no fixtures."""
    if inspect.iscoroutinefunction(test):

        async def run(*args, **kwargs):
            return await test(*args, **_accepted(test, {**more, **kwargs}))

    else:

        def run(*args, **kwargs):
            return test(*args, **_accepted(test, {**more, **kwargs}))

    run.__name__ = test.__name__
    run.__dict__.update({name: value for name, value in test.__dict__.items() if name != "__wrapped__"})
    return run


def recorded_by_proxy(test):
    return with_arguments(test, {"variables": {}})


class PowerShellPreparer:
    def __init__(self, _directory, **names):
        self.given = {name: SETTINGS[name] for name in names if name in SETTINGS}

    def __call__(self, test):
        return with_arguments(test, self.given)


class AzureRecordedTestCase:
    is_live = True

    def get_resource_name(self, prefix):
        """Returns a name that is the same for each call of one test."""
        test = os.environ["PYTEST_CURRENT_TEST"].rsplit(" ", 1)[0]
        return prefix + hashlib.sha256(test.encode()).hexdigest()[:16]

    def generate_sas(self, sign, *args, **kwargs):
        kwargs.pop("fake_value", None)
        return sign(*args, **kwargs)

    def sleep(self, _seconds):
        """Waits for nothing: what the server has answered has happened."""


class ResponseCallback:
    """Changes the status of answers that the SDK has received, as its tests of retries want it."""

    def __init__(self, status=None, new_status=None):
        self.status, self.new_status, self.first, self.count = status, new_status, True, 0

    def override_first_status(self, response):
        if self.first and response.http_response.status_code == self.status:
            response.http_response.status_code = self.new_status
            self.first = False

    def override_status(self, response):
        if response.http_response.status_code == self.status:
            response.http_response.status_code = self.new_status
        self.count += 1


def _nothing(*_args, **_kwargs):
    pass


add_general_regex_sanitizer = add_body_key_sanitizer = add_oauth_response_sanitizer = _nothing
remove_batch_sanitizers = set_custom_default_matcher = _nothing


@pytest.fixture(scope="session")
def test_proxy():
    pass


