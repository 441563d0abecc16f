"""The server against its own OpenAPI description: no 500, no undescribed status, type or shape."""

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance
from web_makers import library

from torchsite.web import Settings, create_app

schema = schemathesis.openapi.from_asgi(
    "/openapi.json", create_app(library(), Settings(hosts=("testserver",)))
)
# A description cannot say which base64 is a picture: not all that fits it is accepted.
LEFT_OUT = [positive_data_acceptance]


@schema.parametrize()
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_the_interface_is_as_described(case):
    case.call_and_validate(excluded_checks=LEFT_OUT)
