from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_body import ErrorBody
from ...models.preview import Preview
from ...models.preview_request import PreviewRequest
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    body: PreviewRequest | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["my_account"] = my_account

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/scheduler/v1/previews",
        "params": params,
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorBody | Preview:
    if response.status_code == 200:
        response_200 = Preview.from_dict(response.json())

        return response_200

    response_default = ErrorBody.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ErrorBody | Preview]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    body: PreviewRequest | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | Preview]:
    """shows what an action on many jobs, hosts or queues will touch; it can be run for 10 minutes

    Args:
        my_account (str | Unset):
        body (PreviewRequest | Unset): An action, and on what.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | Preview]
    """

    kwargs = _get_kwargs(
        body=body,
        my_account=my_account,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    body: PreviewRequest | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | Preview | None:
    """shows what an action on many jobs, hosts or queues will touch; it can be run for 10 minutes

    Args:
        my_account (str | Unset):
        body (PreviewRequest | Unset): An action, and on what.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | Preview
    """

    return sync_detailed(
        client=client,
        body=body,
        my_account=my_account,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    body: PreviewRequest | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | Preview]:
    """shows what an action on many jobs, hosts or queues will touch; it can be run for 10 minutes

    Args:
        my_account (str | Unset):
        body (PreviewRequest | Unset): An action, and on what.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | Preview]
    """

    kwargs = _get_kwargs(
        body=body,
        my_account=my_account,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    body: PreviewRequest | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | Preview | None:
    """shows what an action on many jobs, hosts or queues will touch; it can be run for 10 minutes

    Args:
        my_account (str | Unset):
        body (PreviewRequest | Unset): An action, and on what.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | Preview
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            my_account=my_account,
        )
    ).parsed
