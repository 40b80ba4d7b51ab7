from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_body import ErrorBody
from ...models.pool_change import PoolChange
from ...models.pool_view import PoolView
from ...types import UNSET, Response, Unset


def _get_kwargs(
    name: str,
    *,
    body: PoolChange | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["my_account"] = my_account

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/scheduler/v1/pools/{name}".format(
            name=quote(str(name), safe=""),
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
) -> ErrorBody | PoolView:
    if response.status_code == 200:
        response_200 = PoolView.from_dict(response.json())

        return response_200

    response_default = ErrorBody.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ErrorBody | PoolView]:
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
    body: PoolChange | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | PoolView]:
    """sets what is given of a pool, and makes it

    Args:
        name (str):
        my_account (str | Unset):
        body (PoolChange | Unset): Changes what an admin says of a pool. What is absent stays as
            it is; a new pool needs `provider` and `machine`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | PoolView]
    """

    kwargs = _get_kwargs(
        name=name,
        body=body,
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
    body: PoolChange | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | PoolView | None:
    """sets what is given of a pool, and makes it

    Args:
        name (str):
        my_account (str | Unset):
        body (PoolChange | Unset): Changes what an admin says of a pool. What is absent stays as
            it is; a new pool needs `provider` and `machine`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | PoolView
    """

    return sync_detailed(
        name=name,
        client=client,
        body=body,
        my_account=my_account,
    ).parsed


async def asyncio_detailed(
    name: str,
    *,
    client: AuthenticatedClient,
    body: PoolChange | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | PoolView]:
    """sets what is given of a pool, and makes it

    Args:
        name (str):
        my_account (str | Unset):
        body (PoolChange | Unset): Changes what an admin says of a pool. What is absent stays as
            it is; a new pool needs `provider` and `machine`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | PoolView]
    """

    kwargs = _get_kwargs(
        name=name,
        body=body,
        my_account=my_account,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    name: str,
    *,
    client: AuthenticatedClient,
    body: PoolChange | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | PoolView | None:
    """sets what is given of a pool, and makes it

    Args:
        name (str):
        my_account (str | Unset):
        body (PoolChange | Unset): Changes what an admin says of a pool. What is absent stays as
            it is; a new pool needs `provider` and `machine`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | PoolView
    """

    return (
        await asyncio_detailed(
            name=name,
            client=client,
            body=body,
            my_account=my_account,
        )
    ).parsed
