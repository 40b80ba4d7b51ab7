from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_body import ErrorBody
from ...models.usage_by import UsageBy
from ...models.usage_report import UsageReport
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    by: UsageBy | Unset = UNSET,
    since_ms: int | Unset = UNSET,
    until_ms: int | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    json_by: str | Unset = UNSET
    if not isinstance(by, Unset):
        json_by = by

    params["by"] = json_by

    params["since_ms"] = since_ms

    params["until_ms"] = until_ms

    params["my_account"] = my_account

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/scheduler/v1/usage",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorBody | UsageReport:
    if response.status_code == 200:
        response_200 = UsageReport.from_dict(response.json())

        return response_200

    response_default = ErrorBody.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ErrorBody | UsageReport]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    by: UsageBy | Unset = UNSET,
    since_ms: int | Unset = UNSET,
    until_ms: int | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | UsageReport]:
    """hours, jobs and waits between two times, by account, queue, host, suite or class

    Args:
        by (UsageBy | Unset):
        since_ms (int | Unset):
        until_ms (int | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | UsageReport]
    """

    kwargs = _get_kwargs(
        by=by,
        since_ms=since_ms,
        until_ms=until_ms,
        my_account=my_account,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    by: UsageBy | Unset = UNSET,
    since_ms: int | Unset = UNSET,
    until_ms: int | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | UsageReport | None:
    """hours, jobs and waits between two times, by account, queue, host, suite or class

    Args:
        by (UsageBy | Unset):
        since_ms (int | Unset):
        until_ms (int | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | UsageReport
    """

    return sync_detailed(
        client=client,
        by=by,
        since_ms=since_ms,
        until_ms=until_ms,
        my_account=my_account,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    by: UsageBy | Unset = UNSET,
    since_ms: int | Unset = UNSET,
    until_ms: int | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | UsageReport]:
    """hours, jobs and waits between two times, by account, queue, host, suite or class

    Args:
        by (UsageBy | Unset):
        since_ms (int | Unset):
        until_ms (int | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | UsageReport]
    """

    kwargs = _get_kwargs(
        by=by,
        since_ms=since_ms,
        until_ms=until_ms,
        my_account=my_account,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    by: UsageBy | Unset = UNSET,
    since_ms: int | Unset = UNSET,
    until_ms: int | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | UsageReport | None:
    """hours, jobs and waits between two times, by account, queue, host, suite or class

    Args:
        by (UsageBy | Unset):
        since_ms (int | Unset):
        until_ms (int | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | UsageReport
    """

    return (
        await asyncio_detailed(
            client=client,
            by=by,
            since_ms=since_ms,
            until_ms=until_ms,
            my_account=my_account,
        )
    ).parsed
