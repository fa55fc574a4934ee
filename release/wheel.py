#!/usr/bin/env python3
"""Packs a prebuilt binary as a Python wheel, so that `pip install gcdump` gives the command.

    release/wheel.py TARGET FOLDER MAN DIST

FOLDER has the binary and its THIRD-PARTY-LICENSES, MAN the manual pages. Nothing is compiled: the Linux binaries are static, and run under
both C libraries whatever their version.
"""

import base64
import hashlib
import pathlib
import sys

from targets import TARGETS, addresses, manifest, write_zip



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
    lines += [f"Project-URL: Repository, {addresses()['REPOSITORY']}"]
    lines += ["Description-Content-Type: text/markdown", "", pathlib.Path("README.md").read_text()]
    return "\n".join(lines)


def main():
    target, folder, man, dist = sys.argv[1], *map(pathlib.Path, sys.argv[2:5])
    package, about = manifest(), TARGETS[target]
    name, version, binary = package["name"], package["version"], about.binary
    tag = f"py3-none-{about.wheel}"
    info, data = f"{name}-{version}.dist-info", f"{name}-{version}.data"
    tags = "".join(f"Tag: py3-none-{platform}\n" for platform in about.wheel.split("."))
    files = {
        f"{data}/scripts/{binary}": (folder / binary).read_bytes(),
        f"{info}/METADATA": metadata(package).encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: {name} release/wheel.py\nRoot-Is-Purelib: false\n{tags}".encode(),
        f"{info}/licenses/LICENSE": pathlib.Path("LICENSE").read_bytes(),
        f"{info}/licenses/THIRD-PARTY-LICENSES": (folder / "THIRD-PARTY-LICENSES").read_bytes(),
    }
    if not about.windows:
        files |= {f"{data}/data/share/man/man1/{page.name}": page.read_bytes() for page in sorted(man.iterdir())}
    record = ""
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(content)}\n"
    record += f"{info}/RECORD,,\n"
    files[f"{info}/RECORD"] = record.encode()
    # pip keeps the bit for running, and nothing else of a mode.
    write_zip(dist / f"{name}-{version}-{tag}.whl", files, {f"{data}/scripts/{binary}"})


if __name__ == "__main__":
    main()
