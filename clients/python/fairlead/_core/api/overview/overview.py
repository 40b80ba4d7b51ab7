from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_body import ErrorBody
from ...models.snapshot import Snapshot
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    my_account: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["my_account"] = my_account

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/scheduler/v1/overview",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorBody | Snapshot:
    if response.status_code == 200:
        response_200 = Snapshot.from_dict(response.json())

        return response_200

    response_default = ErrorBody.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ErrorBody | Snapshot]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | Snapshot]:
    """the lab as it is: queues, hosts, replicas and stages of jobs, at most a second old

    Args:
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | Snapshot]
    """

    kwargs = _get_kwargs(
        my_account=my_account,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    my_account: str | Unset = UNSET,
) -> ErrorBody | Snapshot | None:
    """the lab as it is: queues, hosts, replicas and stages of jobs, at most a second old

    Args:
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | Snapshot
    """

    return sync_detailed(
        client=client,
        my_account=my_account,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | Snapshot]:
    """the lab as it is: queues, hosts, replicas and stages of jobs, at most a second old

    Args:
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | Snapshot]
    """

    kwargs = _get_kwargs(
        my_account=my_account,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    my_account: str | Unset = UNSET,
) -> ErrorBody | Snapshot | None:
    """the lab as it is: queues, hosts, replicas and stages of jobs, at most a second old

    Args:
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | Snapshot
    """

    return (
        await asyncio_detailed(
            client=client,
            my_account=my_account,
        )
    ).parsed
