"""Common code of the scripts that measure a server: a Python environment, a server in an empty
directory, and the best of several rounds.
"""
import os, pathlib, signal, socket, subprocess, sys, tempfile, time

PACKAGES = ["pymongo==4.15.3", "duckdb==1.4.1", "psycopg2-binary==2.9.11"]
WORK = pathlib.Path(tempfile.gettempdir()) / "quire-measured"


def in_own_environment():
    """Runs the script again in an environment with the packages, if they are missing."""
    venv = WORK / "venv"
    if pathlib.Path(sys.prefix) == venv:
        return
    WORK.mkdir(parents=True, exist_ok=True)
    ready = venv / ("ready-" + "-".join(PACKAGES))
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        subprocess.run([str(venv / "bin/pip"), "install", "-q", *PACKAGES], check=True)
        ready.touch()
    os.execv(str(venv / "bin/python"), [str(venv / "bin/python"), *sys.argv])


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Server:
    """A server on a port; `db` is its database `bench`."""

    def __init__(self, command, port, **options):
        import pymongo

        self.server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.db = pymongo.MongoClient("127.0.0.1", port, directConnection=True, serverSelectionTimeoutMS=20_000, w=1, **options).bench

    def load(self, name, documents):
        """Inserts documents, a thousand at a time."""
        batch = []
        for document in documents:
            batch.append(document)
            if len(batch) == 1000:
                self.db[name].insert_many(batch, ordered=False)
                batch = []
        if batch:
            self.db[name].insert_many(batch, ordered=False)

    def memory(self, field):
        """Returns a field of the process's status, in MB."""
        with open(f"/proc/{self.server.pid}/status") as lines:
            return next(int(line.split()[1]) // 1024 for line in lines if line.startswith(field))

    def cpu(self):
        """Returns the processor time of the process in seconds, in steps of 10 ms."""
        with open(f"/proc/{self.server.pid}/stat") as fields:
            user, system = fields.read().rsplit(")", 1)[1].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def forget_peak(self):
        """Resets the peak of memory (VmHWM)."""
        with open(f"/proc/{self.server.pid}/clear_refs", "w") as out:
            out.write("5")

    def stop(self):
        self.server.send_signal(signal.SIGTERM)
        self.server.wait()


class Quire(Server):
    """Quire on a free port and an empty directory, with more `options`."""

    def __init__(self, binary, *options):
        self.directory = tempfile.TemporaryDirectory(prefix="data-", dir=WORK)
        port = free_port()
        super().__init__([binary, "serve", "--dbpath", self.directory.name, "--port", str(port), *options], port)

    def stop(self):
        super().stop()
        self.directory.cleanup()


class Peer(Server):
    """mongo-java-server on a free port, with the jars of a directory."""

    def __init__(self, jars):
        port = free_port()
        source = pathlib.Path(__file__).parent / "joinbench" / "Peer.java"
        super().__init__(["java", "-Xmx4g", "-cp", f"{jars}/*", str(source), str(port)], port, socketTimeoutMS=60_000)


def postgres(dsn):
    """Returns a cursor of a PostgreSQL database that commits each statement."""
    import psycopg2

    connection = psycopg2.connect(dsn)
    connection.autocommit = True
    return connection.cursor()


def measured(label, work, cpu=None):
    """Runs `work` and prints its time by the clock, and by `cpu` of a process."""
    begun, used = time.perf_counter(), cpu() if cpu else 0
    result = work()
    text = f", {cpu() - used:.1f} s of CPU" if cpu else ""
    print(f"{label}: {time.perf_counter() - begun:.1f} s{text}", flush=True)
    return result


def milliseconds(query, arguments):
    """Returns the median and the worst time of a query, as a text."""
    times = []
    for argument in arguments:
        begun = time.perf_counter()
        query(argument)
        times.append((time.perf_counter() - begun) * 1000)
    times.sort()
    return f"{times[len(times) // 2]:.2f} ({times[-1]:.2f})"


def best(rounds, work, clock=time.perf_counter):
    """Returns the shortest time of the rounds in seconds, and the last result. With a list of clocks,
    returns a list with the shortest time of each."""
    clocks = clock if isinstance(clock, list) else [clock]
    times, result = [], None
    for _ in range(rounds):
        begun = [clock() for clock in clocks]
        result = work()
        times.append([clock() - begun for clock, begun in zip(clocks, begun)])
    shortest = [min(column) for column in zip(*times)]
    return (shortest if isinstance(clock, list) else shortest[0]), result
