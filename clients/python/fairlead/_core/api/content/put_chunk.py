from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_body import ErrorBody
from ...models.written import Written
from ...types import UNSET, Response, Unset


def _get_kwargs(
    digest: str,
    *,
    body: Any | Unset = UNSET,
    put: str | Unset = UNSET,
    job_id: str | Unset = UNSET,
    job_token: str | Unset = UNSET,
    attempt: int | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["put"] = put

    params["job_id"] = job_id

    params["job_token"] = job_token

    params["attempt"] = attempt

    params["my_account"] = my_account

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/scheduler/v1/content/chunks/{digest}".format(
            digest=quote(str(digest), safe=""),
        ),
        "params": params,
    }

    if not isinstance(body, Unset):
        _kwargs["content"] = body.payload
    headers["Content-Type"] = "application/octet-stream"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorBody | Written:
    if response.status_code == 200:
        response_200 = Written.from_dict(response.json())

        return response_200

    response_default = ErrorBody.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ErrorBody | Written]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    digest: str,
    *,
    client: AuthenticatedClient,
    body: Any | Unset = UNSET,
    put: str | Unset = UNSET,
    job_id: str | Unset = UNSET,
    job_token: str | Unset = UNSET,
    attempt: int | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | Written]:
    """stores a chunk, if it is what its digest says

    Args:
        digest (str):
        put (str | Unset):
        job_id (str | Unset):
        job_token (str | Unset):
        attempt (int | Unset):
        my_account (str | Unset):
        body (Any | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | Written]
    """

    kwargs = _get_kwargs(
        digest=digest,
        body=body,
        put=put,
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
    digest: str,
    *,
    client: AuthenticatedClient,
    body: Any | Unset = UNSET,
    put: str | Unset = UNSET,
    job_id: str | Unset = UNSET,
    job_token: str | Unset = UNSET,
    attempt: int | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | Written | None:
    """stores a chunk, if it is what its digest says

    Args:
        digest (str):
        put (str | Unset):
        job_id (str | Unset):
        job_token (str | Unset):
        attempt (int | Unset):
        my_account (str | Unset):
        body (Any | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | Written
    """

    return sync_detailed(
        digest=digest,
        client=client,
        body=body,
        put=put,
        job_id=job_id,
        job_token=job_token,
        attempt=attempt,
        my_account=my_account,
    ).parsed


async def asyncio_detailed(
    digest: str,
    *,
    client: AuthenticatedClient,
    body: Any | Unset = UNSET,
    put: str | Unset = UNSET,
    job_id: str | Unset = UNSET,
    job_token: str | Unset = UNSET,
    attempt: int | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | Written]:
    """stores a chunk, if it is what its digest says

    Args:
        digest (str):
        put (str | Unset):
        job_id (str | Unset):
        job_token (str | Unset):
        attempt (int | Unset):
        my_account (str | Unset):
        body (Any | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | Written]
    """

    kwargs = _get_kwargs(
        digest=digest,
        body=body,
        put=put,
        job_id=job_id,
        job_token=job_token,
        attempt=attempt,
        my_account=my_account,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    digest: str,
    *,
    client: AuthenticatedClient,
    body: Any | Unset = UNSET,
    put: str | Unset = UNSET,
    job_id: str | Unset = UNSET,
    job_token: str | Unset = UNSET,
    attempt: int | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | Written | None:
    """stores a chunk, if it is what its digest says

    Args:
        digest (str):
        put (str | Unset):
        job_id (str | Unset):
        job_token (str | Unset):
        attempt (int | Unset):
        my_account (str | Unset):
        body (Any | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | Written
    """

    return (
        await asyncio_detailed(
            digest=digest,
            client=client,
            body=body,
            put=put,
            job_id=job_id,
            job_token=job_token,
            attempt=attempt,
            my_account=my_account,
        )
    ).parsed
