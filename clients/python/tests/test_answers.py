"""The types of answers: those of the document, and what becomes of JSON that does not fit."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import httpx
import pytest
from test_jobs import job_of

import fairlead
from fairlead.decode import Answer, fields_of, value_of

# Types that hold only what the client uses, and the schemas that they read.
PARTS = {
    "SubmitItem": ("SubmitItem",),
    "JobState": ("JobSummary", "JobEvent"),
    "JobList": ("JobList",),
}
WORDS = {"string": "str", "integer": "int", "boolean": "bool", "null": "None"}


def kinds_of(schema: dict[str, Any]) -> set[str]:
    """What fits a schema, as Python writes it."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return {"str", "list[str]"} if name == "QueueUsers" else {name}
    if "anyOf" in schema:
        return set().union(*(kinds_of(one) for one in schema["anyOf"]))
    if "enum" in schema:
        return {"str"}
    found = set()
    words = schema.get("type", "any")
    for word in [words] if isinstance(words, str) else words:
        if word == "array":
            found.add(f"list[{' | '.join(kinds_of(schema['items']))}]")
        elif word == "object":
            values = schema.get("additionalProperties")
            of = kinds_of(values) if isinstance(values, dict) else {"Any"}
            found.add(f"dict[str, {' | '.join(of)}]")
        else:
            found.add(WORDS.get(word, "Any"))
    return found


def described(schema: dict[str, Any]) -> dict[str, set[str]]:
    """The fields of a schema."""
    always = schema.get("required", ())
    return {
        key: kinds_of(one) | (set() if key in always else {"Unset"})
        for key, one in schema["properties"].items()
    }


def test_types_are_those_of_the_document(server: str) -> None:
    document = httpx.get(f"{server}/openapi.json", trust_env=False).json()
    schemas = document["components"]["schemas"]
    types = Answer.__subclasses__()
    assert len(types) > 30
    for answer in types:
        texts = {one.name: str(one.type) for one in fields(answer)}
        own = {one.key: set(texts[one.name].split(" | ")) for one in fields_of(answer)}
        name = answer.__name__
        if name not in PARTS:
            assert own == described(schemas[name]), name
        for part in PARTS.get(name, ()):
            whole = described(schemas[part])
            for key, kinds in own.items():
                told = whole.get(key, {"Unset"})
                assert told <= kinds | {"list[JobSummary]"}, f"{part}.{key}"


def test_an_answer_is_read_and_shown_as_it_was(lab: fairlead.Lab, server: str, suite: str) -> None:
    (job,) = lab.submit(job_of(suite, "exit 3", color="red")).wait()
    view = job.refresh().view
    assert view is not None
    assert "color" in view
    assert view["color"] == "red"
    assert (view.category, view.waits, bool(view.category)) == (
        fairlead.UNSET,
        fairlead.UNSET,
        False,
    )
    said = httpx.get(f"{server}/scheduler/v1/jobs/{job.id}", trust_env=False).json()
    assert view.to_dict() == said
    assert fairlead.JobView.from_dict(said) == view


@pytest.mark.parametrize(
    ("kind", "said", "wrong"),
    [
        (fairlead.AccountView, {"my_account": "a", "role": "user"}, "AccountView without 'vip'"),
        (fairlead.AccountView, {"my_account": "a", "role": 1, "vip": True}, "1 instead of str"),
        (fairlead.AccountView, {"my_account": "a", "role": "b", "vip": 1}, "1 instead of bool"),
        (list[fairlead.QueueView], {}, r"\{\} instead of list"),
        (list[fairlead.QueueView], [[]], r"\[\] instead of QueueView"),
        (list[str], ["a", None], "None instead of str"),
    ],
)
def test_json_of_another_type_is_refused(kind: type[object], said: object, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        value_of(kind, said)
