from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.tables_hosts import TablesHosts
    from ..models.tables_lab import TablesLab
    from ..models.tables_queues import TablesQueues
    from ..models.tables_replicas import TablesReplicas


T = TypeVar("T", bound="Tables")


@_attrs_define
class Tables:
    """The rows of a snapshot, by name.

    Attributes:
        lab (TablesLab): The lab itself, one row under `lab`.
        queues (TablesQueues): Queues.
        hosts (TablesHosts): Hosts.
        replicas (TablesReplicas): Replicas that live.
    """

    lab: TablesLab
    queues: TablesQueues
    hosts: TablesHosts
    replicas: TablesReplicas
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        lab = self.lab.to_dict()

        queues = self.queues.to_dict()

        hosts = self.hosts.to_dict()

        replicas = self.replicas.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "lab": lab,
                "queues": queues,
                "hosts": hosts,
                "replicas": replicas,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.tables_hosts import TablesHosts
        from ..models.tables_lab import TablesLab
        from ..models.tables_queues import TablesQueues
        from ..models.tables_replicas import TablesReplicas

        d = dict(src_dict)
        lab = TablesLab.from_dict(d.pop("lab"))

        queues = TablesQueues.from_dict(d.pop("queues"))

        hosts = TablesHosts.from_dict(d.pop("hosts"))

        replicas = TablesReplicas.from_dict(d.pop("replicas"))

        tables = cls(
            lab=lab,
            queues=queues,
            hosts=hosts,
            replicas=replicas,
        )

        tables.additional_properties = d
        return tables

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
