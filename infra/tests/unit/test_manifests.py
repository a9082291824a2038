"""A new service gets its manifests for Kubernetes."""

import yaml

from containers.kubernetes import generate_manifests
from shared.runtime.declarations import Declarations, load_declarations, services_dir


def test_a_new_service_has_its_manifests(with_notes: Declarations) -> None:
    files = generate_manifests(with_notes, services_dir())
    manifests = [*yaml.safe_load_all(files["infra/k8s/notes.yaml"])]
    kustomization = yaml.safe_load(files["infra/k8s/kustomization.yaml"])

    assert [(each["kind"], each["metadata"]["name"]) for each in manifests] == [
        ("Job", "notes-migrate"),
        ("Deployment", "notes-api"),
        ("Service", "notes-api"),
        ("NetworkPolicy", "notes-api"),
        ("Deployment", "notes-relay"),
        ("Service", "notes-relay"),
        ("Deployment", "notes-worker"),
    ]
    assert "notes.yaml" in kustomization["resources"]
    assert {
        "name": "notes-api",
        "files": ["secrets/notes-api/database_url", "secrets/notes-api/jwks.json"],
    } in kustomization["secretGenerator"]


def test_a_notification_reaches_each_relay_in_kubernetes(with_notes: Declarations) -> None:
    """A name with one address for all would hand it to one of them, which can be in reserve."""
    files = generate_manifests(with_notes, services_dir())
    services = {
        each["metadata"]["name"]: each["spec"]
        for each in yaml.safe_load_all(files["infra/k8s/notes.yaml"])
        if each["kind"] == "Service"
    }

    assert services["notes-relay"]["clusterIP"] == "None"
    assert "clusterIP" not in services["notes-api"]


def test_the_observer_gets_the_address_of_each_database_and_migrates_none() -> None:
    declared = load_declarations()
    text = generate_manifests(declared, services_dir())["infra/k8s/kustomization.yaml"]
    files = {each["name"]: each["files"] for each in yaml.safe_load(text)["secretGenerator"]}

    stores = {f"secrets/observer/{name}_store_url" for name in declared.databases}
    assert {*files["observer"]} == stores
    assert "observer-migrate" not in files
