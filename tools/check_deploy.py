#!/usr/bin/env python3
"""Checks what deploy/ promises without a container engine; prints what is wrong and exits with 1.

The Dockerfile copies only what exists and what .dockerignore lets through; its shell is clean; every package of packages.txt is known to apt; every library
that a built program needs is in the runtime list; docker-compose.yml publishes on loopback only and sets only variables that its programs read; the sample
kiln.toml passes --check of each program. Checks of programs are left out, and said so, while they are not built.
"""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = ("kiln-planner", "kiln-builder", "kiln-gateway")
TABLES = {"kiln-planner": "services/planner/conf.c", "kiln-builder": "services/builder/builder.c", "kiln-gateway": "services/gateway/conf.c"}
# Variables that no table has: a file may name them (publisher.config.json substitutes them), or every program reads them.
OTHER_VARIABLES = {"KILN_DEMO_PG", "KILN_CONFIG", "PATH"}
BASE_IMAGE = {"libc6"}
# Libraries of no Debian package, installed by setup.sh: the image has them beside bin/, where the programs look for them.
SHIPPED = {"libduckdb.so"}
bad = []


def build_dir():
    return pathlib.Path(os.environ.get("KILN_BUILD", ROOT / "build"))


def run(*argv, **more):
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False, **more)


def instructions(path):
    """The Dockerfile's instructions with their continuation lines joined."""
    text = re.sub(r"^\s*#.*\n", "", path.read_text(), flags=re.M)
    for line in re.sub(r"\\\n", " ", text).splitlines():
        if line.strip():
            word, _, rest = line.strip().partition(" ")
            yield word.upper(), rest.strip()


def packages(group=None):
    for line in (ROOT / "deploy/packages.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            g, name = line.split()
            if group in (None, g):
                yield name


def check_copies(dockerfile):
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for word, rest in instructions(dockerfile):
        if word not in ("COPY", "ADD") or "--from=" in rest:
            continue
        for source in rest.split()[:-1]:
            if not (ROOT / source).exists():
                bad.append(f"{dockerfile.name}: COPY {source}: there is no such file")
            elif source.split("/")[0] not in allowed:
                bad.append(f"{dockerfile.name}: COPY {source}: .dockerignore keeps it out of the build context")


def check_shell(dockerfile):
    script = "#!/bin/sh\nset -e\n" + "".join(rest + "\n" for word, rest in instructions(dockerfile) if word == "RUN")
    done = run("shellcheck", "-", input=script)
    if done.returncode:
        bad.append(f"{dockerfile.name}: shellcheck of its RUN lines:\n{done.stdout}")


def check_packages():
    names = sorted(set(packages()))
    known = set(re.findall(r"^Package: (\S+)", run("apt-cache", "show", "--no-all-versions", *names).stdout, flags=re.M))
    bad.extend(f"packages.txt: apt knows no package {n} (or apt-get update was never run)" for n in names if n not in known)


def owner(path):
    """The package that a file came with; /lib and /usr/lib are one directory, and dpkg knows either spelling."""
    real = os.path.realpath(path)
    for spelling in (real, real.removeprefix("/usr"), path):
        found = run("dpkg", "-S", spelling).stdout.split(":")[0]
        if found:
            return found
    return None


def check_libraries():
    runtime = set(packages("runtime")) | BASE_IMAGE
    for program in PROGRAMS:
        needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-d", build_dir() / "bin" / program).stdout))
        places = dict(re.findall(r"(\S+) => (\S+)", run("ldd", build_dir() / "bin" / program).stdout))
        for library in sorted(needed):
            if library not in places or library in SHIPPED:
                continue
            found = owner(places[library])
            if found not in runtime:
                bad.append(f"{program} needs {library} of package {found or '(none)'}, which the runtime list of packages.txt has not")


def check_shipped(dockerfile):
    """What setup.sh duckdb installs comes into the image whole: the library, and the extensions that are looked for beside it."""
    words = [rest for word, rest in instructions(dockerfile) if word in ("RUN", "COPY")]
    if not any(re.search(r"setup\.sh\b[^&]*\bduckdb\b[^&]*&&.*cp -r /opt/kiln-tools/lib /opt/kiln/lib", w) for w in words):
        bad.append(f"{dockerfile.name}: setup.sh duckdb is not run, or what it installs is not taken to /opt/kiln/lib")
    if not any(re.search(r"--from=build /opt/kiln/lib /opt/kiln/lib$", w) for w in words):
        bad.append(f"{dockerfile.name}: /opt/kiln/lib with DuckDB's library and extensions is not copied into the image")
    for program in PROGRAMS:
        wanted = build_dir() / "bin" / program
        if wanted.exists() and "$ORIGIN/../lib" not in run("readelf", "-d", wanted).stdout:
            bad.append(f"{program} does not look for libraries in ../lib, where the image has DuckDB")


def variables(program):
    return set(re.findall(r'"((?:KILN|PUBLISHER|PERSIST|PACKAGE|INITIALIZE)_[A-Z0-9_]+)"', (ROOT / TABLES[program]).read_text()))


def check_compose():
    done = run("docker-compose", "-f", "docker-compose.yml", "config", cwd=ROOT)
    if done.returncode:
        bad.append(f"docker-compose.yml: {done.stderr.strip()}")
        return
    import yaml
    compose = yaml.safe_load(done.stdout)
    if "name" in compose:
        bad.append("docker-compose.yml: a top-level name is not understood by docker-compose 1.29")
    for name, service in compose["services"].items():
        for port in service.get("ports", []):
            if not str(port).startswith("127.0.0.1:"):
                bad.append(f"docker-compose.yml: {name} publishes {port} off loopback")
        if "healthcheck" not in service:
            bad.append(f"docker-compose.yml: {name} has no health check")
        program = (service.get("command") or [""])[0]
        if program in PROGRAMS:
            unknown = set(service["environment"]) - variables(program) - OTHER_VARIABLES
            bad.extend(f"docker-compose.yml: {name} sets {v}, which {program} does not read" for v in sorted(unknown))


def check_image_variables(dockerfile):
    known = set().union(*(variables(p) for p in PROGRAMS)) | OTHER_VARIABLES
    for word, rest in instructions(dockerfile):
        if word == "ENV":
            unknown = set(re.findall(r"(?:^|\s)([A-Z_]+)=", rest)) - known - {"KILN_PREFIX"}
            bad.extend(f"{dockerfile.name}: no program reads {v}" for v in sorted(unknown))


def check_sample():
    env = {**os.environ, "KILN_SECRET_KEY": "00" * 32}
    for program in PROGRAMS:
        done = run(build_dir() / "bin" / program, "--config", ROOT / "deploy/kiln.toml", "--check", env=env)
        if done.returncode:
            bad.append(f"deploy/kiln.toml: {program} --check: {(done.stdout + done.stderr).strip()}")


def check_units():
    for unit in sorted((ROOT / "deploy/systemd").glob("*.service")):
        program = re.search(r"^ExecStart=/opt/kiln/bin/(\S+)", unit.read_text(), flags=re.M)
        if not program or program[1] not in PROGRAMS:
            bad.append(f"{unit.name}: ExecStart starts none of {', '.join(PROGRAMS)}")
        for must in ("NoNewPrivileges=yes", "ProtectSystem=strict", "User=kiln", "PrivateTmp=yes"):
            if must not in unit.read_text():
                bad.append(f"{unit.name}: {must} is missing")


def main():
    dockerfile = ROOT / "deploy/Dockerfile"
    check_copies(dockerfile)
    check_shell(dockerfile)
    check_image_variables(dockerfile)
    check_shipped(dockerfile)
    check_packages()
    check_compose()
    check_units()
    if all((build_dir() / "bin" / p).exists() for p in PROGRAMS):
        check_libraries()
        check_sample()
    else:
        print("check_deploy: the programs are not built: their libraries and the sample kiln.toml are not checked")
    for line in bad:
        print(line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
