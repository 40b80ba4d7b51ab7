from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_body import ErrorBody
from ...models.job_list import JobList
from ...models.jobs_group_by import JobsGroupBy
from ...models.jobs_order import JobsOrder
from ...models.jobs_parts import JobsParts
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    stage: str | Unset = UNSET,
    job_stage: str | Unset = UNSET,
    health: str | Unset = UNSET,
    job_health: str | Unset = UNSET,
    account: str | Unset = UNSET,
    queue: str | Unset = UNSET,
    host: str | Unset = UNSET,
    host_machine: str | Unset = UNSET,
    suite: str | Unset = UNSET,
    submit_id: str | Unset = UNSET,
    sequence: str | Unset = UNSET,
    group_id: str | Unset = UNSET,
    tbox_group: str | Unset = UNSET,
    kv: list[str] | Unset = UNSET,
    with_kv: bool | Unset = UNSET,
    signature: str | Unset = UNSET,
    parts: JobsParts | Unset = UNSET,
    shards_of: str | Unset = UNSET,
    since_ms: int | Unset = UNSET,
    until_ms: int | Unset = UNSET,
    group_by: JobsGroupBy | Unset = UNSET,
    order: JobsOrder | Unset = UNSET,
    after: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["stage"] = stage

    params["job_stage"] = job_stage

    params["health"] = health

    params["job_health"] = job_health

    params["account"] = account

    params["queue"] = queue

    params["host"] = host

    params["host_machine"] = host_machine

    params["suite"] = suite

    params["submit_id"] = submit_id

    params["sequence"] = sequence

    params["group_id"] = group_id

    params["tbox_group"] = tbox_group

    json_kv: list[str] | Unset = UNSET
    if not isinstance(kv, Unset):
        json_kv = kv

    params["kv"] = json_kv

    params["with_kv"] = with_kv

    params["signature"] = signature

    json_parts: str | Unset = UNSET
    if not isinstance(parts, Unset):
        json_parts = parts

    params["parts"] = json_parts

    params["shards_of"] = shards_of

    params["since_ms"] = since_ms

    params["until_ms"] = until_ms

    json_group_by: str | Unset = UNSET
    if not isinstance(group_by, Unset):
        json_group_by = group_by

    params["group_by"] = json_group_by

    json_order: str | Unset = UNSET
    if not isinstance(order, Unset):
        json_order = order

    params["order"] = json_order

    params["after"] = after

    params["limit"] = limit

    params["my_account"] = my_account

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/scheduler/v1/jobs",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorBody | JobList:
    if response.status_code == 200:
        response_200 = JobList.from_dict(response.json())

        return response_200

    response_default = ErrorBody.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ErrorBody | JobList]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    stage: str | Unset = UNSET,
    job_stage: str | Unset = UNSET,
    health: str | Unset = UNSET,
    job_health: str | Unset = UNSET,
    account: str | Unset = UNSET,
    queue: str | Unset = UNSET,
    host: str | Unset = UNSET,
    host_machine: str | Unset = UNSET,
    suite: str | Unset = UNSET,
    submit_id: str | Unset = UNSET,
    sequence: str | Unset = UNSET,
    group_id: str | Unset = UNSET,
    tbox_group: str | Unset = UNSET,
    kv: list[str] | Unset = UNSET,
    with_kv: bool | Unset = UNSET,
    signature: str | Unset = UNSET,
    parts: JobsParts | Unset = UNSET,
    shards_of: str | Unset = UNSET,
    since_ms: int | Unset = UNSET,
    until_ms: int | Unset = UNSET,
    group_by: JobsGroupBy | Unset = UNSET,
    order: JobsOrder | Unset = UNSET,
    after: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | JobList]:
    """lists jobs by filters, paged

    Args:
        stage (str | Unset):
        job_stage (str | Unset):
        health (str | Unset):
        job_health (str | Unset):
        account (str | Unset):
        queue (str | Unset):
        host (str | Unset):
        host_machine (str | Unset):
        suite (str | Unset):
        submit_id (str | Unset):
        sequence (str | Unset):
        group_id (str | Unset):
        tbox_group (str | Unset):
        kv (list[str] | Unset):
        with_kv (bool | Unset):
        signature (str | Unset):
        parts (JobsParts | Unset):
        shards_of (str | Unset):
        since_ms (int | Unset):
        until_ms (int | Unset):
        group_by (JobsGroupBy | Unset):
        order (JobsOrder | Unset):
        after (str | Unset):
        limit (int | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | JobList]
    """

    kwargs = _get_kwargs(
        stage=stage,
        job_stage=job_stage,
        health=health,
        job_health=job_health,
        account=account,
        queue=queue,
        host=host,
        host_machine=host_machine,
        suite=suite,
        submit_id=submit_id,
        sequence=sequence,
        group_id=group_id,
        tbox_group=tbox_group,
        kv=kv,
        with_kv=with_kv,
        signature=signature,
        parts=parts,
        shards_of=shards_of,
        since_ms=since_ms,
        until_ms=until_ms,
        group_by=group_by,
        order=order,
        after=after,
        limit=limit,
        my_account=my_account,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    stage: str | Unset = UNSET,
    job_stage: str | Unset = UNSET,
    health: str | Unset = UNSET,
    job_health: str | Unset = UNSET,
    account: str | Unset = UNSET,
    queue: str | Unset = UNSET,
    host: str | Unset = UNSET,
    host_machine: str | Unset = UNSET,
    suite: str | Unset = UNSET,
    submit_id: str | Unset = UNSET,
    sequence: str | Unset = UNSET,
    group_id: str | Unset = UNSET,
    tbox_group: str | Unset = UNSET,
    kv: list[str] | Unset = UNSET,
    with_kv: bool | Unset = UNSET,
    signature: str | Unset = UNSET,
    parts: JobsParts | Unset = UNSET,
    shards_of: str | Unset = UNSET,
    since_ms: int | Unset = UNSET,
    until_ms: int | Unset = UNSET,
    group_by: JobsGroupBy | Unset = UNSET,
    order: JobsOrder | Unset = UNSET,
    after: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | JobList | None:
    """lists jobs by filters, paged

    Args:
        stage (str | Unset):
        job_stage (str | Unset):
        health (str | Unset):
        job_health (str | Unset):
        account (str | Unset):
        queue (str | Unset):
        host (str | Unset):
        host_machine (str | Unset):
        suite (str | Unset):
        submit_id (str | Unset):
        sequence (str | Unset):
        group_id (str | Unset):
        tbox_group (str | Unset):
        kv (list[str] | Unset):
        with_kv (bool | Unset):
        signature (str | Unset):
        parts (JobsParts | Unset):
        shards_of (str | Unset):
        since_ms (int | Unset):
        until_ms (int | Unset):
        group_by (JobsGroupBy | Unset):
        order (JobsOrder | Unset):
        after (str | Unset):
        limit (int | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | JobList
    """

    return sync_detailed(
        client=client,
        stage=stage,
        job_stage=job_stage,
        health=health,
        job_health=job_health,
        account=account,
        queue=queue,
        host=host,
        host_machine=host_machine,
        suite=suite,
        submit_id=submit_id,
        sequence=sequence,
        group_id=group_id,
        tbox_group=tbox_group,
        kv=kv,
        with_kv=with_kv,
        signature=signature,
        parts=parts,
        shards_of=shards_of,
        since_ms=since_ms,
        until_ms=until_ms,
        group_by=group_by,
        order=order,
        after=after,
        limit=limit,
        my_account=my_account,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    stage: str | Unset = UNSET,
    job_stage: str | Unset = UNSET,
    health: str | Unset = UNSET,
    job_health: str | Unset = UNSET,
    account: str | Unset = UNSET,
    queue: str | Unset = UNSET,
    host: str | Unset = UNSET,
    host_machine: str | Unset = UNSET,
    suite: str | Unset = UNSET,
    submit_id: str | Unset = UNSET,
    sequence: str | Unset = UNSET,
    group_id: str | Unset = UNSET,
    tbox_group: str | Unset = UNSET,
    kv: list[str] | Unset = UNSET,
    with_kv: bool | Unset = UNSET,
    signature: str | Unset = UNSET,
    parts: JobsParts | Unset = UNSET,
    shards_of: str | Unset = UNSET,
    since_ms: int | Unset = UNSET,
    until_ms: int | Unset = UNSET,
    group_by: JobsGroupBy | Unset = UNSET,
    order: JobsOrder | Unset = UNSET,
    after: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | JobList]:
    """lists jobs by filters, paged

    Args:
        stage (str | Unset):
        job_stage (str | Unset):
        health (str | Unset):
        job_health (str | Unset):
        account (str | Unset):
        queue (str | Unset):
        host (str | Unset):
        host_machine (str | Unset):
        suite (str | Unset):
        submit_id (str | Unset):
        sequence (str | Unset):
        group_id (str | Unset):
        tbox_group (str | Unset):
        kv (list[str] | Unset):
        with_kv (bool | Unset):
        signature (str | Unset):
        parts (JobsParts | Unset):
        shards_of (str | Unset):
        since_ms (int | Unset):
        until_ms (int | Unset):
        group_by (JobsGroupBy | Unset):
        order (JobsOrder | Unset):
        after (str | Unset):
        limit (int | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | JobList]
    """

    kwargs = _get_kwargs(
        stage=stage,
        job_stage=job_stage,
        health=health,
        job_health=job_health,
        account=account,
        queue=queue,
        host=host,
        host_machine=host_machine,
        suite=suite,
        submit_id=submit_id,
        sequence=sequence,
        group_id=group_id,
        tbox_group=tbox_group,
        kv=kv,
        with_kv=with_kv,
        signature=signature,
        parts=parts,
        shards_of=shards_of,
        since_ms=since_ms,
        until_ms=until_ms,
        group_by=group_by,
        order=order,
        after=after,
        limit=limit,
        my_account=my_account,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    stage: str | Unset = UNSET,
    job_stage: str | Unset = UNSET,
    health: str | Unset = UNSET,
    job_health: str | Unset = UNSET,
    account: str | Unset = UNSET,
    queue: str | Unset = UNSET,
    host: str | Unset = UNSET,
    host_machine: str | Unset = UNSET,
    suite: str | Unset = UNSET,
    submit_id: str | Unset = UNSET,
    sequence: str | Unset = UNSET,
    group_id: str | Unset = UNSET,
    tbox_group: str | Unset = UNSET,
    kv: list[str] | Unset = UNSET,
    with_kv: bool | Unset = UNSET,
    signature: str | Unset = UNSET,
    parts: JobsParts | Unset = UNSET,
    shards_of: str | Unset = UNSET,
    since_ms: int | Unset = UNSET,
    until_ms: int | Unset = UNSET,
    group_by: JobsGroupBy | Unset = UNSET,
    order: JobsOrder | Unset = UNSET,
    after: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | JobList | None:
    """lists jobs by filters, paged

    Args:
        stage (str | Unset):
        job_stage (str | Unset):
        health (str | Unset):
        job_health (str | Unset):
        account (str | Unset):
        queue (str | Unset):
        host (str | Unset):
        host_machine (str | Unset):
        suite (str | Unset):
        submit_id (str | Unset):
        sequence (str | Unset):
        group_id (str | Unset):
        tbox_group (str | Unset):
        kv (list[str] | Unset):
        with_kv (bool | Unset):
        signature (str | Unset):
        parts (JobsParts | Unset):
        shards_of (str | Unset):
        since_ms (int | Unset):
        until_ms (int | Unset):
        group_by (JobsGroupBy | Unset):
        order (JobsOrder | Unset):
        after (str | Unset):
        limit (int | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | JobList
    """

    return (
        await asyncio_detailed(
            client=client,
            stage=stage,
            job_stage=job_stage,
            health=health,
            job_health=job_health,
            account=account,
            queue=queue,
            host=host,
            host_machine=host_machine,
            suite=suite,
            submit_id=submit_id,
            sequence=sequence,
            group_id=group_id,
            tbox_group=tbox_group,
            kv=kv,
            with_kv=with_kv,
            signature=signature,
            parts=parts,
            shards_of=shards_of,
            since_ms=since_ms,
            until_ms=until_ms,
            group_by=group_by,
            order=order,
            after=after,
            limit=limit,
            my_account=my_account,
        )
    ).parsed
