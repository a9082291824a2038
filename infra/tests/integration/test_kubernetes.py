"""The base for Kubernetes renders, matches the API's schemas, and restricts every container."""

import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from containers import secrets
from containers.compose import PROFILES
from fetching.settings import INFRA
from local_stack import issuer
from local_stack.hometown import HOMETOWN
from local_stack.run_folder import RunFolder
from shared.runtime.declarations import load_declarations
from test_support.waits import HANGS_AFTER_SECONDS

KUBERNETES = "1.34"
KUSTOMIZE = "sigs.k8s.io/kustomize/kustomize/v5@v5.7.1"

PART_OF = {"app.kubernetes.io/part-of": "hometown"}

Resource = dict[str, Any]


def renderer() -> Sequence[str]:
    """The command that renders a folder: an installed one, or one that Go builds."""
    for command in (["kubectl", "kustomize"], ["go", "run", KUSTOMIZE, "build"]):
        if shutil.which(command[0]):
            return command
    pytest.skip("there is neither kubectl nor Go here")


@pytest.fixture(scope="module")
def infra(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders with secrets made as described in docs/kubernetes.md."""
    infra = tmp_path_factory.mktemp("kubernetes") / "infra"
    for name in ("k8s", "k8s-trial", "kafka", "jaeger"):
        shutil.copytree(INFRA / name, infra / name)
    secrets.write(infra / "k8s" / "secrets")
    return infra


def render(folder: Path) -> list[Resource]:
    rendered = subprocess.run(
        [*renderer(), folder],
        capture_output=True,
        text=True,
        check=True,
        timeout=HANGS_AFTER_SECONDS,
    ).stdout
    return list(yaml.safe_load_all(rendered))


@pytest.fixture(scope="module")
def resources(infra: Path) -> list[Resource]:
    """All resources of the base."""
    return render(infra / "k8s")


def get_settings(resources: Sequence[Resource]) -> Mapping[str, str]:
    """The environment of all processes."""
    [settings] = [
        each["data"]
        for each in resources
        if each["kind"] == "ConfigMap" and each["metadata"]["name"].startswith("settings-")
    ]
    return dict(settings)


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

    assert {process.name for process in HOMETOWN.processes} - PROFILES.keys() <= workloads


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


def test_the_base_runs_in_production_and_trusts_no_issuer_yet(
    resources: Sequence[Resource],
) -> None:
    settings = get_settings(resources)

    assert settings["ENVIRONMENT"] == "production"
    assert settings.keys().isdisjoint({"AUTH_ISSUER", "AUTH_JWKS_URL"})


def test_the_trial_adds_an_issuer_for_development_and_nothing_else(
    infra: Path, resources: Sequence[Resource]
) -> None:
    trial = render(infra / "k8s-trial")

    assert get_settings(trial) == {
        **get_settings(resources),
        "ENVIRONMENT": "development",
        **issuer.variables(RunFolder(Path("/run/secrets/hometown"))),
        "AUTH_JWKS_URL": "file:///run/secrets/hometown/jwks.json",
    }
    assert [each["kind"] for each in trial] == [each["kind"] for each in resources]


def test_only_apis_can_be_reached_from_outside_of_the_namespace(
    resources: Sequence[Resource],
) -> None:
    rules = {
        each["metadata"]["name"]: each["spec"]
        for each in resources
        if each["kind"] == "NetworkPolicy"
    }
    others = rules.pop("only-each-other")
    apis = {each.name for each in load_declarations().processes if each.public} - PROFILES.keys()

    assert others["podSelector"] == {}
    [inside] = [peer for rule in others["ingress"] for peer in rule["from"]]
    assert inside == {"podSelector": {"matchLabels": PART_OF}}
    assert rules.keys() == apis
    for name, rule in rules.items():
        assert rule["podSelector"]["matchLabels"] == {"app": name}
        assert rule["ingress"] == [{"ports": [{"port": "http"}]}]
    pods = [each["spec"]["template"] for each in resources if "template" in each.get("spec", {})]
    assert all(pod["metadata"]["labels"].items() >= PART_OF.items() for pod in pods)


def test_a_secret_is_in_secrets_alone(resources: Sequence[Resource], tmp_path: Path) -> None:
    others = [each for each in resources if each["kind"] != "Secret"]

    assert "postgres" in str(others)
    assert "postgresql://" not in str(others)
    assert "PRIVATE KEY" not in str(others)
