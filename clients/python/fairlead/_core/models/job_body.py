from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="JobBody")


@_attrs_define
class JobBody:
    """A job: its fields are those of job files, docs/user-reference.md.

    Attributes:
        suite (None | str | Unset): The test suite.
        my_account (None | str | Unset): Who submits it, where no token says so.
    """

    suite: None | str | Unset = UNSET
    my_account: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        suite: None | str | Unset
        if isinstance(self.suite, Unset):
            suite = UNSET
        else:
            suite = self.suite

        my_account: None | str | Unset
        if isinstance(self.my_account, Unset):
            my_account = UNSET
        else:
            my_account = self.my_account

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if suite is not UNSET:
            field_dict["suite"] = suite
        if my_account is not UNSET:
            field_dict["my_account"] = my_account

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)

        def _parse_suite(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        suite = _parse_suite(d.pop("suite", UNSET))

        def _parse_my_account(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        my_account = _parse_my_account(d.pop("my_account", UNSET))

        job_body = cls(
            suite=suite,
            my_account=my_account,
        )

        job_body.additional_properties = d
        return job_body

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
