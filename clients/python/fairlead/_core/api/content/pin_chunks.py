from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.content_missing import ContentMissing
from ...models.content_pin import ContentPin
from ...models.error_body import ErrorBody
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    body: ContentPin | Unset = UNSET,
    job_id: str | Unset = UNSET,
    job_token: str | Unset = UNSET,
    attempt: int | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["job_id"] = job_id

    params["job_token"] = job_token

    params["attempt"] = attempt

    params["my_account"] = my_account

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/scheduler/v1/content/pin",
        "params": params,
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ContentMissing | ErrorBody:
    if response.status_code == 200:
        response_200 = ContentMissing.from_dict(response.json())

        return response_200

    response_default = ErrorBody.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ContentMissing | ErrorBody]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    body: ContentPin | Unset = UNSET,
    job_id: str | Unset = UNSET,
    job_token: str | Unset = UNSET,
    attempt: int | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ContentMissing | ErrorBody]:
    """keeps chunks from collection for a put, and says which of them must be sent, and where

    Args:
        job_id (str | Unset):
        job_token (str | Unset):
        attempt (int | Unset):
        my_account (str | Unset):
        body (ContentPin | Unset): Chunks that are about to be put, and kept from collection from
            now on.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ContentMissing | ErrorBody]
    """

    kwargs = _get_kwargs(
        body=body,
        job_id=job_id,
        job_token=job_token,
        attempt=attempt,
        my_account=my_account,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    body: ContentPin | Unset = UNSET,
    job_id: str | Unset = UNSET,
    job_token: str | Unset = UNSET,
    attempt: int | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ContentMissing | ErrorBody | None:
    """keeps chunks from collection for a put, and says which of them must be sent, and where

    Args:
        job_id (str | Unset):
        job_token (str | Unset):
        attempt (int | Unset):
        my_account (str | Unset):
        body (ContentPin | Unset): Chunks that are about to be put, and kept from collection from
            now on.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ContentMissing | ErrorBody
    """

    return sync_detailed(
        client=client,
        body=body,
        job_id=job_id,
        job_token=job_token,
        attempt=attempt,
        my_account=my_account,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    body: ContentPin | Unset = UNSET,
    job_id: str | Unset = UNSET,
    job_token: str | Unset = UNSET,
    attempt: int | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ContentMissing | ErrorBody]:
    """keeps chunks from collection for a put, and says which of them must be sent, and where

    Args:
        job_id (str | Unset):
        job_token (str | Unset):
        attempt (int | Unset):
        my_account (str | Unset):
        body (ContentPin | Unset): Chunks that are about to be put, and kept from collection from
            now on.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ContentMissing | ErrorBody]
    """

    kwargs = _get_kwargs(
        body=body,
        job_id=job_id,
        job_token=job_token,
        attempt=attempt,
        my_account=my_account,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    body: ContentPin | Unset = UNSET,
    job_id: str | Unset = UNSET,
    job_token: str | Unset = UNSET,
    attempt: int | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ContentMissing | ErrorBody | None:
    """keeps chunks from collection for a put, and says which of them must be sent, and where

    Args:
        job_id (str | Unset):
        job_token (str | Unset):
        attempt (int | Unset):
        my_account (str | Unset):
        body (ContentPin | Unset): Chunks that are about to be put, and kept from collection from
            now on.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ContentMissing | ErrorBody
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            job_id=job_id,
            job_token=job_token,
            attempt=attempt,
            my_account=my_account,
        )
    ).parsed
