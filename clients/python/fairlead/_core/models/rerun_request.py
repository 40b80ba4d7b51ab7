from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.rerun_request_set import RerunRequestSet


T = TypeVar("T", bound="RerunRequest")


@_attrs_define
class RerunRequest:
    """Runs jobs again.

    Attributes:
        job_ids (list[str] | Unset): Which, 1 to 1,000, as one submit. Not for `jobs/ID/rerun`.
        failed (bool | Unset): Of jobs with shards only the shards or tests that failed. A job that did not fail is
            refused. Default false. Default: False.
        set_ (RerunRequestSet | Unset): Fields with new values; `a.b` is field `b` of section `a`.
        submit_id (None | str | Unset): The submit that they belong to. Default: the id of the first new job.
        idempotency_key (None | str | Unset): Names this request, so that it may be repeated.
    """

    job_ids: list[str] | Unset = UNSET
    failed: bool | Unset = False
    set_: RerunRequestSet | Unset = UNSET
    submit_id: None | str | Unset = UNSET
    idempotency_key: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        job_ids: list[str] | Unset = UNSET
        if not isinstance(self.job_ids, Unset):
            job_ids = self.job_ids

        failed = self.failed

        set_: dict[str, Any] | Unset = UNSET
        if not isinstance(self.set_, Unset):
            set_ = self.set_.to_dict()

        submit_id: None | str | Unset
        if isinstance(self.submit_id, Unset):
            submit_id = UNSET
        else:
            submit_id = self.submit_id

        idempotency_key: None | str | Unset
        if isinstance(self.idempotency_key, Unset):
            idempotency_key = UNSET
        else:
            idempotency_key = self.idempotency_key

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if job_ids is not UNSET:
            field_dict["job_ids"] = job_ids
        if failed is not UNSET:
            field_dict["failed"] = failed
        if set_ is not UNSET:
            field_dict["set"] = set_
        if submit_id is not UNSET:
            field_dict["submit_id"] = submit_id
        if idempotency_key is not UNSET:
            field_dict["idempotency_key"] = idempotency_key

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.rerun_request_set import RerunRequestSet

        d = dict(src_dict)
        job_ids = cast(list[str], d.pop("job_ids", UNSET))

        failed = d.pop("failed", UNSET)

        _set_ = d.pop("set", UNSET)
        set_: RerunRequestSet | Unset
        if isinstance(_set_, Unset):
            set_ = UNSET
        else:
            set_ = RerunRequestSet.from_dict(_set_)

        def _parse_submit_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        submit_id = _parse_submit_id(d.pop("submit_id", UNSET))

        def _parse_idempotency_key(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        idempotency_key = _parse_idempotency_key(d.pop("idempotency_key", UNSET))

        rerun_request = cls(
            job_ids=job_ids,
            failed=failed,
            set_=set_,
            submit_id=submit_id,
            idempotency_key=idempotency_key,
        )

        rerun_request.additional_properties = d
        return rerun_request

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
