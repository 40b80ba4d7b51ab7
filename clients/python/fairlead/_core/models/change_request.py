from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.change_request_set import ChangeRequestSet


T = TypeVar("T", bound="ChangeRequest")


@_attrs_define
class ChangeRequest:
    """Changes jobs that wait.

    Attributes:
        job_ids (list[str] | Unset): Which, 1 to 10,000.
        hold (bool | None | Unset): Whether they are held back. Default: as before.
        set_ (ChangeRequestSet | Unset): New values of `queue`, `priority`, `need_memory`, `need_cpus`, `timeout`,
            `tags` or `deadline`, as job files have
            them.
    """

    job_ids: list[str] | Unset = UNSET
    hold: bool | None | Unset = UNSET
    set_: ChangeRequestSet | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        job_ids: list[str] | Unset = UNSET
        if not isinstance(self.job_ids, Unset):
            job_ids = self.job_ids

        hold: bool | None | Unset
        if isinstance(self.hold, Unset):
            hold = UNSET
        else:
            hold = self.hold

        set_: dict[str, Any] | Unset = UNSET
        if not isinstance(self.set_, Unset):
            set_ = self.set_.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if job_ids is not UNSET:
            field_dict["job_ids"] = job_ids
        if hold is not UNSET:
            field_dict["hold"] = hold
        if set_ is not UNSET:
            field_dict["set"] = set_

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.change_request_set import ChangeRequestSet

        d = dict(src_dict)
        job_ids = cast(list[str], d.pop("job_ids", UNSET))

        def _parse_hold(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        hold = _parse_hold(d.pop("hold", UNSET))

        _set_ = d.pop("set", UNSET)
        set_: ChangeRequestSet | Unset
        if isinstance(_set_, Unset):
            set_ = UNSET
        else:
            set_ = ChangeRequestSet.from_dict(_set_)

        change_request = cls(
            job_ids=job_ids,
            hold=hold,
            set_=set_,
        )

        change_request.additional_properties = d
        return change_request

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
