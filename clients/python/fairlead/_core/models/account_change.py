from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.limits_change import LimitsChange


T = TypeVar("T", bound="AccountChange")


@_attrs_define
class AccountChange:
    """What to do with an account.

    Attributes:
        role (None | str | Unset): `admin`, `user` or `testbox`. Default `user`.
        hosts (list[str] | None | Unset): Of a testbox: the hosts that it acts for, 1 to 64 names and patterns
            (`rack1-*`, `a6?`); replaced whole.
        vip (bool | None | Unset): Whether it may use queue `vip`.
        share_results (bool | None | Unset): Whether jobs of all accounts may take results of its jobs.
        limits (LimitsChange | Unset): A change of limits: each that is given is replaced whole, so `{}` takes it away.
        new_token (bool | Unset): Make a new token even if it has one. Default: False.
    """

    role: None | str | Unset = UNSET
    hosts: list[str] | None | Unset = UNSET
    vip: bool | None | Unset = UNSET
    share_results: bool | None | Unset = UNSET
    limits: LimitsChange | Unset = UNSET
    new_token: bool | Unset = False
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        role: None | str | Unset
        if isinstance(self.role, Unset):
            role = UNSET
        else:
            role = self.role

        hosts: list[str] | None | Unset
        if isinstance(self.hosts, Unset):
            hosts = UNSET
        elif isinstance(self.hosts, list):
            hosts = self.hosts

        else:
            hosts = self.hosts

        vip: bool | None | Unset
        if isinstance(self.vip, Unset):
            vip = UNSET
        else:
            vip = self.vip

        share_results: bool | None | Unset
        if isinstance(self.share_results, Unset):
            share_results = UNSET
        else:
            share_results = self.share_results

        limits: dict[str, Any] | Unset = UNSET
        if not isinstance(self.limits, Unset):
            limits = self.limits.to_dict()

        new_token = self.new_token

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if role is not UNSET:
            field_dict["role"] = role
        if hosts is not UNSET:
            field_dict["hosts"] = hosts
        if vip is not UNSET:
            field_dict["vip"] = vip
        if share_results is not UNSET:
            field_dict["share_results"] = share_results
        if limits is not UNSET:
            field_dict["limits"] = limits
        if new_token is not UNSET:
            field_dict["new_token"] = new_token

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.limits_change import LimitsChange

        d = dict(src_dict)

        def _parse_role(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        role = _parse_role(d.pop("role", UNSET))

        def _parse_hosts(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                hosts_type_0 = cast(list[str], data)

                return hosts_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        hosts = _parse_hosts(d.pop("hosts", UNSET))

        def _parse_vip(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        vip = _parse_vip(d.pop("vip", UNSET))

        def _parse_share_results(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        share_results = _parse_share_results(d.pop("share_results", UNSET))

        _limits = d.pop("limits", UNSET)
        limits: LimitsChange | Unset
        if isinstance(_limits, Unset):
            limits = UNSET
        else:
            limits = LimitsChange.from_dict(_limits)

        new_token = d.pop("new_token", UNSET)

        account_change = cls(
            role=role,
            hosts=hosts,
            vip=vip,
            share_results=share_results,
            limits=limits,
            new_token=new_token,
        )

        account_change.additional_properties = d
        return account_change

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
