from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.content_list import ContentList
from ...models.error_body import ErrorBody
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    account: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["account"] = account

    params["limit"] = limit

    params["after"] = after

    params["my_account"] = my_account

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/scheduler/v1/content",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ContentList | ErrorBody:
    if response.status_code == 200:
        response_200 = ContentList.from_dict(response.json())

        return response_200

    response_default = ErrorBody.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ContentList | ErrorBody]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    account: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ContentList | ErrorBody]:
    """your inputs and outputs, an admin's of all accounts, paged

    Args:
        account (str | Unset):
        limit (int | Unset):
        after (str | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ContentList | ErrorBody]
    """

    kwargs = _get_kwargs(
        account=account,
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
    account: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ContentList | ErrorBody | None:
    """your inputs and outputs, an admin's of all accounts, paged

    Args:
        account (str | Unset):
        limit (int | Unset):
        after (str | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ContentList | ErrorBody
    """

    return sync_detailed(
        client=client,
        account=account,
        limit=limit,
        after=after,
        my_account=my_account,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    account: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ContentList | ErrorBody]:
    """your inputs and outputs, an admin's of all accounts, paged

    Args:
        account (str | Unset):
        limit (int | Unset):
        after (str | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ContentList | ErrorBody]
    """

    kwargs = _get_kwargs(
        account=account,
        limit=limit,
        after=after,
        my_account=my_account,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    account: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ContentList | ErrorBody | None:
    """your inputs and outputs, an admin's of all accounts, paged

    Args:
        account (str | Unset):
        limit (int | Unset):
        after (str | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ContentList | ErrorBody
    """

    return (
        await asyncio_detailed(
            client=client,
            account=account,
            limit=limit,
            after=after,
            my_account=my_account,
        )
    ).parsed
