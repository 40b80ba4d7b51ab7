from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.answer_format import AnswerFormat
from ...models.error_body import ErrorBody
from ...models.job_answer import JobAnswer
from ...types import UNSET, Response, Unset


def _get_kwargs(
    id: str,
    *,
    format_: AnswerFormat | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    json_format_: str | Unset = UNSET
    if not isinstance(format_, Unset):
        json_format_ = format_

    params["format"] = json_format_

    params["my_account"] = my_account

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/r/{id}".format(
            id=quote(str(id), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorBody | JobAnswer:
    if response.status_code == 200:
        response_200 = JobAnswer.from_dict(response.json())

        return response_200

    response_default = ErrorBody.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ErrorBody | JobAnswer]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    id: str,
    *,
    client: AuthenticatedClient,
    format_: AnswerFormat | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | JobAnswer]:
    """the answer of a job and of each of its shards: a page, or JSON if that is accepted or format=json

    Args:
        id (str):
        format_ (AnswerFormat | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | JobAnswer]
    """

    kwargs = _get_kwargs(
        id=id,
        format_=format_,
        my_account=my_account,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    id: str,
    *,
    client: AuthenticatedClient,
    format_: AnswerFormat | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | JobAnswer | None:
    """the answer of a job and of each of its shards: a page, or JSON if that is accepted or format=json

    Args:
        id (str):
        format_ (AnswerFormat | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | JobAnswer
    """

    return sync_detailed(
        id=id,
        client=client,
        format_=format_,
        my_account=my_account,
    ).parsed


async def asyncio_detailed(
    id: str,
    *,
    client: AuthenticatedClient,
    format_: AnswerFormat | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | JobAnswer]:
    """the answer of a job and of each of its shards: a page, or JSON if that is accepted or format=json

    Args:
        id (str):
        format_ (AnswerFormat | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | JobAnswer]
    """

    kwargs = _get_kwargs(
        id=id,
        format_=format_,
        my_account=my_account,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    id: str,
    *,
    client: AuthenticatedClient,
    format_: AnswerFormat | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | JobAnswer | None:
    """the answer of a job and of each of its shards: a page, or JSON if that is accepted or format=json

    Args:
        id (str):
        format_ (AnswerFormat | Unset):
        my_account (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | JobAnswer
    """

    return (
        await asyncio_detailed(
            id=id,
            client=client,
            format_=format_,
            my_account=my_account,
        )
    ).parsed
