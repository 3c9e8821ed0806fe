#!/usr/bin/env python3
"""Runs the behaviour suite on every pinned Envoy and writes the table.

    matrix.py [--out docs/envoy-versions.md] [--only VERSION]... [go test arguments]

Exits with 1 when a test failed on any version. The table has one row per test
and one column per version; a version's own output is in .cache/matrix/. With
--only the other columns are those of the last run.
"""

import argparse
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True  # the tree stays clean

from fetch_envoy import CACHE, PINS, ROOT, FetchError, pinned

MARKS = {"pass": "ok", "fail": "**fails**", "skip": "**skipped**"}


FOLDER = os.path.join(os.path.dirname(CACHE), "matrix")


def log_of(version):
    return os.path.join(FOLDER, version + ".json")


def last(version):
    """What the last run on one Envoy found; nothing when there was none."""
    results = {}
    if os.path.exists(log_of(version)):
        with open(log_of(version), encoding="utf-8") as log:
            for line in log:
                note(line, results, quiet=True)
    return results


def run(version, arguments):
    """The result of each top-level test on one Envoy, and whether all is well."""
    results = {}
    environment = dict(os.environ, ENVOY=pinned(version))
    command = ["go", "test", "-race", "-count=1", "-timeout", "30m", "-json", "./test/...", *arguments]
    os.makedirs(FOLDER, exist_ok=True)
    with open(log_of(version), "w", encoding="utf-8") as log, \
            subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            log.write(line)
            note(line, results)
    return results, process.returncode == 0


def note(line, results, quiet=False):
    try:
        event = json.loads(line)
    except ValueError:
        print(line, end="", file=sys.stderr)
        return
    name, action = event.get("Test", ""), event.get("Action")
    if not quiet and action in ("build-output", "output") and ("FAIL" in event["Output"] or action == "build-output"):
        print(event["Output"], end="", file=sys.stderr)
    if name and "/" not in name and action in MARKS:
        results[name] = action


def table(columns):
    tests = sorted({name for results in columns.values() for name in results})
    lines = ["# Envoy versions", "", "What `make test-matrix` found: each behaviour on each Envoy that the suite runs on.", "",
             "| behaviour | " + " | ".join(columns) + " |", "| --- |" + " --- |" * len(columns)]
    for name in tests:
        lines.append(f"| {name} | " + " | ".join(MARKS.get(results.get(name), "did not run") for results in columns.values()) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=os.path.join(ROOT, "docs", "envoy-versions.md"))
    parser.add_argument("--only", action="append", choices=list(PINS), help="run on this Envoy; several times for several")
    args, rest = parser.parse_known_args()
    columns, failed = {}, []
    for version in PINS:
        if args.only and version not in args.only:
            columns[version] = last(version)
            continue
        print(f"== Envoy {version}", flush=True)
        try:
            columns[version], well = run(version, rest)
        except (FetchError, OSError) as error:
            print(f"matrix: {error}", file=sys.stderr)
            return 1
        if not well:
            failed.append(version)
    os.makedirs(os.path.dirname(args.out), exist_ok=True)
    with open(args.out, "w", encoding="utf-8") as out:
        out.write(table(columns))
    if failed:
        print(f"failed on Envoy: {' '.join(failed)}; output in .cache/matrix/", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
