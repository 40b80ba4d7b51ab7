from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="ClosedView")


@_attrs_define
class ClosedView:
    """Why a host gets no new job.

    Attributes:
        how (str): `cordon`, `drain` or `suspect`.
        reason (str): Why, in the words of who closed it. Default: ''.
        by (str): Who closed it: an account, or the replica that found it suspect.
        at_ms (int): When.
        check_job (None | str | Unset): Of a suspect host: the health check that was made for it last.
    """

    how: str
    by: str
    at_ms: int
    reason: str = ""
    check_job: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        how = self.how

        reason = self.reason

        by = self.by

        at_ms = self.at_ms

        check_job: None | str | Unset
        if isinstance(self.check_job, Unset):
            check_job = UNSET
        else:
            check_job = self.check_job

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "how": how,
                "reason": reason,
                "by": by,
                "at_ms": at_ms,
            }
        )
        if check_job is not UNSET:
            field_dict["check_job"] = check_job

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        how = d.pop("how")

        reason = d.pop("reason")

        by = d.pop("by")

        at_ms = d.pop("at_ms")

        def _parse_check_job(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        check_job = _parse_check_job(d.pop("check_job", UNSET))

        closed_view = cls(
            how=how,
            reason=reason,
            by=by,
            at_ms=at_ms,
            check_job=check_job,
        )

        closed_view.additional_properties = d
        return closed_view

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
