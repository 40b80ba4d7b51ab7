from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.nearest_run_differs import NearestRunDiffers


T = TypeVar("T", bound="NearestRun")


@_attrs_define
class NearestRun:
    """An earlier job, and how it differs.

    Attributes:
        job_id (str): The job. Default: ''.
        job_health (str): How it ended. Default: ''.
        differs (NearestRunDiffers): Each part of the key that differs, with the fields that do. Empty: it ran the same
            thing.
    """

    differs: NearestRunDiffers
    job_id: str = ""
    job_health: str = ""
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        job_id = self.job_id

        job_health = self.job_health

        differs = self.differs.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "job_id": job_id,
                "job_health": job_health,
                "differs": differs,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.nearest_run_differs import NearestRunDiffers

        d = dict(src_dict)
        job_id = d.pop("job_id")

        job_health = d.pop("job_health")

        differs = NearestRunDiffers.from_dict(d.pop("differs"))

        nearest_run = cls(
            job_id=job_id,
            job_health=job_health,
            differs=differs,
        )

        nearest_run.additional_properties = d
        return nearest_run

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
