"""JSON schemas: compared with the package jsonschema, and the texts of problems."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_pregel.errors import ArgumentError
from gpu_pregel.workflows.json_schemas import check_schema, find_problem, simple_schema
from tests.packages import needs

jsonschema = needs("jsonschema", "test")

REFERENCE = {
    "type": "object",
    "properties": {"next": {"$ref": "#"}, "kind": {"$ref": "#/$defs/a~1b"}},
    "$defs": {"a/b": {"enum": ["x", 1, True, None]}},
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "schema, value, problem",
    [
        ({"type": "integer"}, True, "the value must be of type integer, not True"),
        ({"type": "integer"}, 1.0, None),
        ({"type": "number"}, False, "the value must be of type number, not False"),
        ({"type": ["string", "null"]}, 1, "the value must be of type string or null, not 1"),
        ({"type": "string"}, "x" * 100, None),
        ({"enum": [1]}, True, "the value must be 1, not True"),
        ({"const": "a"}, "b", 'the value must be "a", not "b"'),
        ({"required": ["a"]}, {}, "a is missing"),
        ({"properties": {"a": {"type": "null"}}}, {"a": {"b": 1}}, "a must be of type null, not {'b': 1}"),
        (
            {"properties": {"a": {}}, "additionalProperties": False},
            {"b": 1},
            "b is unknown; known names: a",
        ),
        ({"additionalProperties": {"type": "string"}}, {"b": 1}, "b must be of type string, not 1"),
        ({"items": {"type": "string"}}, ["a", 1], "[1] must be of type string, not 1"),
        ({"prefixItems": [{"type": "string"}], "items": False}, ["a", 1], "[1] is not allowed"),
        (
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
            1,
            "the value has none of the allowed forms: the value must",
        ),
        ({"oneOf": [{"type": "integer"}, {"minimum": 1}]}, 2, "the value has several of the forms"),
        ({"allOf": [{"type": "integer"}, {"minimum": 1}]}, 0, "the value must be at least 1, not 0"),
        ({"not": {"type": "string"}}, "a", "the value has a form that is not allowed"),
        ({"pattern": "^a+$"}, "ab", 'the value must match ^a+$, not "ab"'),
        ({"minLength": 2, "maxLength": 3}, "a", "the value must have at least 2 characters"),
        ({"multipleOf": 0.5}, 1.5, None),
        ({"multipleOf": 2}, 3, "the value must be a multiple of 2, not 3"),
        ({"uniqueItems": True}, [1, [2], [2]], "the value must not contain an item twice"),
        (REFERENCE, {"next": {"next": {"kind": 2}}}, 'next.next.kind must be "x" or 1 or True or None, not 2'),
    ],
)
def test_problems(schema: dict[str, Any], value: Any, problem: str | None) -> None:
    found = find_problem(value, check_schema(schema, "schema"))
    assert found == problem or (problem is not None and found is not None and found.startswith(problem))
    assert jsonschema.Draft202012Validator(schema).is_valid(value) is (problem is None)


SCALARS = (
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.5, 1.0]) | st.sampled_from(["", "a", "ab"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
    max_leaves=6,
)


def schemas() -> st.SearchStrategy[dict[str, Any]]:
    kinds = st.sampled_from(["string", "boolean", "null", "array", "object", "number", "integer"])
    keywords: dict[str, st.SearchStrategy[Any]] = {
        "type": kinds | st.lists(kinds, min_size=1, max_size=2, unique=True),
        "enum": st.lists(SCALARS, min_size=1, max_size=3),
        "const": SCALARS,
        "required": st.lists(st.sampled_from(["a", "b"]), unique=True),
        "pattern": st.sampled_from(["a", "^b"]),
        "minimum": st.integers(-1, 1),
        "exclusiveMaximum": st.integers(-1, 1),
        "maxLength": st.integers(0, 2),
        "minItems": st.integers(0, 2),
        "maxProperties": st.integers(0, 2),
        "uniqueItems": st.booleans(),
    }
    flat = st.fixed_dictionaries({}, optional=keywords)

    def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        several = st.lists(inner, min_size=1, max_size=2)
        return st.fixed_dictionaries(
            {},
            optional={
                "properties": st.dictionaries(st.sampled_from(["a", "b"]), inner),
                "additionalProperties": inner | st.booleans(),
                "items": inner,
                "prefixItems": several,
                "anyOf": several,
                "oneOf": several,
                "allOf": several,
                "not": inner,
            },
        )

    return st.recursive(flat, nested, max_leaves=4)


@given(schemas(), VALUES)
def test_random_schemas_agree_with_jsonschema(schema: dict[str, Any], value: Any) -> None:
    expected = jsonschema.Draft202012Validator(schema).is_valid(value)
    assert (find_problem(value, check_schema(schema, "schema")) is None) is expected


@pytest.mark.parametrize(
    "schema, text",
    [
        ([], "schema must be a JSON schema, as a dictionary"),
        ({"properties": {"a": {"if": {}}}}, r"schema\.properties\.a: the keyword 'if' is not supported; supported"),
        ({"items": {"type": "text"}}, r"schema\.items: type must be one of string.* not 'text'"),
        ({"anyOf": [{}, 1]}, r"schema\.anyOf\[1\] must be a JSON schema"),
        ({"$ref": "#/$defs/a"}, r"schema: \$ref leads nowhere: '#/\$defs/a'"),
        ({"$ref": "http://host/a"}, r"schema: \$ref leads nowhere"),
    ],
)
def test_bad_schemas(schema: Any, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        check_schema(schema, "schema")


@pytest.mark.parametrize(
    "annotation, schema",
    [
        (str, {"type": "string"}),
        (None, {"type": "null"}),
        (Any, {}),
        (list, {"type": "array"}),
        (
            list[dict[str, float]],
            {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "number"}}},
        ),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Literal["a", 2], {"enum": ["a", 2]}),
        (Annotated[bool, 7, "Whether."], {"type": "boolean", "description": "Whether."}),
        (Annotated[bool, 7], {"type": "boolean"}),
        (dict[int, str], None),
        (list[bytes], None),
        (set[int] | None, None),
        (Annotated[bytes, "?"], None),
        (Literal[b"a"], None),
        ("text", None),
        ([], None),
    ],
)
def test_simple_schemas(annotation: Any, schema: Any) -> None:
    assert simple_schema(annotation) == schema
