"""The queue's promises on both transports: a message arrives whole, and a broker in trouble is nobody's problem but the sweeper's."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest

from service import queue as queues
from service.config import Settings
from service.queue import JOBS_QUEUE, RUN_JOB, CeleryQueue, celery_app, publish
from service.runtime import logs


@pytest.fixture(params=["embedded", "redis"])
def on(request: pytest.FixtureRequest, settings: Settings) -> Settings:
    """Settings for each transport."""
    return replace(settings, redis_url=request.getfixturevalue("redis_url") if request.param == "redis" else None)


def received(settings: Settings) -> list[tuple[str, object]]:
    """Name and arguments of every waiting message, each taken out of the queue."""
    found = []
    with celery_app(settings).connection_for_read() as connection, connection.channel() as channel:
        while (message := channel.basic_get(JOBS_QUEUE, no_ack=True)) is not None:
            found.append((message.headers["task"], message.decode()[0]))
    return found


class TestEveryTransport:
    def test_a_message_names_the_task_and_the_job(self, on: Settings) -> None:
        """What is sent is the task's name and the job's id, nothing more, in the order of sending."""
        queue = CeleryQueue(on)
        assert queue.ping()
        for job_id in ("a", "b", "c"):
            queue.send(job_id)
        queue.flush()
        assert received(on) == [(RUN_JOB, [job_id]) for job_id in ("a", "b", "c")]

    def test_a_job_may_not_outlive_its_message(self, on: Settings) -> None:
        """The broker gives no message to a second worker while a job may still run; and one job is fetched at a time."""
        conf = celery_app(on).conf
        if on.redis_url:
            assert conf.broker_transport_options["visibility_timeout"] > conf.task_time_limit
        assert (conf.worker_prefetch_multiplier, conf.task_acks_late, conf.task_reject_on_worker_lost) == (1, True, True)
        assert (conf.task_publish_retry, conf.task_ignore_result, conf.result_backend) == (False, True, None)

    def test_a_message_carries_the_request_that_made_the_job(self, on: Settings) -> None:
        """For the worker's log; a worker that knows nothing of it runs the job as well."""
        queue = CeleryQueue(on)
        with logs.bound(request_id="mine"):
            queue.send("a")
        queue.send("b")
        queue.flush()
        with celery_app(on).connection_for_read() as connection, connection.channel() as channel:
            messages = [channel.basic_get(JOBS_QUEUE, no_ack=True) for _ in range(2)]
        assert [message.headers.get("request_id") for message in messages] == ["mine", None]


class TestEmbedded:
    def test_no_half_written_message_is_seen(self, settings: Settings) -> None:
        """Messages are renamed into the folder; nothing else ever lies in it, and no draft is left."""
        app = celery_app(settings)
        assert publish(app, "a")
        assert [path.suffix for path in (settings.data_dir / "queue" / "messages").iterdir()] == [".msg"]
        assert not list((settings.data_dir / "queue" / "control").glob("*.draft"))


class TestBrokerInTrouble:
    def test_a_dead_broker_is_logged_and_not_raised(self, settings: Settings, free_port: int, caplog: pytest.LogCaptureFixture) -> None:
        """Nobody listening: the job's creator hears nothing of it, the log does."""
        queue = CeleryQueue(replace(settings, redis_url=f"redis://127.0.0.1:{free_port}/0"))
        assert not queue.ping()
        queue.send("lost")
        queue.flush()
        assert "job lost not sent, the sweeper will" in caplog.text

    def test_a_hung_broker_holds_nobody_up(self, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
        """Sending returns while the broker has not even accepted the connection."""
        monkeypatch.setattr(queues, "PING_S", 0.2)
        with socket.create_server(("127.0.0.1", 0)) as hung:
            queue = CeleryQueue(replace(settings, redis_url=f"redis://127.0.0.1:{hung.getsockname()[1]}/0"))
            assert not queue.ping()
            for n in range(3000):
                queue.send(str(n))
            assert queue._waiting.full()
            with queue._waiting.mutex:  # or its thread tries them one by one, and says so in the logs of later tests
                queue._waiting.queue.clear()
