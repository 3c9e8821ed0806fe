#!/usr/bin/env python3
"""Installs the vendor's Python library for the tests, both majors, under .cache/.

    fetch.py

Exact versions and hashes are in dependencies.txt and anthropic-*.txt here; pip
compares them. What is there already is left as it is. Nothing is installed
elsewhere.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # the tree stays clean

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# Wheels differ by interpreter.
CACHE = os.path.join(ROOT, ".cache", "python", sys.implementation.cache_tag)
MAJORS = ("1", "2")


def folder(name):
    """Where the packages of a list go: its own place for each content."""
    with open(os.path.join(HERE, name + ".txt"), "rb") as file:
        return os.path.join(CACHE, f"{name}-{hashlib.sha256(file.read()).hexdigest()[:12]}")


def paths(major):
    """The folders to import from for a major version."""
    return [folder("anthropic-" + major), folder("dependencies")]


def install(name):
    """Beside its place and renamed: half an installation is none."""
    target = folder(name)
    if os.path.isdir(target):
        return
    print(f"installing {name} of test/python", file=sys.stderr)
    os.makedirs(CACHE, exist_ok=True)
    scratch = tempfile.mkdtemp(dir=CACHE)
    try:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes",
                   "--disable-pip-version-check", "--root-user-action=ignore", "--target", scratch, "-r", os.path.join(HERE, name + ".txt")]
        if subprocess.run(command, stdout=sys.stderr, check=False).returncode != 0:
            raise OSError(f"pip could not install test/python/{name}.txt (its message is above). "
                          "Check the network and the package index that pip uses.")
        os.replace(scratch, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def main():
    try:
        for name in ("dependencies", *("anthropic-" + major for major in MAJORS)):
            install(name)
    except OSError as error:
        print(f"fetch: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
