"""Jobs: their submit, their end, their output and their results."""

from __future__ import annotations

from pathlib import Path

import pytest

import fairlead


def job_of(suite: str, script: str, **fields: object) -> dict[str, object]:
    """A job for `server-1`."""
    return {
        "suite": suite,
        "testbox": "dc-1g",
        "need_memory": "64M",
        "script": script,
        **fields,
    }


def waiting(suite: str) -> dict[str, object]:
    """A job that waits for an hour."""
    return job_of(suite, "true", start_at="+1h")


MATRIX = """
suite: {suite}
testbox: dc-1g
need_memory: 64M
size: [1, 2]
order: [up, down]
script: |
  echo "sorted $size $order"
"""


def test_a_matrix_is_expanded_and_each_job_yielded_once(lab: fairlead.Lab, suite: str) -> None:
    submit = lab.submit(MATRIX.format(suite=suite))
    assert len(submit.jobs) == 4
    assert submit.warnings == []
    ended = list(submit.wait())
    assert sorted(job.id for job in ended) == sorted(job.id for job in submit.jobs)
    assert all(job.succeeded and job.ended and job.host == "server-1" for job in ended)
    logs = {job.params: job.log() for job in ended}
    assert logs == {
        f"size={size} order={order}": f"sorted {size} {order}\n"
        for size in (1, 2)
        for order in ("up", "down")
    }


def test_jobs_are_yielded_in_the_order_of_their_ends(lab: fairlead.Lab, suite: str) -> None:
    jobs = [
        job_of(suite, "true", name="third", needs=["second"]),
        job_of(suite, "true", name="second", needs=["first"]),
        job_of(suite, "true", name="first"),
    ]
    submit = lab.submit(jobs)
    third, second, first = submit.jobs
    assert list(submit.wait()) == [first, second, third]
    # All have ended: the stream tells them in the same order.
    assert list(submit.wait()) == [first, second, third]


def test_a_job_file_is_read(lab: fairlead.Lab, suite: str, tmp_path: Path) -> None:
    file = tmp_path / "matrix.yaml"
    file.write_text(MATRIX.format(suite=suite))
    for name in (file, str(file)):
        assert len(lab.submit(name).jobs) == 4
    with pytest.raises(fairlead.Error, match="job file: 'none.yaml' cannot be read"):
        lab.submit("none.yaml")


def test_a_failing_job_has_its_exit_code_reason_and_output(lab: fairlead.Lab, suite: str) -> None:
    submit = lab.submit(job_of(suite, "echo broken; exit 3"))
    (job,) = submit.wait()
    assert (job.stage, job.health, job.succeeded) == ("finish", "fail", False)
    assert job.reason == "exit code 3"
    assert job.log() == "broken\n"
    assert job.refresh().exit_code == 3
    assert job.view is not None and job.view.failure == "fail"
    result = job.answer()
    assert (result.over, result.job_health) == (True, "fail")


def test_a_refused_job_is_named_and_the_others_run(lab: fairlead.Lab, suite: str) -> None:
    with pytest.raises(fairlead.Refused) as caught:
        lab.submit([job_of(suite, "true"), job_of(suite, "true", need_memory="a lot")])
    refused = caught.value
    assert (refused.code, refused.index) == ("bad_field", 1)
    assert refused.message.startswith("need_memory:")
    assert str(refused) == f"job 1: {refused.message}\nhint: {refused.hint}"
    assert refused.accepted is not None
    (job,) = refused.accepted.wait()
    assert job.succeeded


def test_strict_refuses_a_misspelt_field(lab: fairlead.Lab, suite: str) -> None:
    job = {"suite": suite, "testbox": "dc-1g", "script": "true", "need_memroy": "1g"}
    with pytest.raises(fairlead.Refused, match="need_memory") as caught:
        lab.submit(job, strict=True)
    assert (caught.value.index, caught.value.accepted) == (0, None)
    submit = lab.submit(job)
    assert any("need_memory" in warning for warning in submit.warnings)


def test_a_key_of_the_job_itself_is_used(lab: fairlead.Lab, suite: str) -> None:
    job = job_of(suite, "true", idempotency_key=suite)
    text = MATRIX.format(suite=suite) + f"idempotency_key: {suite}-file\n"
    for jobs in (job, text):
        first, second = lab.submit(jobs), lab.submit(jobs)
        assert [job.id for job in first.jobs] == [job.id for job in second.jobs]


def test_all_pages_are_read(lab: fairlead.Lab, suite: str) -> None:
    submit = lab.submit([job_of(suite, f"exit {code}") for code in (0, 1, 0, 1, 0, 0, 0)])
    assert len(list(submit.wait())) == 7
    ids = [job.id for job in submit.jobs]
    assert [job.id for job in lab.jobs(suite=suite, limit=2)] == ids[::-1]
    assert [job.id for job in lab.jobs(suite=suite, limit=2, order="oldest")] == ids
    failed = list(lab.jobs(suite=suite, limit=1, health="fail"))
    assert [job.exit_code for job in failed] == [1, 1]
    both = lab.jobs(suite=suite, health=["fail", "success"])
    assert sorted(job.id for job in both) == ids
    with pytest.raises(fairlead.Refused, match="did you mean health") as caught:
        list(lab.jobs(helth="fail"))
    assert caught.value.code == "bad_query"


def test_a_job_runs_again(lab: fairlead.Lab, suite: str) -> None:
    (job,) = lab.submit(job_of(suite, "echo again; exit 1")).wait()
    (second,) = job.rerun().wait()
    assert second.id != job.id
    assert second.log() == "again\n"
    third = second.rerun(failed=True)
    assert len(list(third.wait())) == 1
    good = lab.submit(job_of(suite, "true"))
    (job,) = good.wait()
    with pytest.raises(fairlead.Refused) as caught:
        job.rerun(failed=True)
    assert (caught.value.code, caught.value.status) == ("wrong_stage", 409)


def test_a_waiting_job_is_explained_and_cancelled(lab: fairlead.Lab, suite: str) -> None:
    submit = lab.submit(waiting(suite))
    (job,) = submit.jobs
    assert "waits" in job.explain().summary
    assert (job.log(), job.files(), job.refresh().ended) == ("", [], False)
    job.cancel()
    assert list(submit.wait()) == [job]
    assert (job.stage, job.health, job.succeeded) == ("cancel", "cancel", False)


def test_a_running_job_is_stopped(lab: fairlead.Lab, suite: str) -> None:
    script = "trap 'echo put away; exit 0' TERM\necho begun\nsleep 600 & wait"
    submit = lab.submit(job_of(suite, script))
    (job,) = submit.jobs
    output = b""
    for piece in job.follow_log():
        if b"begun" in piece:
            with pytest.raises(fairlead.Refused) as caught:
                job.cancel()
            assert caught.value.code == "wrong_stage"
            job.terminate(grace_s=300)
        output += piece
    assert output == b"begun\nput away\n"
    assert list(submit.wait()) == [job]
    assert (job.stage, job.succeeded) == ("finish", False)


def test_the_output_of_all_attempts_is_followed(lab: fairlead.Lab, suite: str) -> None:
    retry = {"max": 1, "on": ["fail"], "backoff": {"first": "1s"}}
    (job,) = lab.submit(job_of(suite, 'echo "try $ATTEMPT"; exit 1', retry=retry)).jobs
    assert b"".join(job.follow_log()) == b"try 1\ntry 2\n"
    assert job.refresh().attempt == 2
    assert [job.log(attempt) for attempt in (None, 1, 2)] == ["try 2\n", "try 1\n", "try 2\n"]


def test_result_files_are_downloaded(lab: fairlead.Lab, suite: str, tmp_path: Path) -> None:
    script = """
        echo good > "$RESULT_ROOT"/x.txt
        mkdir -p "$RESULT_ROOT/a b"
        head -c 3000000 /dev/zero > "$RESULT_ROOT/a b/ö#1%.bin"
    """
    (job,) = lab.submit(job_of(suite, script)).wait()
    assert {"x.txt", "a b/ö#1%.bin"} <= set(job.files())
    assert job.download("x.txt", tmp_path / "new" / "y.txt").read_text() == "good\n"
    large = job.download("a b/ö#1%.bin", tmp_path)
    assert large == tmp_path / "a b/ö#1%.bin"
    assert large.read_bytes() == bytes(3_000_000)
    with pytest.raises(fairlead.Refused) as caught:
        job.download("none.txt", tmp_path)
    assert caught.value.code == "not_found"
    with pytest.raises(fairlead.Error, match="leaves the folder"):
        job.download("../x.txt", tmp_path)
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {"new/y.txt", "a b/ö#1%.bin"}


def test_odd_parameters_do_not_break_the_events(lab: fairlead.Lab, suite: str) -> None:
    submit = lab.submit(job_of(suite, "true", word="a\u2028b\u0085c\n\ndata: x"))
    assert list(submit.wait()) == submit.jobs


def test_jobs_of_a_group_are_waited_for(lab: fairlead.Lab, suite: str) -> None:
    group = {"id": suite, "within": "5m"}
    submit = lab.submit([job_of(suite, "exit 1", group=group), job_of(suite, "true")])
    assert len({job.id for job in submit.wait()}) == 2
    alone = lab.submit(job_of(suite, "true", group=group))
    (job,) = alone.wait()
    assert job.succeeded


def test_the_lab_is_shown(lab: fairlead.Lab, suite: str) -> None:
    assert "server-1" in [host.hostname for host in lab.hosts()]
    assert lab.hosts("no-such-tag", suite) == []
    job = lab.submit(waiting(suite)).jobs[0]
    assert "python" in [queue.name for queue in lab.queues()]
    job.cancel()
    assert lab.whoami().my_account == "python"
    assert lab.job(job.id).stage == "cancel"
    with pytest.raises(fairlead.Refused) as caught:
        lab.job("1")
    assert (caught.value.code, caught.value.status) == ("not_found", 404)
