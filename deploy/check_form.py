# SPDX-License-Identifier: Apache-2.0
"""What deploy/check looks at in the files themselves. Run from the root of the repository."""

import json
import re
import sys
import tomllib
from pathlib import Path

import jsonschema
import yaml

DEPLOY = Path("deploy")
CHART = DEPLOY / "helm" / "tasuki"
REFERENCE = [Path("docs/reference/configuration.md"), Path("docs/reference/cli.md")]
# The user of the image, whom the chart names too.
USER = "10001"

problems = []


def expect(holds, problem):
    if not holds:
        problems.append(problem)


def read(path):
    return Path(path).read_text(encoding="utf-8")


def workspace():
    return tomllib.loads(read("Cargo.toml"))["workspace"]


def version():
    return workspace()["package"]["version"]


def pinned(image):
    tag = image.rpartition(":")[2] if ":" in image else ""
    return re.match(r"\d+\.\d+", tag) is not None


def dockerfile():
    text = read(DEPLOY / "Dockerfile")
    images = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    expect(len(images) == 2, f"{len(images)} stages, expected 2")
    for image in images:
        expect(pinned(image), f"{image} is not pinned to a version")
    rust = tomllib.loads(read("rust-toolchain.toml"))["toolchain"]["channel"]
    expect(images[0].startswith(f"rust:{rust}-"), f"{images[0]} is not Rust {rust}")
    expect(f"RUSTUP_TOOLCHAIN={rust}\n" in text, f"RUSTUP_TOOLCHAIN is not {rust}")
    expect("cargo build --release --locked -p tasuki -p tasuki-tools" in text, "another build command")
    expect(f"\nUSER {USER}:{USER}\n" in text, f"the user is not {USER}")
    for line in ["VOLUME /data", "EXPOSE 8788", 'ENTRYPOINT ["tasuki"]', "HEALTHCHECK "]:
        expect(f"\n{line}" in text, f"no line {line}")
    ignored = read(".dockerignore").splitlines()
    for needed in [*workspace()["members"], ".cargo", "docs"]:
        top = needed.split("/")[0]
        expect(top not in ignored, f".dockerignore leaves out {top}, which the build needs")


def compose():
    services = yaml.safe_load(read(DEPLOY / "compose.yaml"))["services"]
    expect(len(services) == 3, f"{len(services)} services, expected two brokers and a database")
    for name, service in services.items():
        expect(pinned(service["image"]), f"{name}: image not pinned")
        expect(service.get("read_only") is True, f"{name}: root file system can be written")
        expect(service.get("cap_drop") == ["ALL"], f"{name}: keeps capabilities")
        expect("no-new-privileges:true" in service.get("security_opt", []), f"{name}: privileges")
        expect("restart" in service, f"{name}: no restart policy")
        for port in service.get("ports", []):
            expect(port.startswith("127.0.0.1:"), f"{name}: port {port} is open to others")
        for key, value in service["environment"].items():
            secret = "PASSWORD" in key or "://" in value
            expect(not secret or "${POSTGRES_PASSWORD:?" in value, f"{name}: {key} has a password")
        if name == "postgres":
            expect("healthcheck" in service, f"{name}: no health check")
            continue
        expect(service["image"] == f"tasuki:{version()}", f"{name}: another version")
        after = service["depends_on"]["postgres"]["condition"]
        expect(after == "service_healthy", f"{name}: does not wait for the database")
        hosts = service["environment"]["TASUKI_HOSTS"].split(",")
        names = {name, *service["networks"]["agents"]["aliases"]}
        expect(names <= set(hosts), f"{name}: TASUKI_HOSTS lacks one of its names")


def leaves(values, path=""):
    """Paths of values; what is empty or a list is for the user to fill, so it is a leaf too."""
    for key, value in values.items():
        here = f"{path}.{key}".lstrip(".")
        if isinstance(value, dict) and value and here not in {"resources"}:
            yield from leaves(value, here)
        else:
            yield here


def fits(schema, values, **changes):
    return jsonschema.Draft7Validator(schema).is_valid({**values, **changes})


def chart():
    about = yaml.safe_load(read(CHART / "Chart.yaml"))
    expect(about["appVersion"] == version(), f"appVersion is not {version()}")
    values = yaml.safe_load(read(CHART / "values.yaml"))
    schema = json.loads(read(CHART / "values.schema.json"))
    jsonschema.Draft7Validator.check_schema(schema)
    for error in jsonschema.Draft7Validator(schema).iter_errors(values):
        problems.append(f"values.yaml: {error.message}")
    for path in (CHART / "ci").iterdir():
        example = yaml.safe_load(read(path))
        changes = {key: {**values[key], **value} if isinstance(value, dict) else value
                   for key, value in example.items()}
        expect(fits(schema, values, **changes), f"{path.name} does not fit the schema")
    for wrong in [{"replicas": 0}, {"replica": 1}, {"hosts": ["a,b"]}, {"hosts": ["a:8788"]},
                  {"env": {"PATH": "x"}}, {"env": {"TASUKI_STORE": "x"}}]:
        expect(not fits(schema, values, **wrong), f"the schema lets {wrong} pass")
    expect(set(schema["properties"]) - {"global"} == set(values), "schema and values.yaml differ")
    templates(values)


def templates(values):
    texts = {path.name: read(path) for path in (CHART / "templates").iterdir()}
    whole = "\n".join(texts.values())
    used = set(re.findall(r"\.Values\.([A-Za-z.]+)", whole)) - {"env.TASUKI"}
    known = set(leaves(values))
    for name in sorted(used):
        inside = any(leaf == name or leaf.startswith(f"{name}.") for leaf in known)
        expect(inside, f"a template uses {name}, which values.yaml lacks")
    for name in sorted(known - used):
        expect(False, f"no template uses {name}")
    defined = set(re.findall(r'define "([^"]+)"', whole))
    included = set(re.findall(r'include "([^"]+)"', whole))
    expect(included == defined, f"defined and included differ: {included ^ defined}")
    for name, text in texts.items():
        begun = len(re.findall(r"{{-? *(?:if|with|range|define) ", text))
        ended = len(re.findall(r"{{-? *end *-?}}", text))
        expect(begun == ended, f"{name}: {begun} blocks begin and {ended} end")


def rendered(path):
    """What helm made of the example values."""
    found = {one["kind"]: one for one in yaml.safe_load_all(read(path)) if one}
    kinds = {"Deployment", "Service", "ServiceAccount", "PodDisruptionBudget", "NetworkPolicy"}
    expect(set(found) == kinds, f"kinds are {sorted(found)}")
    pod = found["Deployment"]["spec"]["template"]
    selector = found["Deployment"]["spec"]["selector"]["matchLabels"].items()
    expect(selector <= pod["metadata"]["labels"].items(), "the deployment does not find its pods")
    expect(found["Service"]["spec"]["selector"].items() == selector, "the service finds others")
    spec, broker = pod["spec"], pod["spec"]["containers"][0]
    expect(spec["securityContext"]["runAsUser"] == int(USER), "not the user of the image")
    expect(spec["automountServiceAccountToken"] is False, "pods get a token")
    expect(broker["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }, "the container is not locked down")
    store = next(one for one in broker["env"] if one["name"] == "TASUKI_STORE")
    expect(set(store) == {"name", "valueFrom"}, "the URL of the store is not from a secret")
    for probe, path in [("startup", "/healthz"), ("liveness", "/healthz"), ("readiness", "/readyz")]:
        get = broker[f"{probe}Probe"]["httpGet"]
        expect(get["path"] == path, f"the {probe} probe asks for {get['path']}")
        local = [{"name": "Host", "value": "localhost"}]
        expect(get["httpHeaders"] == local, f"the broker would refuse the {probe} probe's Host")


def named():
    """Every setting that the files of this folder name."""
    files = [path for path in DEPLOY.rglob("*") if path.is_file() and path.suffix != ".py"]
    return {name for path in files for name in re.findall(r"TASUKI_[A-Z_]*[A-Z]", read(path))}


def documented():
    return {name for path in REFERENCE for name in re.findall(r"TASUKI_[A-Z_]+", read(path))}


def settings():
    for name in sorted(named() - documented()):
        problems.append(f"{name} is not in docs/reference")


CHECKS = [dockerfile, compose, chart, rendered, settings]

if __name__ == "__main__":
    by_name = {check.__name__: check for check in CHECKS}
    by_name[sys.argv[1]](*sys.argv[2:])
    for problem in problems:
        print(problem)
    sys.exit(bool(problems))
