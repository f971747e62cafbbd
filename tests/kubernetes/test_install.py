# SPDX-License-Identifier: MIT
"""What a person pinned in a file gets into a cluster, and nothing of others changes."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from burst.errors import ConfigError, Transient
from burst.kits.kube import Cluster as Client
from burst.kits.kube import Endpoint, Kubeconfig
from burst.kits.kube.install import install, read_manifests
from tests.kubelab.cluster import Cluster
from tests.kubernetes.api import Api

OPERATOR = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: operator, namespace: {name}}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: operator}}}}
  template:
    metadata: {{labels: {{app: operator}}}}
    spec:
      containers: [{{name: main, image: "local.test/none:1"}}]
---
---
apiVersion: v1
kind: List
items:
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRole
  metadata: {{name: {name}}}
  rules: []
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: things.{name}.test}}
spec:
  group: {name}.test
  scope: Namespaced
  names: {{kind: Thing, plural: things, singular: thing}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object}}}}
---
apiVersion: v1
kind: Namespace
metadata: {{name: {name}}}
"""


@pytest.fixture
def name(api: Api) -> Iterator[str]:
    name = f"operator-{secrets.token_hex(3)}"
    yield name
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    for path in (
        f"{crds}/things.{name}.test",
        f"{roles}/{name}",
        f"/api/v1/namespaces/{name}",
    ):
        api.delete(path)


@pytest.fixture
def file(tmp_path: Path, name: str) -> Path:
    path = tmp_path / "operator.yaml"
    path.write_text(OPERATOR.format(name=name))
    return path


@pytest.fixture
def client(lab: Cluster) -> Client:
    return Client(Kubeconfig(str(lab.kubeconfig)))


def install_all(client: Client, file: Path, patience: float = 30.0) -> list[str]:
    """Install until it works; return what was waited for."""
    said: list[str] = []
    end = time.monotonic() + patience
    while True:
        try:
            install(client, read_manifests(file))
        except Transient as error:
            said.append(error.what)
            assert time.monotonic() < end, said
            time.sleep(0.02)
        else:
            return said


@pytest.mark.kubernetes
def test_it_is_made_in_an_order_that_works(
    client: Client, file: Path, name: str, api: Api
) -> None:
    install_all(client, file)
    (found,) = api.items(f"/apis/apps/v1/namespaces/{name}/deployments")
    conditions = {c["type"]: c["status"] for c in found["status"]["conditions"]}
    assert conditions["Available"] == "True"
    assert api.get(f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}")
    assert api.get(f"/apis/{name}.test/v1")


@pytest.mark.kubernetes
def test_what_does_not_work_yet_is_waited_for(
    client: Client, file: Path, name: str, api: Api
) -> None:
    nowhere = "spec:\n      nodeSelector: {kubernetes.io/hostname: none}"
    file.write_text(
        file.read_text().replace("spec:\n      con", f"{nowhere}\n      con")
    )
    with pytest.raises(AssertionError, match="Deployment operator is not Available"):
        install_all(client, file, patience=0.5)
    path = f"/apis/apps/v1/namespaces/{name}/deployments/operator"
    free = {"spec": {"template": {"spec": {"nodeSelector": None}}}}
    api.patch(path, free)
    install_all(client, file)


@pytest.mark.kubernetes
def test_what_is_there_stays_as_it_is(
    client: Client, file: Path, name: str, api: Api
) -> None:
    install_all(client, file)
    path = f"/apis/apps/v1/namespaces/{name}/deployments/operator"
    theirs = api.patch(path, {"metadata": {"labels": {"version": "theirs"}}})
    assert install_all(client, file) == []
    assert api.get(path)["metadata"]["labels"] == theirs["metadata"]["labels"]
    assert api.get(path)["metadata"]["generation"] == theirs["metadata"]["generation"]


@pytest.mark.kubernetes
def test_a_namespace_alone_is_made_at_once(lab: Cluster, name: str, api: Api) -> None:
    authority = Path(lab.pki["ca.crt"]).read_text()
    client = Client(Endpoint(lab.url, authority, lambda: lab.tokens["admin"]))
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    for _ in range(2):
        install(client, [manifest])
        assert api.get(f"/api/v1/namespaces/{name}")


@pytest.mark.kubernetes
def test_a_kind_that_nobody_knows_may_come_to_be_known(client: Client) -> None:
    manifest = {"apiVersion": "no.test/v1", "kind": "No", "metadata": {"name": "x"}}
    with pytest.raises(Transient, match=r"does not know No of no\.test/v1"):
        install(client, [manifest])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [", "not YAML"),
        ("", "no object"),
        ("kind: Pod", "lacks apiVersion, kind or metadata.name"),
        ("- 1", "lacks apiVersion"),
        ("apiVersion: v1\nkind: Pod\n", "metadata.name"),
    ],
)
def test_what_is_no_manifest_is_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "operator.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=says):
        read_manifests(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot be read"):
        read_manifests(tmp_path / "none.yaml")
