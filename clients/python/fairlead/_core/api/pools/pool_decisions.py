from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_body import ErrorBody
from ...models.pool_decision import PoolDecision
from ...types import UNSET, Response, Unset


def _get_kwargs(
    name: str,
    *,
    before: int | Unset = UNSET,
    limit: int | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["before"] = before

    params["limit"] = limit

    params["my_account"] = my_account

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/scheduler/v1/pools/{name}/decisions".format(
            name=quote(str(name), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorBody | list[PoolDecision]:
    if response.status_code == 200:
        response_200 = []
        _response_200 = response.json()
        for response_200_item_data in _response_200:
            response_200_item = PoolDecision.from_dict(response_200_item_data)

            response_200.append(response_200_item)

        return response_200

    response_default = ErrorBody.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ErrorBody | list[PoolDecision]]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    name: str,
    *,
    client: AuthenticatedClient,
    before: int | Unset = UNSET,
    limit: int | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | list[PoolDecision]]:
    """the decisions of a pool with their numbers, the newest first; `before=` a number goes on behind it

    Args:
        name (str):
        before (int | Unset):
        limit (int | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | list[PoolDecision]]
    """

    kwargs = _get_kwargs(
        name=name,
        before=before,
        limit=limit,
        my_account=my_account,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    name: str,
    *,
    client: AuthenticatedClient,
    before: int | Unset = UNSET,
    limit: int | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | list[PoolDecision] | None:
    """the decisions of a pool with their numbers, the newest first; `before=` a number goes on behind it

    Args:
        name (str):
        before (int | Unset):
        limit (int | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | list[PoolDecision]
    """

    return sync_detailed(
        name=name,
        client=client,
        before=before,
        limit=limit,
        my_account=my_account,
    ).parsed


async def asyncio_detailed(
    name: str,
    *,
    client: AuthenticatedClient,
    before: int | Unset = UNSET,
    limit: int | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | list[PoolDecision]]:
    """the decisions of a pool with their numbers, the newest first; `before=` a number goes on behind it

    Args:
        name (str):
        before (int | Unset):
        limit (int | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | list[PoolDecision]]
    """

    kwargs = _get_kwargs(
        name=name,
        before=before,
        limit=limit,
        my_account=my_account,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    name: str,
    *,
    client: AuthenticatedClient,
    before: int | Unset = UNSET,
    limit: int | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | list[PoolDecision] | None:
    """the decisions of a pool with their numbers, the newest first; `before=` a number goes on behind it

    Args:
        name (str):
        before (int | Unset):
        limit (int | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | list[PoolDecision]
    """

    return (
        await asyncio_detailed(
            name=name,
            client=client,
            before=before,
            limit=limit,
            my_account=my_account,
        )
    ).parsed
