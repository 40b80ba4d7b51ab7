from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_body import ErrorBody
from ...models.job_body import JobBody
from ...models.submit_item import SubmitItem
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    body: JobBody | list[JobBody] | Unset = UNSET,
    strict: bool | Unset = UNSET,
    dry_run: bool | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["strict"] = strict

    params["dry_run"] = dry_run

    params["idempotency_key"] = idempotency_key

    params["my_account"] = my_account

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/scheduler/v1/jobs/submit",
        "params": params,
    }

    if isinstance(body, JobBody):
        _kwargs["json"] = body.to_dict()
    else:
        _kwargs["json"] = []
        for componentsschemas_jobs_type_1_item_data in body:
            componentsschemas_jobs_type_1_item = (
                componentsschemas_jobs_type_1_item_data.to_dict()
            )
            _kwargs["json"].append(componentsschemas_jobs_type_1_item)

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorBody | list[SubmitItem]:
    if response.status_code == 200:
        response_200 = []
        _response_200 = response.json()
        for response_200_item_data in _response_200:
            response_200_item = SubmitItem.from_dict(response_200_item_data)

            response_200.append(response_200_item)

        return response_200

    def _parse_response_default(data: object) -> ErrorBody | list[SubmitItem]:
        try:
            if not isinstance(data, list):
                raise TypeError()
            response_default_type_0 = []
            _response_default_type_0 = data
            for response_default_type_0_item_data in _response_default_type_0:
                response_default_type_0_item = SubmitItem.from_dict(
                    response_default_type_0_item_data
                )

                response_default_type_0.append(response_default_type_0_item)

            return response_default_type_0
        except (TypeError, ValueError, AttributeError, KeyError):
            pass
        if not isinstance(data, dict):
            raise TypeError()
        response_default_type_1 = ErrorBody.from_dict(data)

        return response_default_type_1

    response_default = _parse_response_default(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ErrorBody | list[SubmitItem]]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    body: JobBody | list[JobBody] | Unset = UNSET,
    strict: bool | Unset = UNSET,
    dry_run: bool | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | list[SubmitItem]]:
    """submits one job or a list, JSON or YAML

    Args:
        strict (bool | Unset):
        dry_run (bool | Unset):
        idempotency_key (str | Unset):
        my_account (str | Unset):
        body (JobBody | list[JobBody] | Unset): One job, as a job file has it, or a list of them.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | list[SubmitItem] | list[SubmitItem]]
    """

    kwargs = _get_kwargs(
        body=body,
        strict=strict,
        dry_run=dry_run,
        idempotency_key=idempotency_key,
        my_account=my_account,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    body: JobBody | list[JobBody] | Unset = UNSET,
    strict: bool | Unset = UNSET,
    dry_run: bool | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | list[SubmitItem] | None:
    """submits one job or a list, JSON or YAML

    Args:
        strict (bool | Unset):
        dry_run (bool | Unset):
        idempotency_key (str | Unset):
        my_account (str | Unset):
        body (JobBody | list[JobBody] | Unset): One job, as a job file has it, or a list of them.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | list[SubmitItem] | list[SubmitItem]
    """

    return sync_detailed(
        client=client,
        body=body,
        strict=strict,
        dry_run=dry_run,
        idempotency_key=idempotency_key,
        my_account=my_account,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    body: JobBody | list[JobBody] | Unset = UNSET,
    strict: bool | Unset = UNSET,
    dry_run: bool | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> Response[ErrorBody | list[SubmitItem]]:
    """submits one job or a list, JSON or YAML

    Args:
        strict (bool | Unset):
        dry_run (bool | Unset):
        idempotency_key (str | Unset):
        my_account (str | Unset):
        body (JobBody | list[JobBody] | Unset): One job, as a job file has it, or a list of them.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | list[SubmitItem] | list[SubmitItem]]
    """

    kwargs = _get_kwargs(
        body=body,
        strict=strict,
        dry_run=dry_run,
        idempotency_key=idempotency_key,
        my_account=my_account,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    body: JobBody | list[JobBody] | Unset = UNSET,
    strict: bool | Unset = UNSET,
    dry_run: bool | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
    my_account: str | Unset = UNSET,
) -> ErrorBody | list[SubmitItem] | None:
    """submits one job or a list, JSON or YAML

    Args:
        strict (bool | Unset):
        dry_run (bool | Unset):
        idempotency_key (str | Unset):
        my_account (str | Unset):
        body (JobBody | list[JobBody] | Unset): One job, as a job file has it, or a list of them.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | list[SubmitItem] | list[SubmitItem]
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            strict=strict,
            dry_run=dry_run,
            idempotency_key=idempotency_key,
            my_account=my_account,
        )
    ).parsed
