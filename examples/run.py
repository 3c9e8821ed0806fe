#!/usr/bin/env python3
"""Starts the service and Envoy with an example's policy, until Ctrl-C.

    run.py NAME      NAME is a folder beside this file

It runs the three commands that you would run, and prints them. Environment:
CROSSDOOR (the binary, default bin/crossdoor), ENVOY (the Envoy binary),
POLICY (another policy file), LISTEN, GRPC, ADMIN (addresses) and
ENVOY_ADMIN_PORT, where the usual ports are taken.
"""

import os
import shlex
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)


def setting(name, default):
    return os.environ.get(name) or default


ADMIN = setting("ADMIN", "127.0.0.1:9003")


def show(command):
    print("$ " + shlex.join(os.path.relpath(a) if os.path.isabs(a) else a for a in command), flush=True)
    return command


def commands(name):
    """The commands in order: render ends by itself, the others stay."""
    crossdoor = setting("CROSSDOOR", os.path.join(ROOT, "bin", "crossdoor"))
    policy = setting("POLICY", os.path.join(HERE, name, "crossdoor.yaml"))
    out = setting("OUT", os.path.join(ROOT, ".cache", "examples", name))
    grpc = setting("GRPC", "127.0.0.1:9002")
    render = [crossdoor, "render", "--policy", policy, "--for", "envoy", "--out", out, "--service", grpc]
    render += ["--listen", setting("LISTEN", "127.0.0.1:10000"), "--admin-port", setting("ENVOY_ADMIN_PORT", "9901")]
    serve = [crossdoor, "serve", "--policy", policy, "--grpc", grpc, "--admin", ADMIN]
    envoy = [setting("ENVOY", "envoy"), "-c", os.path.join(out, "envoy.yaml")]
    envoy += ["--disable-hot-restart", "--concurrency", "2", "--log-level", "warning"]
    return render, serve, envoy


def ready(admin, service):
    """Waits until the service says that it is ready; false when it ended."""
    for _ in range(200):
        if service.poll() is not None:
            return False
        try:
            with urllib.request.urlopen(f"http://{admin}/readyz", timeout=1):
                return True
        except urllib.error.URLError:
            time.sleep(0.1)
    return False


def main():
    names = sorted(n for n in os.listdir(HERE) if os.path.isfile(os.path.join(HERE, n, "crossdoor.yaml")))
    if len(sys.argv) != 2 or sys.argv[1] not in names:
        print("run.py: which example? One of " + ", ".join(names), file=sys.stderr)
        return 2
    render, serve, envoy = commands(sys.argv[1])
    if subprocess.run(show(render), stdout=subprocess.DEVNULL).returncode != 0:
        return 2
    stopping = []  # no threading.Event: a handler that sets it while it is waited for would wait for itself
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: stopping.append(number))
    # Sessions of their own: Ctrl-C is ours to pass on, once and in order.
    running = [subprocess.Popen(show(serve), start_new_session=True)]
    failed = not ready(ADMIN, running[0])
    try:
        if not failed:
            running.append(subprocess.Popen(show(envoy), start_new_session=True))
        while not failed and not stopping:
            time.sleep(0.2)
            failed = not stopping and any(p.poll() is not None for p in running)
        if failed:
            print("run.py: the service or Envoy ended, see above; are the ports free?", file=sys.stderr)
    finally:
        for p in running:  # the service drains while Envoy still serves
            if p.poll() is None:
                p.terminate()
                try:
                    p.wait(timeout=70)
                except subprocess.TimeoutExpired:
                    p.kill()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
