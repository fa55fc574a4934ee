"""The targets of a release, what package managers call them, and what their packers share."""

import os
import pathlib
import time
import tomllib
import zipfile
from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    wheel: str  # platform tags of PyPI, separated by dots
    rid: str  # runtime identifier of .NET
    npm: tuple[str, str]  # `os` and `cpu` of npm, which are process.platform and process.arch
    windows: bool = False

    @property
    def binary(self):
        return "gcdump.exe" if self.windows else "gcdump"


TARGETS = {
    "x86_64-unknown-linux-musl": Target("manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64", "linux-x64", ("linux", "x64")),
    "aarch64-unknown-linux-musl": Target(
        "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64", "linux-arm64", ("linux", "arm64")
    ),
    "x86_64-pc-windows-gnu": Target("win_amd64", "win-x64", ("win32", "x64"), windows=True),
    "x86_64-apple-darwin": Target("macosx_11_0_x86_64", "osx-x64", ("darwin", "x64")),
    "aarch64-apple-darwin": Target("macosx_11_0_arm64", "osx-arm64", ("darwin", "arm64")),
}


def manifest():
    """The `package` table of Cargo.toml."""
    with open("Cargo.toml", "rb") as file:
        return tomllib.load(file)["package"]


def addresses():
    """The addresses in release/addresses, for the version of Cargo.toml."""
    lines = pathlib.Path("release/addresses").read_text().splitlines()
    pairs = (line.split("=", 1) for line in lines if line and not line.startswith("#"))
    return {key: value.replace("VERSION", manifest()["version"]) for key, value in pairs}


def epoch():
    """The date of the release, which all files in packages have."""
    return int(os.environ.get("SOURCE_DATE_EPOCH", 0))


def write_zip(path, files, executable=()):
    """Writes a zip file of `files`, contents by name, that depends on the contents only. Files named in `executable` have the bit for running."""
    # A zip has no dates before 1980.
    stamp = time.gmtime(max(epoch(), 315532800))[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, stamp)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = (0o100755 if name in executable else 0o100644) << 16
            archive.writestr(entry, content)
