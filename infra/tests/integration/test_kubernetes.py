"""The base for Kubernetes renders, matches the API's schemas, and restricts every container."""

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from containers import secrets
from fetching.settings import INFRA
from local_stack.hometown import HOMETOWN

KUBERNETES = "1.34"
KUSTOMIZE = "sigs.k8s.io/kustomize/kustomize/v5@v5.7.1"
RENDER_SECONDS_MAX = 300
"""For Go, which can have to download and build it first."""

NOT_THERE = {"analytics-faust"}
"""Processes that exist only for comparison."""

Resource = dict[str, Any]


def renderer() -> Sequence[str]:
    """The command that renders a folder: an installed one, or one that Go builds."""
    for command in (["kubectl", "kustomize"], ["go", "run", KUSTOMIZE, "build"]):
        if shutil.which(command[0]):
            return command
    pytest.skip("there is neither kubectl nor Go here")


@pytest.fixture(scope="module")
def resources(tmp_path_factory: pytest.TempPathFactory) -> list[Resource]:
    """All resources, rendered with secrets made as described in docs/kubernetes.md."""
    infra = tmp_path_factory.mktemp("kubernetes") / "infra"
    for name in ("k8s", "kafka", "jaeger"):
        shutil.copytree(INFRA / name, infra / name)
    secrets.write(infra / "k8s" / "secrets")
    rendered = subprocess.run(
        [*renderer(), infra / "k8s"],
        capture_output=True,
        text=True,
        check=True,
        timeout=RENDER_SECONDS_MAX,
    ).stdout
    return list(yaml.safe_load_all(rendered))


def templates(resources: Sequence[Resource]) -> Iterator[tuple[str, Resource]]:
    """The name and the pod of each workload."""
    for resource in resources:
        if resource["kind"] in ("Deployment", "StatefulSet", "Job"):
            yield resource["metadata"]["name"], resource["spec"]["template"]["spec"]


def test_every_resource_matches_the_schema_of_the_api(resources: Sequence[Resource]) -> None:
    for resource in resources:
        kubernetes_validate.validate(resource, KUBERNETES, strict=True)


def test_a_misspelt_field_is_refused(resources: Sequence[Resource]) -> None:
    """The negative control."""
    job = next(each for each in resources if each["kind"] == "Deployment")
    wrong = {**job, "spec": {**job["spec"], "replica": 2}}

    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, KUBERNETES, strict=True)


def test_every_process_is_there(resources: Sequence[Resource]) -> None:
    workloads = {name for name, _ in templates(resources)}

    assert {process.name for process in HOMETOWN.processes} - NOT_THERE <= workloads


def test_no_container_is_root_or_writes_outside_its_volumes(resources: Sequence[Resource]) -> None:
    for name, pod in templates(resources):
        [container] = pod["containers"]
        rules = container["securityContext"]
        assert pod["securityContext"]["runAsNonRoot"], name
        assert pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault", name
        assert rules["readOnlyRootFilesystem"], name
        assert not rules["allowPrivilegeEscalation"], name
        assert rules["capabilities"]["drop"] == ["ALL"], name
        assert not pod["automountServiceAccountToken"], name


def test_every_container_has_limits_and_every_long_running_one_has_probes(
    resources: Sequence[Resource],
) -> None:
    once = {each["metadata"]["name"] for each in resources if each["kind"] == "Job"}
    for name, pod in templates(resources):
        [container] = pod["containers"]
        assert container["resources"]["limits"]["memory"], name
        assert container["resources"]["requests"]["cpu"], name
        assert name in once or container["readinessProbe"], name


def test_a_secret_is_in_secrets_alone(resources: Sequence[Resource], tmp_path: Path) -> None:
    others = [each for each in resources if each["kind"] != "Secret"]

    assert "postgres" in str(others)
    assert "postgresql://" not in str(others)
    assert "PRIVATE KEY" not in str(others)
