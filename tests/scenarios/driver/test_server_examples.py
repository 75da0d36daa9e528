"""Files to deploy a server: their options are ours, and systemd and Kubernetes take their forms."""

import ast
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tightship.cli.arguments import parser
from tightship.driver.oip.http.admitting import OPEN_TARGETS

FOLDER = Path(__file__).parents[3] / "examples" / "server"
ANALYZE = shutil.which("systemd-analyze")


def served(words):
    """Options of a command line of ours; an option that we do not have ends the test."""
    assert words[0].rpartition("/")[2] == "tightship"
    return parser().parse_args(words[1:])


def manifests():
    yaml = pytest.importorskip("yaml")
    return list(yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text()))


def instruction(name):
    text = re.sub(r"\\\n\s*", "", (FOLDER / "Dockerfile").read_text())
    return ast.literal_eval(re.search(rf"^{name} (\[.*\])$", text, re.MULTILINE)[1])


def unit(name):
    """Settings of a unit, the last one of each name."""
    text = re.sub(r"\\\n\s*", "", (FOLDER / name).read_text())
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))


def test_the_image_starts_a_server_with_tokens():
    options = served([*instruction("ENTRYPOINT"), *instruction("CMD")])
    assert options.http == ("0.0.0.0", 8000)
    assert options.grpc == ("0.0.0.0", 8001)
    assert options.token_file
    assert not any("shm" in each for each in instruction("ENTRYPOINT"))


def test_a_pod_starts_the_image_with_tokens_and_tls_and_has_time_to_drain():
    spec = manifests()[0]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    options = served([*instruction("ENTRYPOINT"), *container["args"]])
    assert options.token_file
    assert options.tls_cert
    assert options.grace + options.drain < spec["terminationGracePeriodSeconds"]
    ready = container["readinessProbe"]
    assert options.grace >= ready["periodSeconds"] * ready["failureThreshold"] * 2
    places = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    for file in (options.token_file, options.tls_cert, options.tls_key):
        assert str(file.parent) in places.values()
    for volume in spec["volumes"]:
        assert volume.get("secret", {}).get("defaultMode", 0) & 0o007 == 0


def test_probes_ask_for_what_needs_no_token_on_ports_that_are_served():
    (container,) = manifests()[0]["spec"]["template"]["spec"]["containers"]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert ports == {"https": 8000, "grpc": 8001}
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container[name]["httpGet"]
        assert asked["path"] in OPEN_TARGETS
        assert asked["port"] in ports
        assert asked["scheme"] == "HTTPS"


def test_the_manifests_fit_the_schemas_of_kubernetes():
    validate = pytest.importorskip("kubernetes_validate").validate
    for each in manifests():
        validate(each, "1.30", strict=True)


def test_the_unit_starts_a_server_and_gives_it_time_to_drain():
    service = unit("tightship.service")
    options = served(shlex.split(service["ExecStart"]))
    assert options.http == "systemd"
    assert options.grace + options.drain < int(service["TimeoutStopSec"])
    assert unit("tightship.socket")["ListenStream"] == "127.0.0.1:8000"


@pytest.mark.skipif(ANALYZE is None, reason="needs systemd-analyze")
def test_systemd_finds_no_fault_in_the_units(tmp_path):
    for name in ("tightship.service", "tightship.socket"):
        text = (FOLDER / name).read_text()
        text = text.replace("/opt/tightship/bin/tightship", sys.executable)
        (tmp_path / name).write_text(text)
    files = [str(tmp_path / name) for name in ("tightship.service", "tightship.socket")]
    ran = subprocess.run([ANALYZE, "verify", *files], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr.strip()) == (0, "")
