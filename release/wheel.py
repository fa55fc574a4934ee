#!/usr/bin/env python3
"""Packs a prebuilt binary as a Python wheel, so that `pip install gcdump` gives the command.

    release/wheel.py TARGET FOLDER MAN DIST

FOLDER has the binary and its THIRD-PARTY-LICENSES, MAN the manual pages. Nothing is compiled: the binary is static, and runs under
both C libraries of Linux whatever their version.
"""

import base64
import hashlib
import os
import pathlib
import sys
import time
import tomllib
import zipfile

PLATFORMS = {
    "x86_64-unknown-linux-musl": "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    "aarch64-unknown-linux-musl": "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
    "x86_64-pc-windows-gnu": "win_amd64",
}


def metadata(package):
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {package['name']}",
        f"Version: {package['version']}",
        f"Summary: {package['description']}",
        f"License-Expression: {package['license']}",
        "License-File: LICENSE",
        "License-File: THIRD-PARTY-LICENSES",
        f"Keywords: {','.join(package['keywords'])}",
        "Classifier: Environment :: Console",
        "Classifier: Intended Audience :: Developers",
        "Classifier: Topic :: Software Development :: Debuggers",
        "Requires-Python: >=3.7",
    ]
    lines += [f"Project-URL: {k.title()}, {package[k]}" for k in ("homepage", "repository", "documentation") if k in package]
    lines += ["Description-Content-Type: text/markdown", "", pathlib.Path("README.md").read_text()]
    return "\n".join(lines)


def main():
    target, folder, man, dist = sys.argv[1], *map(pathlib.Path, sys.argv[2:5])
    with open("Cargo.toml", "rb") as manifest:
        package = tomllib.load(manifest)["package"]
    name, version = package["name"], package["version"]
    tag = f"py3-none-{PLATFORMS[target]}"
    windows = "windows" in target
    binary = name + (".exe" if windows else "")
    info, data = f"{name}-{version}.dist-info", f"{name}-{version}.data"
    tags = "".join(f"Tag: py3-none-{platform}\n" for platform in PLATFORMS[target].split("."))
    files = {
        f"{data}/scripts/{binary}": (folder / binary).read_bytes(),
        f"{info}/METADATA": metadata(package).encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: {name} release/wheel.py\nRoot-Is-Purelib: false\n{tags}".encode(),
        f"{info}/licenses/LICENSE": pathlib.Path("LICENSE").read_bytes(),
        f"{info}/licenses/THIRD-PARTY-LICENSES": (folder / "THIRD-PARTY-LICENSES").read_bytes(),
    }
    if not windows:
        files |= {f"{data}/data/share/man/man1/{page.name}": page.read_bytes() for page in sorted(man.iterdir())}
    record = ""
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(content)}\n"
    record += f"{info}/RECORD,,\n"
    files[f"{info}/RECORD"] = record.encode()
    # A zip has no dates before 1980.
    stamp = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), 315532800))[:6]
    with zipfile.ZipFile(dist / f"{name}-{version}-{tag}.whl", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, stamp)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            # pip keeps the bit for running, and nothing else of a mode.
            entry.external_attr = (0o100755 if path.startswith(f"{data}/scripts/") else 0o100644) << 16
            wheel.writestr(entry, content)


if __name__ == "__main__":
    main()
