"""Generate the manifests for Kubernetes: `infra/k8s/<service>.yaml` and what lists them."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from containers import secrets
from containers.generated import (
    head,
    is_standard,
    own_variables,
    owner_variables,
    processes,
    without_blank_lines,
)
from shared.runtime.declarations import API, FILE, RELAY, Declarations, Process, Service


def generate_manifests(declared: Declarations, root: Path) -> Mapping[str, str]:
    """Return the text of each file by its path in the checkout."""
    files = {"infra/k8s/kustomization.yaml": kustomization(declared, root)}
    for service in filter(is_standard, declared.services):
        files[f"infra/k8s/{service.name}.yaml"] = manifests(declared, service)
    return files


def manifests(declared: Declarations, service: Service) -> str:
    """`infra/k8s/<service>.yaml`: a job for the migration, and deployments with their services."""
    documents = [migration_job(service)]
    for process in processes(service):
        documents.append(deployment(declared, service, process))
        if process.command in (API, RELAY):
            documents.append(cluster_service(process))
        if process.public:
            documents.append(network_policy(process))
    about = f"# {service.folder}: commands of one image; one of two relays is in reserve.\n"
    return head(f"{service.folder}/{FILE}") + about + "---\n".join(documents)


def env(given: Mapping[str, str]) -> str:
    lines = [f'            - {{name: {name}, value: "{value}"}}' for name, value in given.items()]
    return "\n".join(["          env:", *lines]) if lines else ""


def migration_job(service: Service) -> str:
    name = f"{service.name}-migrate"
    return f"""\
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}}}
spec:
  template:
    spec:
      containers:
        - name: main
          image: hometown/{service.folder}
          args: [migrate]
{env(owner_variables(service))}
          volumeMounts: [{{name: secrets, mountPath: /run/secrets/hometown, readOnly: true}}]
      volumes: [{{name: secrets, secret: {{secretName: {name}}}}}]
"""


def deployment(declared: Declarations, service: Service, process: Process) -> str:
    return without_blank_lines(
        f"""\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {process.name}
  labels: {{kind: service}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: {process.name}}}}}
  template:
    metadata: {{labels: {{app: {process.name}}}}}
    spec:
      containers:
        - name: main
          image: hometown/{service.folder}
          args: [{process.command}]
{env(own_variables(declared, service, process))}
          resources: {{requests: {{cpu: 50m, memory: 96Mi}}, limits: {{memory: 256Mi}}}}
      volumes:
        - {{name: secrets, secret: {{secretName: {process.name}}}}}
"""
    )


def cluster_service(process: Process) -> str:
    """Of an API one address for all; of relays the address of each, as only one of them publishes
    and a writer notifies all that its name has: also one that reports that a broker refuses."""
    is_relay = process.command == RELAY
    notified = "    - {name: notify, port: 8000, targetPort: 8000, protocol: UDP}\n"
    return without_blank_lines(
        f"""\
apiVersion: v1
kind: Service
metadata: {{name: {process.name}}}
spec:
{"  clusterIP: None" if is_relay else ""}
{"  publishNotReadyAddresses: true" if is_relay else ""}
  selector: {{app: {process.name}}}
  ports:
    - {{name: http, port: 8000, targetPort: http}}
{notified if is_relay else ""}"""
    )


def network_policy(process: Process) -> str:
    """An API can be reached from everywhere: each request needs a token."""
    return f"""\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{name: {process.name}}}
spec:
  podSelector: {{matchLabels: {{app: {process.name}}}}}
  policyTypes: [Ingress]
  ingress: [{{ports: [{{port: http}}]}}]
"""


def kustomization(declared: Declarations, root: Path) -> str:
    """`infra/k8s/kustomization.yaml`: the resources, and the secrets of each process."""
    services = [
        service
        for service in declared.services
        if is_standard(service) or (root / "infra/k8s" / f"{service.name}.yaml").exists()
    ]
    resources = "".join(f"  - {service.name}.yaml\n" for service in services)
    generators = "".join(
        secret_generator(name, files)
        for service in services
        for name, files in (
            *([(f"{service.name}-migrate", ("database_url",))] if service.database else []),
            *((each.name, secrets.files_of(service, each)) for each in processes(service)),
        )
    )
    return (
        head(f"*/{FILE}")
        + f"""\
# A base for `kubectl apply -k`, see docs/kubernetes.md: the images of the containers.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: hometown
resources:
  - namespace.yaml
  - network.yaml
  - ../kafka
  - ../jaeger
  - postgres.yaml
  - kafka.yaml
  - jaeger.yaml
{resources}labels:
  - pairs: {{app.kubernetes.io/part-of: hometown}}
    includeTemplates: true

configMapGenerator:
  - name: settings
    literals:
      - ENVIRONMENT=production
      - KAFKA_BOOTSTRAP_SERVERS=kafka:9092
      - OTEL_EXPORTER_OTLP_ENDPOINT=http://jaeger:4318
      - SECRETS_DIR=/run/secrets/hometown
      - AUTH_AUDIENCE=hometown
      - HTTP_HOST=0.0.0.0
      - HTTP_PORT=8000

# One Secret for each process, of the files that `containers.once secrets` created.
secretGenerator:
  - name: keys
    files: [secrets/keys/secrets.json]
  - name: postgres
    files: [secrets/postgres/password]
{generators}
patches:
  - path: shared/service.yaml
    target: {{kind: Deployment, labelSelector: kind=service}}
  - path: shared/once.yaml
    target: {{kind: Job}}
"""
    )


def secret_generator(name: str, files: Iterable[str]) -> str:
    paths = "".join(f"      - secrets/{name}/{file}\n" for file in files)
    return f"  - name: {name}\n    files:\n{paths}"
