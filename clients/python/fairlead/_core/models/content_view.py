from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="ContentView")


@_attrs_define
class ContentView:
    """What is known of an input or an output.

    Attributes:
        id (str): Its id.
        my_account (str): Whose it is.
        files (int): How many files, links and empty folders it has.
        bytes_ (int): Bytes of all its files together.
        chunks (int): How many different chunks it has.
        put_ms (int): When it was put, UTC epoch ms.
        name (str | Unset): What its owner calls it; empty: nothing.
        job_id (str | Unset): The job that has it as its outputs; empty: somebody put it.
        keep_until_ms (int | None | Unset): Until when it is kept whatever jobs do, UTC epoch ms; absent: as long as
            jobs name it, and for the grace period.
    """

    id: str
    my_account: str
    files: int
    bytes_: int
    chunks: int
    put_ms: int
    name: str | Unset = UNSET
    job_id: str | Unset = UNSET
    keep_until_ms: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        my_account = self.my_account

        files = self.files

        bytes_ = self.bytes_

        chunks = self.chunks

        put_ms = self.put_ms

        name = self.name

        job_id = self.job_id

        keep_until_ms: int | None | Unset
        if isinstance(self.keep_until_ms, Unset):
            keep_until_ms = UNSET
        else:
            keep_until_ms = self.keep_until_ms

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "my_account": my_account,
                "files": files,
                "bytes": bytes_,
                "chunks": chunks,
                "put_ms": put_ms,
            }
        )
        if name is not UNSET:
            field_dict["name"] = name
        if job_id is not UNSET:
            field_dict["job_id"] = job_id
        if keep_until_ms is not UNSET:
            field_dict["keep_until_ms"] = keep_until_ms

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        id = d.pop("id")

        my_account = d.pop("my_account")

        files = d.pop("files")

        bytes_ = d.pop("bytes")

        chunks = d.pop("chunks")

        put_ms = d.pop("put_ms")

        name = d.pop("name", UNSET)

        job_id = d.pop("job_id", UNSET)

        def _parse_keep_until_ms(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        keep_until_ms = _parse_keep_until_ms(d.pop("keep_until_ms", UNSET))

        content_view = cls(
            id=id,
            my_account=my_account,
            files=files,
            bytes_=bytes_,
            chunks=chunks,
            put_ms=put_ms,
            name=name,
            job_id=job_id,
            keep_until_ms=keep_until_ms,
        )

        content_view.additional_properties = d
        return content_view

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
