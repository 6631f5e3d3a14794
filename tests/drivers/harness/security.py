"""The files and users of a server with logins over TLS: an authority, a certificate, and a first user."""

import os
import pathlib
import socket
import ssl
import struct
import subprocess
import threading

USER, PASSWORD = "keeper", "s:e@c/r%et"
URI_USER = "keeper:s%3Ae%40c%2Fr%25et@"
TRUST_PASSWORD = "changeit"


class Security:
    """Certificates in a folder; the server and the proxy before it use the same one."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(exist_ok=True)
        self.authority, self.pem = self.folder / "ca.pem", self.folder / "server.pem"
        self.trust = self.folder / "trust.p12"
        self.make()

    def make(self):
        key, request, own = (self.folder / name for name in ("key.pem", "request.pem", "own.pem"))
        authority_key, extensions = self.folder / "ca-key.pem", self.folder / "extensions"
        new = ["openssl", "req", "-newkey", "rsa:2048", "-nodes", "-batch"]
        quiet([*new, "-x509", "-days", "2", "-subj", "/CN=drivers", "-keyout", authority_key, "-out", self.authority])
        quiet([*new, "-subj", "/CN=server", "-keyout", key, "-out", request])
        extensions.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        quiet([
            "openssl", "x509", "-req", "-days", "2", "-in", request, "-CA", self.authority, "-CAkey", authority_key,
            "-CAcreateserial", "-extfile", extensions, "-out", own,
        ])
        self.pem.write_text(own.read_text() + key.read_text())
        os.chmod(self.pem, 0o600)

    @property
    def server_options(self):
        return [
            "--auth", "--tlsMode", "requireTLS", "--tlsCertificateKeyFile", str(self.pem), "--tlsCAFile",
            str(self.authority), "--tlsAllowConnectionsWithoutCertificates",
        ]

    def uri(self, port, parameters):
        """Java reads authorities from its own kind of store; the others take the name of a file in the URI."""
        return f"mongodb://{URI_USER}127.0.0.1:{port}/?{parameters}&authSource=admin&tls=true&tlsCAFile={self.authority}"

    def environment(self):
        if not self.trust.exists():
            quiet([
                "keytool", "-importcert", "-noprompt", "-alias", "drivers", "-file", self.authority, "-keystore", self.trust,
                "-storetype", "PKCS12", "-storepass", TRUST_PASSWORD,
            ])
        trust = f"-Djavax.net.ssl.trustStore={self.trust} -Djavax.net.ssl.trustStorePassword={TRUST_PASSWORD}"
        return {"JAVA_TOOL_OPTIONS": trust}

    def as_server(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.pem)
        return context

    def as_client(self):
        return ssl.create_default_context(cafile=str(self.authority))

    def connect(self, port):
        plain = socket.create_connection(("127.0.0.1", port))
        return Sealed(plain, self.as_client(), server_hostname="127.0.0.1")

    def accept(self, plain):
        return Sealed(plain, self.as_server(), server_side=True)

    def make_user(self, port):
        """Creates the first user of a server, which any client on the same machine may do."""
        role = document(text("role", "root"), text("db", "admin"))
        command = document(
            text("createUser", USER), text("pwd", PASSWORD), b"\x04roles\0" + document(b"\x030\0" + role), text("$db", "admin")
        )
        message = b"\0\0\0\0\0" + command
        stream = self.connect(port)
        stream.sendall(struct.pack("<iiii", 16 + len(message), 1, 0, 2013) + message)
        reply = stream.recv(4096)
        stream.close()
        if b"errmsg" in reply:
            raise RuntimeError(f"no first user: {reply!r}")


class Sealed:
    """An encrypted socket that one thread can read while another writes; Python's own allows only one thread at a time."""

    def __init__(self, plain, context, **how):
        self.plain = plain
        self.arrived, self.leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.arrived, self.leaving, **how)
        self.state, self.order = threading.Lock(), threading.Lock()
        try:
            while self.attempt(self.tls.do_handshake) is WAITS:
                if not self.fill():
                    raise OSError("the connection ended inside the handshake")
        except OSError:
            plain.close()
            raise

    def attempt(self, act):
        """Runs a step of TLS and sends its output. Returns `WAITS` if more bytes must arrive first."""
        with self.order:
            with self.state:
                try:
                    done = act()
                except ssl.SSLWantReadError:
                    done = WAITS
                except ssl.SSLZeroReturnError:
                    done = b""
                ready = self.leaving.read()
            if ready:
                self.plain.sendall(ready)
        return done

    def fill(self):
        data = self.plain.recv(1 << 16)
        with self.state:
            self.arrived.write(data)
        return data

    def recv(self, size):
        while True:
            with self.state:
                try:
                    return self.tls.read(size)
                except ssl.SSLWantReadError:
                    pass
                except ssl.SSLZeroReturnError:
                    return b""
            if not self.fill():
                return b""

    def sendall(self, data):
        self.attempt(lambda: self.tls.write(data))

    def setsockopt(self, *option):
        self.plain.setsockopt(*option)

    def shutdown(self, how):
        self.plain.shutdown(how)

    def close(self):
        self.plain.close()


WAITS = object()


def document(*elements):
    body = b"".join(elements)
    return struct.pack("<i", len(body) + 5) + body + b"\0"


def text(name, value):
    value = value.encode() + b"\0"
    return b"\x02" + name.encode() + b"\0" + struct.pack("<i", len(value)) + value


def quiet(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {done.stderr[-1000:]}")
