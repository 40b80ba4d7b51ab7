from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.audit_list import AuditList
from ...models.error_body import ErrorBody
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    who: str | Unset = UNSET,
    what: str | Unset = UNSET,
    incidents: bool | Unset = UNSET,
    subject: str | Unset = UNSET,
    since_ms: int | Unset = UNSET,
    until_ms: int | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["who"] = who

    params["what"] = what

    params["incidents"] = incidents

    params["subject"] = subject

    params["since_ms"] = since_ms

    params["until_ms"] = until_ms

    params["limit"] = limit

    params["after"] = after

    params["my_account"] = my_account

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/scheduler/v1/audit",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> AuditList | ErrorBody:
    if response.status_code == 200:
        response_200 = AuditList.from_dict(response.json())

        return response_200

    response_default = ErrorBody.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[AuditList | ErrorBody]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    who: str | Unset = UNSET,
    what: str | Unset = UNSET,
    incidents: bool | Unset = UNSET,
    subject: str | Unset = UNSET,
    since_ms: int | Unset = UNSET,
    until_ms: int | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[AuditList | ErrorBody]:
    """who did what, the newest first: an admin sees all, others see their own acts and those on hosts,
    queues, pools and the lab

    Args:
        who (str | Unset):
        what (str | Unset):
        incidents (bool | Unset):
        subject (str | Unset):
        since_ms (int | Unset):
        until_ms (int | Unset):
        limit (int | Unset):
        after (str | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AuditList | ErrorBody]
    """

    kwargs = _get_kwargs(
        who=who,
        what=what,
        incidents=incidents,
        subject=subject,
        since_ms=since_ms,
        until_ms=until_ms,
        limit=limit,
        after=after,
        my_account=my_account,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    who: str | Unset = UNSET,
    what: str | Unset = UNSET,
    incidents: bool | Unset = UNSET,
    subject: str | Unset = UNSET,
    since_ms: int | Unset = UNSET,
    until_ms: int | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> AuditList | ErrorBody | None:
    """who did what, the newest first: an admin sees all, others see their own acts and those on hosts,
    queues, pools and the lab

    Args:
        who (str | Unset):
        what (str | Unset):
        incidents (bool | Unset):
        subject (str | Unset):
        since_ms (int | Unset):
        until_ms (int | Unset):
        limit (int | Unset):
        after (str | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AuditList | ErrorBody
    """

    return sync_detailed(
        client=client,
        who=who,
        what=what,
        incidents=incidents,
        subject=subject,
        since_ms=since_ms,
        until_ms=until_ms,
        limit=limit,
        after=after,
        my_account=my_account,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    who: str | Unset = UNSET,
    what: str | Unset = UNSET,
    incidents: bool | Unset = UNSET,
    subject: str | Unset = UNSET,
    since_ms: int | Unset = UNSET,
    until_ms: int | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[AuditList | ErrorBody]:
    """who did what, the newest first: an admin sees all, others see their own acts and those on hosts,
    queues, pools and the lab

    Args:
        who (str | Unset):
        what (str | Unset):
        incidents (bool | Unset):
        subject (str | Unset):
        since_ms (int | Unset):
        until_ms (int | Unset):
        limit (int | Unset):
        after (str | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AuditList | ErrorBody]
    """

    kwargs = _get_kwargs(
        who=who,
        what=what,
        incidents=incidents,
        subject=subject,
        since_ms=since_ms,
        until_ms=until_ms,
        limit=limit,
        after=after,
        my_account=my_account,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    who: str | Unset = UNSET,
    what: str | Unset = UNSET,
    incidents: bool | Unset = UNSET,
    subject: str | Unset = UNSET,
    since_ms: int | Unset = UNSET,
    until_ms: int | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> AuditList | ErrorBody | None:
    """who did what, the newest first: an admin sees all, others see their own acts and those on hosts,
    queues, pools and the lab

    Args:
        who (str | Unset):
        what (str | Unset):
        incidents (bool | Unset):
        subject (str | Unset):
        since_ms (int | Unset):
        until_ms (int | Unset):
        limit (int | Unset):
        after (str | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AuditList | ErrorBody
    """

    return (
        await asyncio_detailed(
            client=client,
            who=who,
            what=what,
            incidents=incidents,
            subject=subject,
            since_ms=since_ms,
            until_ms=until_ms,
            limit=limit,
            after=after,
            my_account=my_account,
        )
    ).parsed
