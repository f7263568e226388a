"""A Dask cluster whose connections are encrypted, with certificates made for the test."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from cli_runner import Captured, attn, printed
from dask_cluster import Cluster

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("openssl"), reason="needs the openssl program"),
    pytest.mark.skipif(not find_spec("distributed"), reason="needs attn-tui[cluster]"),
]

SMALL = ("sweep", "--n-keys", "16", "--n-queries", "8", "--batch", "4", "--d-k", "2,64", "--format", "json")


def configured(folder: Path) -> dict[str, str]:
    """The environment with Dask's configuration in a new folder: a certificate, which is its own authority."""
    folder.mkdir()
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    new = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    subject = ("-days", "2", "-subj", "/CN=attn-tui-tests")
    subprocess.run([*new, *subject, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    own = {"cert": str(certificate), "key": str(key)}
    tls = {"ca-file": str(certificate), "client": own, "scheduler": own, "worker": own}
    # JSON is YAML.
    (folder / "dask.yaml").write_text(json.dumps({"distributed": {"comm": {"require-encryption": True, "tls": tls}}}))
    return {"DASK_CONFIG": str(folder)}


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    found = Cluster(folder, ("--protocol", "tls"), configured(folder / "tls"))
    found.add_worker("--no-nanny")
    yield found
    found.end()


def test_the_bytes_are_those_of_this_machine(encrypted: Cluster, capsys: Captured) -> None:
    assert encrypted.address.startswith("tls://")
    found = attn(*SMALL, *encrypted.executor, env=encrypted.env)
    assert (found.returncode, found.stderr) == (0, b"")
    assert found.stdout.decode() == printed([*SMALL, "--executor", "serial"], capsys)


@pytest.mark.parametrize("kind", ["other certificates", "no certificates", "no encryption"])
def test_certificates_that_do_not_match_are_refused_in_one_line(
    kind: str, encrypted: Cluster, tmp_path: Path
) -> None:
    env, address = {"DASK_CONFIG": str(tmp_path)}, encrypted.address
    if kind == "other certificates":
        env = configured(tmp_path / "other")
    if kind == "no encryption":
        address = address.replace("tls://", "tcp://")
    found = attn(*SMALL, "--executor", f"dask:{address}", env=env)
    assert (found.returncode, found.stdout) == (2, b"")
    told = found.stderr.decode()
    assert told.startswith(f"attn-tui: executor dask:{address}: no scheduler answers: ")
    assert told.count("\n") == 1
    assert ("TLS" if address.startswith("tls") else "Connection reset") in told
