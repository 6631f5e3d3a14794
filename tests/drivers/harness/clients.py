"""How each driver's program is installed and started."""

import dataclasses
import hashlib
import os
import pathlib
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent.parent
QUIET_NPM = ["npm", "install", "--install-links", "--no-audit", "--no-fund", "--no-package-lock", "--no-update-notifier"]


@dataclasses.dataclass(frozen=True)
class Client:
    """`install` and `run` are command lines, started in a copy of the folder `name` in the cache."""

    name: str
    needs: str
    install: list
    run: list
    compressors: tuple = ("zstd", "snappy", "zlib")
    environment: dict = dataclasses.field(default_factory=dict)


CLIENTS = [
    Client("node", "npm", [QUIET_NPM], ["node", "shop.mjs"]),
    Client(
        "python",
        "python3",
        [["python3", "-m", "venv", "venv"], ["venv/bin/pip", "install", "--quiet", "--requirement", "requirements.txt"]],
        ["venv/bin/python", "shop.py"],
    ),
    Client("go", "go", [["go", "build", "-o", "shop", "."]], ["./shop"]),
    Client("rust", "cargo", [["cargo", "build", "--quiet"]], ["target/debug/shop"], environment={"CARGO_TARGET_DIR": "target"}),
    Client("java", "mvn", [["mvn", "--quiet", "--batch-mode", "package"]], ["java", "-cp", "target/shop.jar:target/lib/*", "Shop"]),
    Client(
        "mongosh",
        "npm",
        [QUIET_NPM],
        ["node_modules/.bin/mongosh", "--quiet", "--norc", "--nodb", "--file", "shop.js"],
        compressors=("zlib",),
    ),
]


class Installed:
    """A client with a copy in the cache that can be run."""

    def __init__(self, client, cache):
        self.client = client
        self.folder = cache / client.name
        if not shutil.which(client.needs):
            raise RuntimeError(f"{client.needs} is not installed")
        self.copy()
        self.install()

    def environment(self, more=None):
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        own = {"HOME": str(home)} if self.client.name == "mongosh" else {}
        return {**os.environ, **own, **self.client.environment, **(more or {})}

    def copy(self):
        """Copies the sources to the cache; installed and built files there stay."""
        shutil.copytree(HERE / self.client.name, self.folder, dirs_exist_ok=True)

    def install(self):
        """Installs only if a source file has changed since the last successful installation."""
        stamp, now = self.folder / ".installed", self.digest()
        if stamp.exists() and stamp.read_text() == now:
            return
        stamp.unlink(missing_ok=True)
        for command in self.client.install:
            log = self.folder / "install.log"
            with open(log, "ab") as out:
                if subprocess.run(command, cwd=self.folder, env=self.environment(), stdout=out, stderr=out).returncode:
                    raise RuntimeError(f"`{' '.join(command)}` failed; see {log}")
        stamp.write_text(now)

    def digest(self):
        files = sorted(path for path in (HERE / self.client.name).rglob("*") if path.is_file())
        return hashlib.sha256(b"".join(str(path).encode() + path.read_bytes() for path in files)).hexdigest()

    def run(self, environment, timeout):
        return subprocess.run(
            self.client.run, cwd=self.folder, env=self.environment(environment), capture_output=True, text=True, timeout=timeout
        )
