from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="ReplicaRow")


@_attrs_define
class ReplicaRow:
    """A replica that lives.

    Attributes:
        url (str): Where the others reach it. Default: ''.
        is_me (bool): Whether it is the one that answers. Default: False.
        version (str): Of its program; empty: it has not told. Default: ''.
        lag_s (int): How long ago it knew all changes of the store, s. A replica that keeps up has 0 to 2. Default: 0.
        behind (bool): Whether that is too long: 5 s or more. Default: False.
        inbox (int): Messages that its engine has not processed. Default: 0.
        held (int): Jobs on testboxes, as it knows. Default: 0.
        store_requests (int): Its requests that the store has not answered. Default: 0.
    """

    url: str = ""
    is_me: bool = False
    version: str = ""
    lag_s: int = 0
    behind: bool = False
    inbox: int = 0
    held: int = 0
    store_requests: int = 0
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        url = self.url

        is_me = self.is_me

        version = self.version

        lag_s = self.lag_s

        behind = self.behind

        inbox = self.inbox

        held = self.held

        store_requests = self.store_requests

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "url": url,
                "is_me": is_me,
                "version": version,
                "lag_s": lag_s,
                "behind": behind,
                "inbox": inbox,
                "held": held,
                "store_requests": store_requests,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        url = d.pop("url")

        is_me = d.pop("is_me")

        version = d.pop("version")

        lag_s = d.pop("lag_s")

        behind = d.pop("behind")

        inbox = d.pop("inbox")

        held = d.pop("held")

        store_requests = d.pop("store_requests")

        replica_row = cls(
            url=url,
            is_me=is_me,
            version=version,
            lag_s=lag_s,
            behind=behind,
            inbox=inbox,
            held=held,
            store_requests=store_requests,
        )

        replica_row.additional_properties = d
        return replica_row

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
