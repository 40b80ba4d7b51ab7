from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_body import ErrorBody
from ...models.host_view import HostView
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    tags: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["tags"] = tags

    params["limit"] = limit

    params["after"] = after

    params["my_account"] = my_account

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/scheduler/v1/hosts",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorBody | list[HostView]:
    if response.status_code == 200:
        response_200 = []
        _response_200 = response.json()
        for response_200_item_data in _response_200:
            response_200_item = HostView.from_dict(response_200_item_data)

            response_200.append(response_200_item)

        return response_200

    response_default = ErrorBody.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ErrorBody | list[HostView]]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    tags: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | list[HostView]]:
    """hosts, what they offer and run; with `tags=` those that have all of them

    Args:
        tags (str | Unset):
        limit (int | Unset):
        after (str | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | list[HostView]]
    """

    kwargs = _get_kwargs(
        tags=tags,
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
    tags: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | list[HostView] | None:
    """hosts, what they offer and run; with `tags=` those that have all of them

    Args:
        tags (str | Unset):
        limit (int | Unset):
        after (str | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | list[HostView]
    """

    return sync_detailed(
        client=client,
        tags=tags,
        limit=limit,
        after=after,
        my_account=my_account,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    tags: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | list[HostView]]:
    """hosts, what they offer and run; with `tags=` those that have all of them

    Args:
        tags (str | Unset):
        limit (int | Unset):
        after (str | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | list[HostView]]
    """

    kwargs = _get_kwargs(
        tags=tags,
        limit=limit,
        after=after,
        my_account=my_account,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    tags: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | list[HostView] | None:
    """hosts, what they offer and run; with `tags=` those that have all of them

    Args:
        tags (str | Unset):
        limit (int | Unset):
        after (str | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | list[HostView]
    """

    return (
        await asyncio_detailed(
            client=client,
            tags=tags,
            limit=limit,
            after=after,
            my_account=my_account,
        )
    ).parsed
