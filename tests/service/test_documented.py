"""Every response to generated requests, valid or invalid, conforms to the OpenAPI document."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from helpers.service import Client

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
ITEMS = ["bib", "cup", "tie", "cot", "crib", "lamp", "sock", "unknown"]
EXAMPLES = 12

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def schema(asks: Client) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_asgi("/openapi.json", asks.app)


def operations(schema: schemathesis.BaseSchema) -> list[schemathesis.APIOperation]:
    return [found.ok() for found in schema.get_all_operations()]


def test_every_route_is_documented(schema: schemathesis.BaseSchema) -> None:
    names = {each.label for each in operations(schema)}
    assert {"POST /v1/models/{name}/recommend", "GET /metrics", "GET /v1/models/{name}", "POST /v1/complete"} <= names
    assert len(names) == 16


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode), ids=lambda mode: mode.value)
def test_responses_conform_to_the_document(schema: schemathesis.BaseSchema, mode: schemathesis.GenerationMode) -> None:
    wrong = mode is schemathesis.GenerationMode.NEGATIVE  # which takes something that can be wrong
    for operation in [each for each in operations(schema) if not wrong or each.definition.raw.get("requestBody")]:
        names, items = st.sampled_from(["meals", "sleep", "wear"]), st.lists(st.sampled_from(ITEMS), max_size=3)

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode), name=names, basket=items, known=st.booleans())
        def check(case: schemathesis.Case, name: str, basket: list[str], known: bool) -> None:
            if known and case.path_parameters:  # else nearly no request would reach a model
                case.path_parameters["name"] = name
            if known and isinstance(case.body, dict) and not wrong:
                case.body |= {each: basket for each in ("basket", "deny") if each in case.body}
                case.body |= {each: basket[0] for each in ("item",) if each in case.body and basket}
            case.call_and_validate(checks=CHECKS, timeout=60)  # more than a first compilation takes

        check()
