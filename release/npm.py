#!/usr/bin/env python3
"""Packs prebuilt binaries for npm, so that `npx gcdump` and `npm install -g gcdump` give the command.

    release/npm.py DIST TARGET=FOLDER ...

FOLDER has the binary of the target and its THIRD-PARTY-LICENSES. There is one package for each target, and `gcdump`, which has them as
optional dependencies: npm installs the one whose `os` and `cpu` fit. No script runs at installation.
"""

import gzip
import io
import json
import pathlib
import sys
import tarfile

from targets import TARGETS, addresses, epoch, manifest

LAUNCHER = """#!/usr/bin/env node
'use strict'
const { spawnSync } = require('node:child_process')

const platform = `${process.platform}-${process.arch}`
const binary = process.platform === 'win32' ? 'gcdump.exe' : 'gcdump'
let path
try {
  path = require.resolve(`gcdump-${platform}/${binary}`)
} catch {
  console.error(`gcdump: there is no package for ${platform}, or it was left out (npm install --include=optional)`)
  process.exit(2)
}
// The terminal sends signals to both processes; this one waits for the other.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {})
const { status, signal, error } = spawnSync(path, process.argv.slice(2), { stdio: 'inherit' })
if (error) {
  console.error(`gcdump: ${path} cannot be started: ${error.message}`)
  process.exit(2)
}
process.exit(signal ? 130 : status)
"""


def pack(dist, package, files, executable=()):
    """Writes a package of `files`, contents by name, as `npm pack` does."""
    files = {"package.json": (json.dumps(package, indent=2) + "\n").encode(), **files}
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size, entry.mtime = len(content), epoch()
            entry.mode = 0o755 if name in executable else 0o644
            archive.addfile(entry, io.BytesIO(content))
    path = dist / f"{package['name']}-{package['version']}.tgz"
    path.write_bytes(gzip.compress(raw.getvalue(), 9, mtime=0))


def main():
    dist, targets = pathlib.Path(sys.argv[1]), dict(argument.split("=", 1) for argument in sys.argv[2:])
    cargo = manifest()
    common = {
        "version": cargo["version"],
        "description": cargo["description"],
        "license": cargo["license"],
        "repository": {"type": "git", "url": f"git+{addresses()['REPOSITORY']}.git"},
    }
    license = pathlib.Path("LICENSE").read_bytes()
    names = []
    for target, folder in targets.items():
        about, folder = TARGETS[target], pathlib.Path(folder)
        os, cpu = about.npm
        names.append(f"gcdump-{os}-{cpu}")
        package = {"name": names[-1], **common, "os": [os], "cpu": [cpu], "preferUnplugged": True}
        files = {
            about.binary: (folder / about.binary).read_bytes(),
            "LICENSE": license,
            "THIRD-PARTY-LICENSES": (folder / "THIRD-PARTY-LICENSES").read_bytes(),
            "README.md": f"The binary of [gcdump](https://www.npmjs.com/package/gcdump) for {os} {cpu}.\n".encode(),
        }
        pack(dist, package, files, {about.binary})
    package = {
        "name": "gcdump",
        **common,
        "keywords": cargo["keywords"],
        "bin": {"gcdump": "bin/gcdump.js"},
        "engines": {"node": ">=16"},
        "optionalDependencies": {name: cargo["version"] for name in names},
    }
    readme = pathlib.Path("README.md").read_bytes()
    pack(dist, package, {"bin/gcdump.js": LAUNCHER.encode(), "LICENSE": license, "README.md": readme}, {"bin/gcdump.js"})


if __name__ == "__main__":
    main()
