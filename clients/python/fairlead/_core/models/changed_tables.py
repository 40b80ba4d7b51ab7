from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.changed_tables_hosts import ChangedTablesHosts
    from ..models.changed_tables_lab import ChangedTablesLab
    from ..models.changed_tables_queues import ChangedTablesQueues
    from ..models.changed_tables_replicas import ChangedTablesReplicas


T = TypeVar("T", bound="ChangedTables")


@_attrs_define
class ChangedTables:
    """Rows that changed; null: it is gone.

    Attributes:
        lab (ChangedTablesLab | Unset): The lab itself.
        queues (ChangedTablesQueues | Unset): Queues.
        hosts (ChangedTablesHosts | Unset): Hosts.
        replicas (ChangedTablesReplicas | Unset): Replicas.
    """

    lab: ChangedTablesLab | Unset = UNSET
    queues: ChangedTablesQueues | Unset = UNSET
    hosts: ChangedTablesHosts | Unset = UNSET
    replicas: ChangedTablesReplicas | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        lab: dict[str, Any] | Unset = UNSET
        if not isinstance(self.lab, Unset):
            lab = self.lab.to_dict()

        queues: dict[str, Any] | Unset = UNSET
        if not isinstance(self.queues, Unset):
            queues = self.queues.to_dict()

        hosts: dict[str, Any] | Unset = UNSET
        if not isinstance(self.hosts, Unset):
            hosts = self.hosts.to_dict()

        replicas: dict[str, Any] | Unset = UNSET
        if not isinstance(self.replicas, Unset):
            replicas = self.replicas.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if lab is not UNSET:
            field_dict["lab"] = lab
        if queues is not UNSET:
            field_dict["queues"] = queues
        if hosts is not UNSET:
            field_dict["hosts"] = hosts
        if replicas is not UNSET:
            field_dict["replicas"] = replicas

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.changed_tables_hosts import ChangedTablesHosts
        from ..models.changed_tables_lab import ChangedTablesLab
        from ..models.changed_tables_queues import ChangedTablesQueues
        from ..models.changed_tables_replicas import ChangedTablesReplicas

        d = dict(src_dict)
        _lab = d.pop("lab", UNSET)
        lab: ChangedTablesLab | Unset
        if isinstance(_lab, Unset):
            lab = UNSET
        else:
            lab = ChangedTablesLab.from_dict(_lab)

        _queues = d.pop("queues", UNSET)
        queues: ChangedTablesQueues | Unset
        if isinstance(_queues, Unset):
            queues = UNSET
        else:
            queues = ChangedTablesQueues.from_dict(_queues)

        _hosts = d.pop("hosts", UNSET)
        hosts: ChangedTablesHosts | Unset
        if isinstance(_hosts, Unset):
            hosts = UNSET
        else:
            hosts = ChangedTablesHosts.from_dict(_hosts)

        _replicas = d.pop("replicas", UNSET)
        replicas: ChangedTablesReplicas | Unset
        if isinstance(_replicas, Unset):
            replicas = UNSET
        else:
            replicas = ChangedTablesReplicas.from_dict(_replicas)

        changed_tables = cls(
            lab=lab,
            queues=queues,
            hosts=hosts,
            replicas=replicas,
        )

        changed_tables.additional_properties = d
        return changed_tables

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
