"""Compose file, Kubernetes manifests and systemd units: right by their schemas, hardened, and of one mind about the commands."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import compose_spec
import kubernetes_validate
import pytest
import yaml

from service.config import SETTING_SPECS

ROOT = Path(__file__).parents[3]
KUBERNETES, UNITS = ROOT / "deploy/kubernetes", ROOT / "deploy/systemd"
NOT_OURS = {"postgres", "redis", "proxy"}
SECRETS = {spec.env for spec in SETTING_SPECS if spec.secret} | {"OUTLAY_DATABASE_URL", "OUTLAY_REDIS_URL"}
SETTINGS = {spec.env for spec in SETTING_SPECS} | {"PROMETHEUS_MULTIPROC_DIR", "PGPASSWORD"}
VERSIONS = ("1.31", "1.33", "1.37")
"""Releases of Kubernetes that the manifests are checked against: an older one, the newest whose schemas are at hand, and one between."""
Body = dict[str, Any]


def compose() -> Body:
    """The compose file with the defaults of its variables, and a text for those that must be stated."""
    text = re.sub(r"\$\{(\w+):-([^}]*)\}", r"\2", (ROOT / "compose.yaml").read_text())
    found: Body = yaml.safe_load(re.sub(r"\$\{(\w+):\?[^}]*\}", r"stated", text).replace("$$", "$"))
    return found


def ours() -> dict[str, Body]:
    """Compose's services that run Outlay."""
    return {name: service for name, service in compose()["services"].items() if name not in NOT_OURS}


def manifests() -> dict[tuple[str, str], Body]:
    """Every object of the Kustomize base, by kind and name."""
    base = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())
    found = [body for file in base["resources"] for body in yaml.safe_load_all((KUBERNETES / file).read_text())]
    assert {file.name for file in KUBERNETES.glob("*.yaml")} == {*base["resources"], "kustomization.yaml"}
    return {(body["kind"], body["metadata"]["name"]): body for body in found}


def pods() -> dict[str, Body]:
    """Specification of each component's pods, by the component."""
    found = {}
    for (kind, name), body in manifests().items():
        if kind in ("Deployment", "Job"):
            template = body["spec"]["template"]
            assert template["metadata"]["labels"]["app.kubernetes.io/component"] == name.removeprefix("outlay-")
            found[name.removeprefix("outlay-")] = template["spec"]
    return found


def unit(component: str) -> dict[str, list[str]]:
    """Values of a systemd unit by key."""
    found: dict[str, list[str]] = {}
    for line in (UNITS / f"outlay-{component}.service").read_text().splitlines():
        if "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


def commands() -> Iterator[tuple[str, str, list[str]]]:
    """What each component runs, by where it stands: words of a command line."""
    for component in ("web", "worker", "beat", "migrate"):
        service, (container,) = ours()[component], pods()[component]["containers"]
        yield component, "compose", [*service.get("entrypoint", ["outlay"]), *service["command"]]
        yield component, "kubernetes", container["command"]
        yield component, "systemd", shlex.split(unit(component)["ExecStart"][0].removeprefix("/opt/outlay/bin/"))


def bare(words: list[str]) -> list[str]:
    """The words without a shell around them and without ways of writing a variable."""
    if words[:2] == ["sh", "-c"]:
        words = shlex.split(words[2])[1:]
    return [re.sub(r"\$\{?(\w+)\}?", r"$\1", word) for word in words]


class TestCommands:
    def test_they_are_the_same_everywhere(self) -> None:
        """A change of one is a change of all three."""
        by_component: dict[str, set[tuple[str, ...]]] = {}
        for component, _, words in commands():
            by_component.setdefault(component, set()).add(tuple(bare(words)))
        assert {component: len(found) for component, found in by_component.items()} == dict.fromkeys(by_component, 1)

    def test_variables_are_settings(self) -> None:
        """A misspelt one would be ignored."""
        assert set(manifests()["ConfigMap", "outlay"]["data"]) <= SETTINGS
        for service in ours().values():
            assert set(service["environment"]) <= SETTINGS
        stated = re.findall(r"^(OUTLAY_\w+)=", (UNITS / "environment.example").read_text(), re.MULTILINE)
        assert set(stated) <= SETTINGS


class TestCompose:
    def test_it_is_right_by_the_compose_specification(self) -> None:
        """With all networks, volumes and secrets it refers to."""
        read = compose_spec.PyCompose.from_json(json.dumps(compose()))
        read.validate()
        assert set(read.service_names()) == {"migrate", "web", "worker", "beat", "postgres", "redis", "proxy"}

    def test_outlay_runs_without_rights(self) -> None:
        """As a plain user, on a read-only root, without capabilities."""
        for name, service in ours().items():
            assert (service["user"], service["read_only"], service["cap_drop"]) == ("10001", True, ["ALL"]), name
            assert service["security_opt"] == ["no-new-privileges:true"], name

    def test_only_the_proxy_is_reached_from_outside(self) -> None:
        """The database and Redis are on a network of their own without a way out."""
        services = compose()["services"]
        assert [name for name, service in services.items() if "ports" in service] == ["proxy"]
        assert compose()["networks"]["inner"] == {"internal": True}
        assert services["postgres"]["networks"] == services["redis"]["networks"] == ["inner"]

    def test_no_secret_is_in_it(self) -> None:
        """They come from .env, and the file ends with a message where one is missing."""
        text = (ROOT / "compose.yaml").read_text()
        assert "@" in ours()["web"]["environment"]["OUTLAY_DATABASE_URL"]
        assert ":" not in ours()["web"]["environment"]["OUTLAY_DATABASE_URL"].partition("://")[2].partition("@")[0]
        stated = re.findall(r"(?:PASSWORD|KEY): (.*)", text)
        assert stated
        assert [value for value in stated if not re.fullmatch(r"\$\{\w+:\?state it in \.env\}", value)] == []

    def test_files_it_mounts_are_there(self) -> None:
        """But the certificate, which is the operator's."""
        mounted = [volume.partition(":")[0] for volume in compose()["services"]["proxy"]["volumes"]]
        assert [path for path in mounted if not (ROOT / path).exists()] == ["./tls/certificate.pem", "./tls/key.pem"]

    def test_migration_comes_first(self) -> None:
        """Whatever of ours goes on running waits for it."""
        for name in ("web", "worker", "beat"):
            assert ours()[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}


class TestKubernetes:
    @pytest.mark.parametrize("version", VERSIONS)
    def test_manifests_are_right_by_the_schemas(self, version: str) -> None:
        """Strictly: no unknown member."""
        for body in manifests().values():
            kubernetes_validate.validate(body, version, strict=True)

    def test_the_base_is_rendered(self) -> None:
        """By kubectl, where it is at hand."""
        if shutil.which("kubectl") is None:
            pytest.skip("needs kubectl")
        rendered = subprocess.run(["kubectl", "kustomize", str(KUBERNETES)], capture_output=True, text=True, check=True).stdout
        bodies = list(yaml.safe_load_all(rendered))
        assert len(bodies) == len(manifests())
        images = {container["image"] for body in bodies if "template" in body.get("spec", {}) for container in containers(body)}
        assert images == {"outlay:0.1.0"}

    def test_pods_run_without_rights(self) -> None:
        """As a plain user, on a read-only root, without capabilities and without a token of the cluster."""
        for name, pod in pods().items():
            assert pod["automountServiceAccountToken"] is False, name
            assert pod["securityContext"]["runAsNonRoot"] is True, name
            assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
            for container in pod["containers"]:
                limits = container["securityContext"]
                assert (limits["readOnlyRootFilesystem"], limits["allowPrivilegeEscalation"]) == (True, False), name
                assert limits["capabilities"] == {"drop": ["ALL"]}, name
                assert {"cpu", "memory"} <= set(container["resources"]["requests"]), name

    def test_secrets_are_referred_to(self) -> None:
        """None is in a manifest."""
        assert not SECRETS & set(manifests()["ConfigMap", "outlay"]["data"])
        assert not [kind for kind, _ in manifests() if kind == "Secret"]
        for pod in pods().values():
            assert {"secretRef": {"name": "outlay"}} in pod["containers"][0]["envFrom"]

    def test_every_directory_that_is_written_is_a_volume(self) -> None:
        """The root is read-only."""
        for pod in pods().values():
            mounts = {mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
            assert {"/tmp", "/run/outlay", "/var/lib/outlay/data"} <= mounts  # inside the container
            assert {mount["name"] for mount in pod["containers"][0]["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}

    def test_web_processes_are_replaced_without_a_gap(self) -> None:
        """Readiness and liveness are told apart, none goes before another is ready, and one is always left."""
        web = manifests()["Deployment", "outlay-web"]["spec"]
        (container,) = web["template"]["spec"]["containers"]
        assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
        assert container["livenessProbe"]["httpGet"]["path"] == container["startupProbe"]["httpGet"]["path"] == "/healthz"
        assert (web["replicas"], web["strategy"]["rollingUpdate"]) == (2, {"maxUnavailable": 0, "maxSurge": 1})
        for component in ("web", "worker"):
            budget = manifests()["PodDisruptionBudget", f"outlay-{component}"]["spec"]
            assert budget == {"minAvailable": 1, "selector": manifests()["Deployment", f"outlay-{component}"]["spec"]["selector"]}

    def test_workers_are_added_while_jobs_wait(self) -> None:
        """The replicas are the autoscaler's alone: a number in the deployment would undo them at every apply."""
        scaler = manifests()["HorizontalPodAutoscaler", "outlay-worker"]["spec"]
        assert scaler["scaleTargetRef"]["name"] == "outlay-worker"
        assert "replicas" not in manifests()["Deployment", "outlay-worker"]["spec"]
        assert scaler["metrics"][0]["external"]["metric"] == {"name": "outlay_jobs", "selector": {"matchLabels": {"state": "queued"}}}


def containers(body: Body) -> list[Body]:
    """The containers of a deployment or job."""
    found: list[Body] = body["spec"]["template"]["spec"]["containers"]
    return found


class TestSystemd:
    def test_units_are_right(self, tmp_path: Path) -> None:
        """By systemd itself, where it is at hand, with this environment's programs and user in place of the installed ones."""
        if shutil.which("systemd-analyze") is None:
            pytest.skip("needs systemd-analyze")
        here = tmp_path / "bin"  # without the blanks that the path of a clone may have
        here.symlink_to(Path(sys.executable).parent)
        for file in (*UNITS.glob("*.service"), UNITS / "outlay.target"):
            text = file.read_text().replace("/opt/outlay/bin", str(here))
            (tmp_path / file.name).write_text(re.sub(r"^(User|Group)=outlay$", r"\1=root", text, flags=re.MULTILINE))
        environment: Mapping[str, str] = {**os.environ, "SYSTEMD_LOG_LEVEL": "warning"}
        command = ["systemd-analyze", "verify", "--man=no", *(str(unit) for unit in tmp_path.iterdir() if unit != here)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert (done.returncode, [line for line in done.stderr.splitlines() if "outlay" in line]) == (0, [])

    @pytest.mark.parametrize("component", ["web", "worker", "beat", "migrate"])
    def test_units_run_without_rights(self, component: str) -> None:
        """As a plain user that writes nowhere but in its state directory."""
        found = unit(component)
        wanted = {"User": "outlay", "NoNewPrivileges": "yes", "ProtectSystem": "strict", "CapabilityBoundingSet": "", "UMask": "0077"}
        assert {key: found[key][0] for key in wanted} == wanted
        assert found["EnvironmentFile"] == ["/etc/outlay/environment"]


class TestImage:
    def test_the_base_is_the_builders_to_pin(self) -> None:
        """Both stages have the same one."""
        text = (ROOT / "Dockerfile").read_text()
        assert re.findall(r"^FROM (\S+)", text, re.MULTILINE) == ["${PYTHON_IMAGE}"] * 2

    def test_what_it_copies_is_there(self) -> None:
        """And ends as a plain user's."""
        text = (ROOT / "Dockerfile").read_text()
        copied = [word for words in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE) for word in words.split()]
        assert copied
        assert [word for word in copied if not (ROOT / word).exists()] == []
        assert "USER outlay" in text
