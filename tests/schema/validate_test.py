# SPDX-License-Identifier: Apache-2.0
"""Every schema under docs/schema is itself valid, and the helper names the place of a fault."""
import pytest

from schema import validate


@pytest.mark.parametrize("path", sorted(validate.SCHEMAS.glob("*.json")), ids=lambda p: p.name)
def test_schema_is_valid(path):
    validate.load_schema(path)


def test_fault_is_named_by_its_place():
    schema = {"properties": {"trials": {"items": {"required": ["backend"]}}}}
    assert validate.errors({"trials": [{"backend": "x"}]}, schema) == []
    assert validate.errors({"trials": [{"backend": "x"}, {}]}, schema) == [
        "/trials/1: 'backend' is a required property"]
