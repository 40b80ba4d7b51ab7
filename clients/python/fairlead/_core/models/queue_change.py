from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.queue_users_type_0 import QueueUsersType0, check_queue_users_type_0
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.limits_change import LimitsChange


T = TypeVar("T", bound="QueueChange")


@_attrs_define
class QueueChange:
    """A change of a queue: only what is given changes.

    Attributes:
        priority (int | None | Unset): Class, 0 to 9.
        weight (int | None | Unset): Share inside the class, 1 to 10,000.
        paused (bool | None | Unset): Whether nothing of it is dispatched.
        background_permille (int | None | Unset): Dispatches that are kept for it whatever waits in higher classes, in
            thousandths, 0 to 500.
        limits (LimitsChange | Unset): A change of limits: each that is given is replaced whole, so `{}` takes it away.
        users (list[str] | None | QueueUsersType0 | Unset): Who may submit into it. A new queue for which nobody says it
            is the own one of the account of its name.
    """

    priority: int | None | Unset = UNSET
    weight: int | None | Unset = UNSET
    paused: bool | None | Unset = UNSET
    background_permille: int | None | Unset = UNSET
    limits: LimitsChange | Unset = UNSET
    users: list[str] | None | QueueUsersType0 | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        priority: int | None | Unset
        if isinstance(self.priority, Unset):
            priority = UNSET
        else:
            priority = self.priority

        weight: int | None | Unset
        if isinstance(self.weight, Unset):
            weight = UNSET
        else:
            weight = self.weight

        paused: bool | None | Unset
        if isinstance(self.paused, Unset):
            paused = UNSET
        else:
            paused = self.paused

        background_permille: int | None | Unset
        if isinstance(self.background_permille, Unset):
            background_permille = UNSET
        else:
            background_permille = self.background_permille

        limits: dict[str, Any] | Unset = UNSET
        if not isinstance(self.limits, Unset):
            limits = self.limits.to_dict()

        users: list[str] | None | str | Unset
        if isinstance(self.users, Unset):
            users = UNSET
        elif isinstance(self.users, str) or isinstance(self.users, list):
            users = self.users

        else:
            users = self.users

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if priority is not UNSET:
            field_dict["priority"] = priority
        if weight is not UNSET:
            field_dict["weight"] = weight
        if paused is not UNSET:
            field_dict["paused"] = paused
        if background_permille is not UNSET:
            field_dict["background_permille"] = background_permille
        if limits is not UNSET:
            field_dict["limits"] = limits
        if users is not UNSET:
            field_dict["users"] = users

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.limits_change import LimitsChange

        d = dict(src_dict)

        def _parse_priority(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        priority = _parse_priority(d.pop("priority", UNSET))

        def _parse_weight(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        weight = _parse_weight(d.pop("weight", UNSET))

        def _parse_paused(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        paused = _parse_paused(d.pop("paused", UNSET))

        def _parse_background_permille(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        background_permille = _parse_background_permille(
            d.pop("background_permille", UNSET)
        )

        _limits = d.pop("limits", UNSET)
        limits: LimitsChange | Unset
        if isinstance(_limits, Unset):
            limits = UNSET
        else:
            limits = LimitsChange.from_dict(_limits)

        def _parse_users(data: object) -> list[str] | None | QueueUsersType0 | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                componentsschemas_queue_users_type_0 = check_queue_users_type_0(data)

                return componentsschemas_queue_users_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, list):
                    raise TypeError()
                componentsschemas_queue_users_type_1 = cast(list[str], data)

                return componentsschemas_queue_users_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | QueueUsersType0 | Unset, data)

        users = _parse_users(d.pop("users", UNSET))

        queue_change = cls(
            priority=priority,
            weight=weight,
            paused=paused,
            background_permille=background_permille,
            limits=limits,
            users=users,
        )

        queue_change.additional_properties = d
        return queue_change

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
