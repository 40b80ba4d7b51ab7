from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.limits import Limits
    from ..models.notify_view import NotifyView


T = TypeVar("T", bound="AccountView")


@_attrs_define
class AccountView:
    """One account. The token is shown only in the answer that made it.

    Attributes:
        my_account (str): Its name.
        role (str): `admin`, `user` or `testbox`; a role of a newer version may do nothing.
        vip (bool): Whether it may use queue `vip`. Default: False.
        hosts (list[str] | Unset): Of a testbox: the hosts that it acts for, names and patterns (`rack1-*`, `a6?`).
        hint (str | Unset): What an admin should do about it; empty: nothing.
        share_results (bool | Unset): Whether jobs of all accounts may take results of its jobs, see `reuse` of a job.
        limits (Limits | Unset): The limits of an account or a queue.
        notify (None | NotifyView | Unset): Who is told of its jobs that do not say so themselves; absent: nobody.
        my_token (None | str | Unset): A new token, once.
    """

    my_account: str
    role: str
    vip: bool = False
    hosts: list[str] | Unset = UNSET
    hint: str | Unset = UNSET
    share_results: bool | Unset = UNSET
    limits: Limits | Unset = UNSET
    notify: None | NotifyView | Unset = UNSET
    my_token: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.notify_view import NotifyView

        my_account = self.my_account

        role = self.role

        vip = self.vip

        hosts: list[str] | Unset = UNSET
        if not isinstance(self.hosts, Unset):
            hosts = self.hosts

        hint = self.hint

        share_results = self.share_results

        limits: dict[str, Any] | Unset = UNSET
        if not isinstance(self.limits, Unset):
            limits = self.limits.to_dict()

        notify: dict[str, Any] | None | Unset
        if isinstance(self.notify, Unset):
            notify = UNSET
        elif isinstance(self.notify, NotifyView):
            notify = self.notify.to_dict()
        else:
            notify = self.notify

        my_token: None | str | Unset
        if isinstance(self.my_token, Unset):
            my_token = UNSET
        else:
            my_token = self.my_token

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "my_account": my_account,
                "role": role,
                "vip": vip,
            }
        )
        if hosts is not UNSET:
            field_dict["hosts"] = hosts
        if hint is not UNSET:
            field_dict["hint"] = hint
        if share_results is not UNSET:
            field_dict["share_results"] = share_results
        if limits is not UNSET:
            field_dict["limits"] = limits
        if notify is not UNSET:
            field_dict["notify"] = notify
        if my_token is not UNSET:
            field_dict["my_token"] = my_token

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.limits import Limits
        from ..models.notify_view import NotifyView

        d = dict(src_dict)
        my_account = d.pop("my_account")

        role = d.pop("role")

        vip = d.pop("vip")

        hosts = cast(list[str], d.pop("hosts", UNSET))

        hint = d.pop("hint", UNSET)

        share_results = d.pop("share_results", UNSET)

        _limits = d.pop("limits", UNSET)
        limits: Limits | Unset
        if isinstance(_limits, Unset):
            limits = UNSET
        else:
            limits = Limits.from_dict(_limits)

        def _parse_notify(data: object) -> None | NotifyView | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                notify_type_0 = NotifyView.from_dict(data)

                return notify_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | NotifyView | Unset, data)

        notify = _parse_notify(d.pop("notify", UNSET))

        def _parse_my_token(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        my_token = _parse_my_token(d.pop("my_token", UNSET))

        account_view = cls(
            my_account=my_account,
            role=role,
            vip=vip,
            hosts=hosts,
            hint=hint,
            share_results=share_results,
            limits=limits,
            notify=notify,
            my_token=my_token,
        )

        account_view.additional_properties = d
        return account_view

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
