"""Keeps a shop's patterns without them: what `quire eject` writes runs in mongosh against a plain copy of the shop."""

import json
import subprocess
import time

from .clients import CLIENTS, Installed
from .server import Server

DATABASE = "shop"
# The seeds of the writes; the worker is killed before the second.
SEEDS = (1, 2)
WAIT_SECONDS = 300


def eject(binary, cache, work):
    """Patterns on one server; a copy without them, the worker and random writes on another."""
    mongosh = Installed(next(client for client in CLIENTS if client.name == "mongosh"), cache)
    kept, plain = Server(binary, work / "patterns"), Server(binary, work / "plain")
    script = work / "shop.js"
    worker = Worker(mongosh, plain, script, work / "worker.log")
    try:
        step(mongosh, "declare", kept)
        ejected = subprocess.run([str(binary), "eject", DATABASE, "--uri", kept.uri], capture_output=True, text=True, check=True)
        script.write_text(ejected.stdout)
        step(mongosh, "copy", kept, SHOP_TO=plain.uri)
        found = differences(mongosh, plain, script)
        if found:
            raise RuntimeError(f"the copy differs from the start: {found}")
        for seed in SEEDS:
            worker.start()
            step(mongosh, "write", plain, SEED=str(seed))
            worker.kill()
            step(mongosh, "write", plain, SEED=str(seed + 100))
            if not differences(mongosh, plain, script):
                raise RuntimeError("nothing differs after writes without the worker")
            worker.start()
            settle(mongosh, plain, script, worker)
        worker.kill()
    finally:
        worker.kill()
        kept.stop()
        plain.stop()
    return f"{len(SEEDS)} times random writes beside the worker and without it, no drift after each"


class Worker:
    """The script in its mode `watch`, as a process."""

    def __init__(self, mongosh, server, script, log):
        self.mongosh, self.server, self.script, self.log = mongosh, server, script, log
        self.process = None

    def start(self):
        """Starts the worker and waits until it follows the changes."""
        with open(self.log, "w") as log:
            command, environment = shell(self.mongosh, self.server.uri, self.script), self.mongosh.environment({"MODE": "watch"})
            self.process = subprocess.Popen(command, cwd=self.mongosh.folder, env=environment, stdout=log, stderr=log)
        wait_for(lambda: "watching" in self.log.read_text() or self.has_ended(), "the worker does not start")
        self.check()

    def has_ended(self):
        return self.process.poll() is not None

    def check(self):
        if self.has_ended():
            raise RuntimeError(f"the worker has ended: {self.log.read_text()[-3000:]}")

    def kill(self):
        if self.process and not self.has_ended():
            self.process.kill()
            self.process.wait()


def shell(mongosh, uri, script):
    return [str(mongosh.folder / "node_modules/.bin/mongosh"), "--quiet", "--norc", uri, "--file", str(script)]


def step(mongosh, name, server, **more):
    """Runs a step of patterns.js."""
    command = [str(mongosh.folder / "node_modules/.bin/mongosh"), "--quiet", "--norc", "--nodb", "--file", "patterns.js"]
    environment = mongosh.environment({"STEP": name, "SHOP_URI": server.uri, **more})
    done = subprocess.run(command, cwd=mongosh.folder, env=environment, capture_output=True, text=True, timeout=WAIT_SECONDS)
    if done.returncode:
        raise RuntimeError(f"step {name}: {done.stdout[-2000:]}{done.stderr[-2000:]}")


def differences(mongosh, server, script):
    """Returns the patterns with documents that differ, or that they would have refused."""
    environment = mongosh.environment({"MODE": "check"})
    command = shell(mongosh, server.uri, script)
    done = subprocess.run(command, cwd=mongosh.folder, env=environment, capture_output=True, text=True, timeout=WAIT_SECONDS)
    found = [row for row in json.loads(done.stdout) if row["drift"] or row["refused"]]
    if done.returncode != bool(found):
        raise RuntimeError(f"the check ends with {done.returncode}: {done.stdout}{done.stderr[-2000:]}")
    return found


def settle(mongosh, server, script, worker):
    """Waits until nothing differs."""

    def is_exact():
        worker.check()
        return not differences(mongosh, server, script)

    wait_for(is_exact, f"documents differ still: {differences(mongosh, server, script)}")


def wait_for(is_done, otherwise):
    end = time.monotonic() + WAIT_SECONDS
    while not is_done():
        if time.monotonic() > end:
            raise RuntimeError(otherwise)
        time.sleep(0.2)
