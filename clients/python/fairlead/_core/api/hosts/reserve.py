from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_body import ErrorBody
from ...models.host_reserve import HostReserve
from ...models.host_view import HostView
from ...types import UNSET, Response, Unset


def _get_kwargs(
    hostname: str,
    *,
    body: HostReserve | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["my_account"] = my_account

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/scheduler/v1/hosts/{hostname}/reserve".format(
            hostname=quote(str(hostname), safe=""),
        ),
        "params": params,
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorBody | HostView:
    if response.status_code == 200:
        response_200 = HostView.from_dict(response.json())

        return response_200

    response_default = ErrorBody.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ErrorBody | HostView]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    hostname: str,
    *,
    client: AuthenticatedClient,
    body: HostReserve | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | HostView]:
    """keeps a host for the jobs of some accounts until a time

    Args:
        hostname (str):
        my_account (str | Unset):
        body (HostReserve | Unset): Keeps a host for some accounts.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | HostView]
    """

    kwargs = _get_kwargs(
        hostname=hostname,
        body=body,
        my_account=my_account,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    hostname: str,
    *,
    client: AuthenticatedClient,
    body: HostReserve | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | HostView | None:
    """keeps a host for the jobs of some accounts until a time

    Args:
        hostname (str):
        my_account (str | Unset):
        body (HostReserve | Unset): Keeps a host for some accounts.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | HostView
    """

    return sync_detailed(
        hostname=hostname,
        client=client,
        body=body,
        my_account=my_account,
    ).parsed


async def asyncio_detailed(
    hostname: str,
    *,
    client: AuthenticatedClient,
    body: HostReserve | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | HostView]:
    """keeps a host for the jobs of some accounts until a time

    Args:
        hostname (str):
        my_account (str | Unset):
        body (HostReserve | Unset): Keeps a host for some accounts.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | HostView]
    """

    kwargs = _get_kwargs(
        hostname=hostname,
        body=body,
        my_account=my_account,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    hostname: str,
    *,
    client: AuthenticatedClient,
    body: HostReserve | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | HostView | None:
    """keeps a host for the jobs of some accounts until a time

    Args:
        hostname (str):
        my_account (str | Unset):
        body (HostReserve | Unset): Keeps a host for some accounts.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | HostView
    """

    return (
        await asyncio_detailed(
            hostname=hostname,
            client=client,
            body=body,
            my_account=my_account,
        )
    ).parsed
