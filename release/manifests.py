#!/usr/bin/env python3
"""Writes the manifests of Homebrew and Scoop, which name the archives in DIST with their checksums.

    release/manifests.py DIST
"""

import hashlib
import json
import pathlib
import sys

from targets import TARGETS, addresses, manifest

FORMULA = """class Gcdump < Formula
  desc "Shows the heap, threads and waits in a crash dump of a .NET process"
  homepage "{repository}"
  version "{version}"
  license "{license}"

{systems}
  def install
    bin.install "gcdump"
    man1.install Dir["man/*"]
    bash_completion.install "completions/bash" => "gcdump"
    fish_completion.install "completions/fish" => "gcdump.fish"
    zsh_completion.install "completions/zsh" => "_gcdump"
  end

  test do
    assert_equal "gcdump #{{version}}", shell_output("#{{bin}}/gcdump --version").strip
  end
end
"""


def archives(dist, version):
    """Name and checksum of each target's archive."""
    for target, about in TARGETS.items():
        path = dist / f"gcdump-{version}-{target}.{'zip' if about.windows else 'tar.gz'}"
        if path.is_file():
            yield target, path.name, hashlib.sha256(path.read_bytes()).hexdigest()


def formula(package, urls):
    """A formula of Homebrew, for Linux and macOS."""
    systems = ""
    for system, part in (("on_macos", "-apple-"), ("on_linux", "-linux-")):
        cpus = ""
        for cpu, architecture in (("on_arm", "aarch64"), ("on_intel", "x86_64")):
            for target, url, digest in urls:
                if part in target and target.startswith(architecture):
                    cpus += f'    {cpu} do\n      url "{url}"\n      sha256 "{digest}"\n    end\n'
        if cpus:
            systems += f"  {system} do\n{cpus}  end\n"
    return FORMULA.format(
        repository=addresses()["REPOSITORY"],
        version=package["version"],
        license=package["license"],
        systems=systems,
    )


def scoop(package, urls):
    """A manifest of Scoop, for Windows."""
    repository = addresses()["REPOSITORY"]
    for target, url, digest in urls:
        if "windows" in target:
            folder = f"gcdump-{package['version']}-{target}"
            return {
                "version": package["version"],
                "description": package["description"],
                "homepage": repository,
                "license": package["license"],
                "architecture": {"64bit": {"url": url, "hash": digest, "extract_dir": folder}},
                "bin": "gcdump.exe",
                "checkver": {"github": repository},
                "autoupdate": {
                    "architecture": {
                        "64bit": {
                            "url": url.replace(package["version"], "$version"),
                            "extract_dir": folder.replace(package["version"], "$version"),
                        }
                    }
                },
            }
    return None


def main():
    dist, package = pathlib.Path(sys.argv[1]), manifest()
    urls = [(target, f"{addresses()['DOWNLOADS']}/{name}", digest) for target, name, digest in archives(dist, package["version"])]
    (dist / "gcdump.rb").write_text(formula(package, urls))
    for_windows = scoop(package, urls)
    if for_windows:
        (dist / "gcdump.json").write_text(json.dumps(for_windows, indent=4) + "\n")


if __name__ == "__main__":
    main()
