"""Starts and stops `quire serve`."""

import os
import signal
import socket
import subprocess
import time


class Server:
    """A server with its own data directory; `advertise` is the port that drivers connect to."""

    def __init__(self, binary, directory, advertise=None, security=None):
        self.binary, self.directory = str(binary), directory
        os.makedirs(directory, exist_ok=True)
        self.port = free_port()
        self.command = [self.binary, "serve", "--dbpath", str(directory), "--port", str(self.port)]
        if advertise:
            self.command += ["--advertise", f"127.0.0.1:{advertise}"]
        self.security = security
        if security:
            self.command += security.server_options
        self.log = open(f"{directory}.log", "ab")
        self.start()
        if security:
            security.make_user(self.port)

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=subprocess.STDOUT)
        self.wait()

    def crash(self):
        """Kills the server (SIGKILL) and starts it again on the same directory."""
        self.process.kill()
        self.process.wait()
        self.start()

    @property
    def uri(self):
        return self.uri_at(self.port, "directConnection=true")

    def uri_at(self, port, parameters):
        """Returns the URI of this server, or of the proxy before it."""
        if self.security:
            return self.security.uri(port, parameters)
        return f"mongodb://127.0.0.1:{port}/?{parameters}"

    def wait(self):
        for _ in range(600):
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with {self.process.returncode}; see {self.log.name}")
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError(f"the server does not answer; see {self.log.name}")

    def stop(self):
        """Stops the server as a service manager does; does nothing if it is stopped already."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)
        self.log.close()
        return self.process.returncode

    def check(self):
        """Returns the output of `quire check` for the directory of a stopped server; raises if it finds a problem."""
        done = subprocess.run([self.binary, "check", str(self.directory)], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"quire check: {done.stdout}{done.stderr}")
        return done.stdout.strip()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
