"""The steps of the Dockerfile, done in a Debian of its own under chroot: what they make starts as its user and is healthy.

That is less than an image: Debian's own Python in place of the base image's, both stages in one root, and the network of this machine.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.servers import DEADLINE_S, find_free_port, wait_for

ROOT = Path(__file__).parents[2]
DEBIAN, PACKAGES = "bookworm", "python3,python3-venv,ca-certificates"
INDEX_SETTINGS = ("/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt", "/etc/resolv.conf")
"""What this machine reaches the package index with."""

READY = "import sys, urllib.request as web; print(web.urlopen(f'http://127.0.0.1:{sys.argv[1]}/readyz').read().decode())"

Step = tuple[str, str]


def steps() -> list[Step]:
    """Instructions of the Dockerfile with what follows them."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in text.splitlines() if line and not line.startswith("#")]


def inside(root: Path, command: str, user: str = "root", **environment: str) -> list[str]:
    """The command line of a shell command under that root, with /proc and /dev of its own."""
    said = [f"{name}={value}" for name, value in {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin", **environment}.items()]
    run = shlex.join(["chroot", f"--userspec={user}", str(root), "env", "-i", *said, "sh", "-c", command])
    mounts = f"mount -t proc proc {shlex.quote(f'{root}/proc')} && mount --rbind /dev {shlex.quote(f'{root}/dev')}"
    return ["unshare", "--mount", "sh", "-c", f"{mounts} && exec {run}"]


def build(root: Path) -> dict[str, str]:
    """Do the steps; returns the environment, the user, the place, and what is run there and asked of it."""
    made, place = {"ENV": "", "USER": "root"}, "/"
    for instruction, given in steps():
        if instruction == "RUN":
            subprocess.run(inside(root, f"cd {place} && {given}"), check=True)
        elif instruction == "WORKDIR":
            place = given
            (root / place.lstrip("/")).mkdir(parents=True, exist_ok=True)
        elif instruction == "COPY" and not given.startswith("--from"):
            *sources, target = given.split()
            for source in sources:
                copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
                copy(ROOT / source, root / place.lstrip("/") / target)
        else:
            made[instruction] = given
    return made | {"WORKDIR": place}


@pytest.mark.soak
def test_the_steps_of_the_image_make_a_service_that_is_healthy(tmp_path: Path) -> None:
    """From the lock file with its hashes alone, as the image's user, stopped by the image's signal."""
    for program in ("debootstrap", "unshare"):
        if shutil.which(program) is None or os.geteuid() != 0:
            pytest.skip(f"needs root and the program {program}")
    root = tmp_path / "root"
    subprocess.run(["debootstrap", "--variant=minbase", f"--include={PACKAGES}", DEBIAN, str(root)], check=True, stdout=subprocess.DEVNULL)
    (root / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    for file in filter(os.path.exists, INDEX_SETTINGS):
        shutil.copy(file, f"{root}{file}")
    made, port = build(root), str(find_free_port())
    environment = dict(part.split("=", 1) for part in made["ENV"].split()) | {"OUTLAY_HOST": "127.0.0.1", "OUTLAY_PORT": port}
    environment |= {"PATH": environment["PATH"].replace("$PATH", "/usr/bin:/bin"), "OUTLAY_OFFLINE": "1"}
    run = shlex.join([*json.loads(made["ENTRYPOINT"]), *json.loads(made["CMD"])])
    probe = shlex.join(json.loads(made["HEALTHCHECK"].partition("CMD ")[2])).replace("8080", port)
    served = subprocess.Popen(inside(root, f"cd {made['WORKDIR']} && exec {run}", made["USER"], **environment), start_new_session=True)

    def ask(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(inside(root, command, made["USER"], **environment), check=False, capture_output=True, text=True)

    try:
        wait_for(lambda: ask(probe).returncode == 0, "the image's own check of health")
        wait_for(lambda: '"worker":"ok"' in ask(f"python -c {shlex.quote(READY)} {port}").stdout, "the worker's heartbeat")
        assert ask("id -un").stdout.strip() == made["USER"]
        served.send_signal(getattr(signal, made["STOPSIGNAL"]))
        assert served.wait(DEADLINE_S) == 0
    finally:
        with suppress(ProcessLookupError):
            os.killpg(served.pid, signal.SIGKILL)
