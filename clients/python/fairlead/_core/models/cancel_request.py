from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.cancel_request_filter import CancelRequestFilter


T = TypeVar("T", bound="CancelRequest")


@_attrs_define
class CancelRequest:
    """Cancels several waiting jobs: by their ids, or all that the filters name.

    Attributes:
        job_ids (list[str] | Unset): Which; with filters: none.
        filter_ (CancelRequestFilter | Unset): Filters, as the query of a list of jobs has them: `submit_id`,
            `group_id`, `account`, `queue`, `suite`,
            `tbox_group`, each one value or a list; all must hold.
    """

    job_ids: list[str] | Unset = UNSET
    filter_: CancelRequestFilter | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        job_ids: list[str] | Unset = UNSET
        if not isinstance(self.job_ids, Unset):
            job_ids = self.job_ids

        filter_: dict[str, Any] | Unset = UNSET
        if not isinstance(self.filter_, Unset):
            filter_ = self.filter_.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if job_ids is not UNSET:
            field_dict["job_ids"] = job_ids
        if filter_ is not UNSET:
            field_dict["filter"] = filter_

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.cancel_request_filter import CancelRequestFilter

        d = dict(src_dict)
        job_ids = cast(list[str], d.pop("job_ids", UNSET))

        _filter_ = d.pop("filter", UNSET)
        filter_: CancelRequestFilter | Unset
        if isinstance(_filter_, Unset):
            filter_ = UNSET
        else:
            filter_ = CancelRequestFilter.from_dict(_filter_)

        cancel_request = cls(
            job_ids=job_ids,
            filter_=filter_,
        )

        cancel_request.additional_properties = d
        return cancel_request

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
