"""`serve` starts everything, ends everything, and says plainly when it cannot start."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from service.config import Settings, load_settings, to_env
from service.runtime import serve
from tests.support.servers import DEADLINE_S, find_free_port, wait_for

ROOT = Path(__file__).parents[2]
IMPORTS = "import os, sys; from service.config import load_settings; from service.runtime.serve import serve"
RUN = f"{IMPORTS}; sys.exit(serve(load_settings(os.environ)))"


def spaced_in(folder: Path) -> Settings:
    """Embedded settings on a directory with a space in its name, with one web process."""
    data = folder / "data dir"
    env = {"OUTLAY_DATA_DIR": str(data), "OUTLAY_DATABASE_URL": f"sqlite:///{data}/outlay.db", "OUTLAY_PORT": str(find_free_port())}
    env |= {"OUTLAY_WORKER_CONCURRENCY": "1", "OUTLAY_WEB_WORKERS": "1", "OUTLAY_DRAIN_SECONDS": "0"}
    return load_settings({**env, "OUTLAY_OFFLINE": "1"})


@pytest.fixture
def spaced(tmp_path: Path) -> Settings:
    """Settings of the test's own."""
    return spaced_in(tmp_path)


Start = Callable[[Settings], subprocess.Popen[bytes]]


@contextmanager
def starting(folder: Path) -> Iterator[Start]:
    """Starts `serve` as processes that end with the block; what they and their children wrote is printed then."""
    log = folder / "serve.log"
    with ExitStack() as stack, log.open("ab") as out:

        def run(settings: Settings) -> subprocess.Popen[bytes]:
            env = {**os.environ, **to_env(settings), "PYTHONPATH": str(ROOT)}
            process = subprocess.Popen([sys.executable, "-c", RUN], env=env, cwd=folder, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
            stack.callback(end, process)
            return process

        yield run
    sys.stdout.write(log.read_text())


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts it for one test."""
    with starting(tmp_path) as run:
        yield run


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """The settings of a service that the tests share which leave its supervisor alive."""
    folder = tmp_path_factory.mktemp("served")
    settings = spaced_in(folder)
    with starting(folder) as run:
        run(settings)
        wait_for(lambda: status(settings, "/healthz") == 200, "/healthz to answer 200")
        yield settings


def end(process: subprocess.Popen[bytes]) -> None:
    """Stop a supervisor that a failed test left behind; its children follow."""
    if process.poll() is None:
        process.terminate()
        process.wait(DEADLINE_S)


def status(settings: Settings, path: str) -> int:
    """The HTTP status of a GET, 0 when nobody answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{settings.port}{path}", timeout=DEADLINE_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return int(error.code)
    except OSError:
        return 0


def processes(settings: Settings) -> dict[int, str]:
    """Ids and names of all processes that were started with these settings' data directory."""
    mark = f"OUTLAY_DATA_DIR={settings.data_dir}".encode()
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                found[int(folder.name)] = (folder / "comm").read_text().strip()
    return found


linux = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's /proc to look for processes")


@linux
def test_everything_starts_and_ends_together(spaced: Settings, start: Start, tmp_path: Path) -> None:
    """Web server and worker come up from a path with a space, and answer once the service says that it is ready.

    SIGTERM ends both with status 0 and leaves no process.
    """
    supervisor = start(spaced)
    wait_for(lambda: "Outlay is ready" in (tmp_path / "serve.log").read_text(), "the service to say that it is ready")
    assert status(spaced, "/healthz") == 200
    wait_for(lambda: status(spaced, "/readyz") == 200, "a database that answers in time")
    assert "gunicorn" in processes(spaced).values()
    wait_for(lambda: b'"worker":"ok"' in ready(spaced), "the worker to be heard of")
    supervisor.terminate()
    assert supervisor.wait(DEADLINE_S) == 0
    wait_for(lambda: processes(spaced) == {}, "the last of its processes to end")


def ready(settings: Settings) -> bytes:
    """The body of /readyz without white space; empty where the database has not answered in time."""
    with suppress(urllib.error.HTTPError), urllib.request.urlopen(f"http://127.0.0.1:{settings.port}/readyz", timeout=DEADLINE_S) as answer:
        return bytes(answer.read()).replace(b" ", b"")
    return b""


@linux
def test_a_killed_supervisor_leaves_no_orphans(spaced: Settings, start: Start) -> None:
    """Nothing is left when the supervisor is killed without a chance to tell its children."""
    supervisor = start(spaced)
    wait_for(lambda: status(spaced, "/healthz") == 200, "/healthz to answer 200")
    supervisor.kill()
    supervisor.wait(DEADLINE_S)
    wait_for(lambda: processes(spaced) == {}, "all processes to end")


@linux
def test_a_dead_worker_is_started_again(served: Settings) -> None:
    """The web server goes on when the background worker dies, and a new worker takes its place."""
    wait_for(lambda: len(workers(served)) >= 3, "the worker, its clock and its pool")
    first = min(workers(served))
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: first not in workers(served) and len(workers(served)) >= 3, "a new worker")
    assert status(served, "/healthz") == 200


def test_nobody_else_may_read_the_data(served: Settings) -> None:
    """The data directory and the database are their owner's alone."""
    assert oct(served.data_dir.stat().st_mode & 0o777) == "0o700"
    assert {oct(path.stat().st_mode & 0o077) for path in served.data_dir.rglob("*")} == {"0o0"}


def test_a_readable_data_directory_is_named(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    """A directory from elsewhere that others may read is reported at the start, with the command that closes it."""
    settings.data_dir.mkdir(mode=0o755, parents=True, exist_ok=True)
    settings.data_dir.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(serve.ServeError):
        serve.serve(replace(settings, port=taken.getsockname()[1]))
    assert f"chmod -R go= '{settings.data_dir}'" in capsys.readouterr().err


def workers(settings: Settings) -> set[int]:
    """The processes of the background worker."""
    found = set()
    for pid in processes(settings):
        with suppress(OSError):
            if b"workers.app" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.add(pid)
    return found


def test_a_second_instance_is_refused(served: Settings) -> None:
    """Two supervisors on one data directory would share its queue: the second says so and starts nothing."""
    with pytest.raises(serve.ServeError, match="another Outlay is running"):
        serve.serve(served)


def test_a_port_in_use_is_named(settings: Settings) -> None:
    """What cannot be bound is said at once, with the setting that changes it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(serve.ServeError, match=f"cannot listen on 127.0.0.1:{port}.*OUTLAY_PORT"):
            serve.serve(replace(settings, port=port))


def test_an_unusable_directory_is_named(settings: Settings, tmp_path: Path) -> None:
    """A data directory that cannot be made is an error with its name."""
    (tmp_path / "file").touch()
    with pytest.raises(serve.ServeError, match=r"OUTLAY_DATA_DIR=.*cannot be used"):
        serve.serve(replace(settings, data_dir=tmp_path / "file" / "data"))


def test_an_absent_database_is_named_without_its_password(settings: Settings, free_port: int) -> None:
    """A database that does not answer ends the start with its address and no secret."""
    url = f"postgresql+psycopg://me:secret@127.0.0.1:{free_port}/none"
    with pytest.raises(serve.ServeError, match="the database postgresql") as caught:
        serve.serve(replace(settings, database_url=url, port=free_port))
    assert "secret" not in str(caught.value)
