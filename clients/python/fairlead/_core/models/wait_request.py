from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.wait_request_wait_on import WaitRequestWaitOn
    from ..models.wait_request_wait_options import WaitRequestWaitOptions


T = TypeVar("T", bound="WaitRequest")


@_attrs_define
class WaitRequest:
    """What a script waits for.

    Attributes:
        wait_on (WaitRequestWaitOn): By job id: `null` for its end, or fields with the values that are waited for.
        wait_options (WaitRequestWaitOptions | Unset): `fail_fast: true` ends it with the first failure; `get_fields:
            {NAME: null}` asks for more fields.
    """

    wait_on: WaitRequestWaitOn
    wait_options: WaitRequestWaitOptions | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        wait_on = self.wait_on.to_dict()

        wait_options: dict[str, Any] | Unset = UNSET
        if not isinstance(self.wait_options, Unset):
            wait_options = self.wait_options.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "wait_on": wait_on,
            }
        )
        if wait_options is not UNSET:
            field_dict["wait_options"] = wait_options

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.wait_request_wait_on import WaitRequestWaitOn
        from ..models.wait_request_wait_options import WaitRequestWaitOptions

        d = dict(src_dict)
        wait_on = WaitRequestWaitOn.from_dict(d.pop("wait_on"))

        _wait_options = d.pop("wait_options", UNSET)
        wait_options: WaitRequestWaitOptions | Unset
        if isinstance(_wait_options, Unset):
            wait_options = UNSET
        else:
            wait_options = WaitRequestWaitOptions.from_dict(_wait_options)

        wait_request = cls(
            wait_on=wait_on,
            wait_options=wait_options,
        )

        wait_request.additional_properties = d
        return wait_request

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
