from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="AuditEvent")


@_attrs_define
class AuditEvent:
    """Who did what.

    Attributes:
        at_ms (int): When, UTC epoch ms. Default: 0.
        who (str): Who: an account, a host or a replica; `operator` in an open lab without names. Default: ''.
        what (str): What was done, such as `job.cancel`. Default: ''.
        subject (str): To what: a job, a queue, a host or an account. Default: ''.
        detail (Any): Its details.
    """

    detail: Any
    at_ms: int = 0
    who: str = ""
    what: str = ""
    subject: str = ""
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        at_ms = self.at_ms

        who = self.who

        what = self.what

        subject = self.subject

        detail = self.detail

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "at_ms": at_ms,
                "who": who,
                "what": what,
                "subject": subject,
                "detail": detail,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        at_ms = d.pop("at_ms")

        who = d.pop("who")

        what = d.pop("what")

        subject = d.pop("subject")

        detail = d.pop("detail")

        audit_event = cls(
            at_ms=at_ms,
            who=who,
            what=what,
            subject=subject,
            detail=detail,
        )

        audit_event.additional_properties = d
        return audit_event

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
