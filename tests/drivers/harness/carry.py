"""Copies all data from one server to another with mongodump and mongorestore, and compares them byte for byte."""

import json
import os
import pathlib
import re
import shutil
import subprocess

from .clients import HERE
from .server import Server

MODULE = "github.com/mongodb/mongo-tools"


def carry(binary, cache, source, work):
    """Source -> folder -> second server -> compressed archive -> third server -> folder; both folders must be equal."""
    tools = build(cache)
    before, after, archive = work / "before", work / "after", work / "archive.gz"
    security = source.security
    second, third = (Server(binary, work / name, security=security) for name in ("second", "third"))
    try:
        call(tools / "mongodump", f"--uri={source.uri}", f"--out={before}")
        call(tools / "mongorestore", f"--uri={second.uri}", str(before))
        call(tools / "mongodump", f"--uri={second.uri}", f"--archive={archive}", "--gzip")
        call(tools / "mongorestore", f"--uri={third.uri}", f"--archive={archive}", "--gzip")
        call(tools / "mongodump", f"--uri={third.uri}", f"--out={after}")
    finally:
        second.stop()
        third.stop()
    second.check()
    third.check()
    files, size = compare(before, after)
    return f"{tools_version():28} {files} collections, {size} bytes of BSON and their indexes, equal after two restores"


def build(cache):
    """Builds the tools from their Go module, which go.mod pins."""
    if not shutil.which("go"):
        raise RuntimeError("go is not installed")
    bin = cache / "tools"
    bin.mkdir(exist_ok=True)
    for tool in ("mongodump", "mongorestore"):
        call("go", "build", "-o", str(bin / tool), f"{MODULE}/{tool}/main", cwd=HERE / "tools")
    return bin


def tools_version():
    pinned = re.search(r"mongo-tools \d[\d.]*", (HERE / "tools" / "go.mod").read_text())
    return pinned[0] if pinned else "mongo-tools"


def compare(before, after):
    """Raises unless both dumps have the same files; returns the number of collections and of bytes of documents."""
    names = listing(before)
    if names != listing(after):
        raise RuntimeError(f"the dumps hold other files: {names ^ listing(after)}")
    data = [name for name in names if name.endswith(".bson")]
    if not data:
        raise RuntimeError("the dump is empty")
    for name in sorted(names):
        one, other = (before / name).read_bytes(), (after / name).read_bytes()
        if name.endswith(".metadata.json"):
            one, other = metadata(one), metadata(other)
        if one != other:
            raise RuntimeError(f"{name} differs after the restore")
    return len(data), sum((before / name).stat().st_size for name in data)


def listing(folder):
    found = {str(path.relative_to(folder)) for path in pathlib.Path(folder).rglob("*") if path.is_file()}
    return {name for name in found if os.path.basename(name) != "prelude.json"}


def metadata(text):
    """A collection's options and indexes, without the UUID, which differs between servers."""
    described = json.loads(text)
    described.pop("uuid", None)
    described["indexes"] = sorted(described.get("indexes", []), key=lambda index: index["name"])
    return described


def call(*command, cwd=None):
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"`{' '.join(str(word) for word in command)}`:\n{done.stderr[-3000:]}")
