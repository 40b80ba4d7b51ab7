from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="ReuseForgotten")


@_attrs_define
class ReuseForgotten:
    """What was forgotten of the key of a job.

    Attributes:
        job_id (str): The job. Default: ''.
        key (str): The key of what it runs. Default: ''.
        forgotten (list[str]): Whose results of this key were forgotten: `account` (of the account of the job), `lab`
            (of all accounts that share
            theirs). Empty: there were none.
        was (str | Unset): Why results of this key were not taken before, such as that it is flaky. Empty: they were.
        still (str | Unset): Why results of this key are still not taken: only an admin can forget what the lab knows.
            Empty: they are.
    """

    forgotten: list[str]
    job_id: str = ""
    key: str = ""
    was: str | Unset = UNSET
    still: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        job_id = self.job_id

        key = self.key

        forgotten = self.forgotten

        was = self.was

        still = self.still

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "job_id": job_id,
                "key": key,
                "forgotten": forgotten,
            }
        )
        if was is not UNSET:
            field_dict["was"] = was
        if still is not UNSET:
            field_dict["still"] = still

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        job_id = d.pop("job_id")

        key = d.pop("key")

        forgotten = cast(list[str], d.pop("forgotten"))

        was = d.pop("was", UNSET)

        still = d.pop("still", UNSET)

        reuse_forgotten = cls(
            job_id=job_id,
            key=key,
            forgotten=forgotten,
            was=was,
            still=still,
        )

        reuse_forgotten.additional_properties = d
        return reuse_forgotten

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
