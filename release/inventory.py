#!/usr/bin/env python3
"""What a binary is made of: its licences as text and its bill of materials (CycloneDX 1.6).

    release/inventory.py TARGET [--licences FILE] [--sbom FILE]

Asks cargo for the crates that are linked into the binary and for those that only build it. Fails where a licence is not on the list
below, or where a linked crate lacks the text of a licence that has to come along.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib
import uuid

# What may be passed on in a binary under any terms, as long as its text comes along.
ALLOWED = {
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
}

# Of these, none asks for its text beside a binary (BSL: "machine-executable object code").
NEED_NO_TEXT = {"0BSD", "BSL-1.0", "CC0-1.0", "MIT-0", "Unlicense"}

# Code of others inside a crate: the manifest names the licence of the crate only.
BUNDLED = {"zstd-sys": ("zstd", "BSD-3-Clause OR GPL-2.0-only", ["LICENSE.BSD-3-Clause", "zstd/LICENSE"])}

# Of the texts in its documentation, which is not compiled.
NOT_LINKED = {("procfs-core", "COPYRIGHT.txt")}

TEXTS = re.compile(r"^(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)
# Of two licences to choose from, the one that was not chosen.
NOT_CHOSEN = re.compile(r"gpl|COPYING$", re.IGNORECASE)


def cargo(*args):
    done = subprocess.run(["cargo", *args], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def crates(target, edges):
    """Names and versions of the crates that the edges lead to."""
    lines = cargo("tree", "--locked", "--target", target, "-e", edges, "--prefix", "none", "-f", "{p}").splitlines()
    return {tuple(line.split()[:2]) for line in lines}


def terms(expression):
    """The licences of an SPDX expression as alternatives, each a set of which all hold."""
    words = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))

    def either():
        found = both()
        while words and words[0] == "OR":
            words.pop(0)
            found = found + both()
        return found

    def both():
        found = one()
        while words and words[0] == "AND":
            words.pop(0)
            more = one()
            found = [a | b for a in found for b in more]
        return found

    def one():
        word = words.pop(0)
        if word == "(":
            found = either()
            words.pop(0)
            return found
        if words and words[0] == "WITH":
            words.pop(0)
            word += " WITH " + words.pop(0)
        return [{word}]

    found = either()
    if words:
        raise ValueError(f"not an SPDX expression: {expression}")
    return found


def allowed(expression):
    return any(alternative <= ALLOWED for alternative in terms(expression))


def normal(expression):
    return expression.replace("/", " OR ")


def texts(name, folder, extra):
    """The files of a crate that state licences, and the further ones by name."""
    files = [f for f in sorted(folder.iterdir()) if f.is_file() and TEXTS.match(f.name) and not NOT_CHOSEN.search(f.name)]
    files = [f for f in files if (name, f.name) not in NOT_LINKED]
    files += [folder / name for name in extra if folder / name not in files]
    return [f.read_text(encoding="utf-8", errors="replace").strip() for f in files]


def runtime():
    """What rustc links into every binary: the standard library."""
    sysroot = pathlib.Path(subprocess.run(["rustc", "--print", "sysroot"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip())
    version = subprocess.run(["rustc", "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()[1]
    folder = sysroot / "share/doc/rust/licenses"
    return version, [(folder / f"{name}.txt").read_text().strip() for name in ("MIT", "Apache-2.0") if (folder / f"{name}.txt").exists()]


def write_licences(path, linked, musl):
    out = [
        "gcdump contains the code of the crates below, each under its licence. Where there is a choice, all texts that the crate carries",
        "are given, but for those of the GPL, which nobody has to choose.",
        "",
    ]
    version, own = runtime()
    rows = [(p["name"], p["version"], normal(p["license"]), p.get("repository") or "", p["texts"]) for p in linked]
    rows.append(("Rust standard library", version, "MIT OR Apache-2.0", "https://www.rust-lang.org", own))
    if musl:
        rows.append(("musl libc", "as there", "MIT", "https://musl.libc.org", [MUSL]))
    width = max(len(row[0]) for row in rows)
    out += [f"{name:{width}}  {version:18}  {licence}" for name, version, licence, _, _ in rows]
    # Most crates carry the same Apache licence: each text once, below those who have it.
    by_text = {}
    for name, version, _, _, found in rows:
        for text in found:
            key = re.sub(r"\s+", " ", text)
            by_text.setdefault(key, (text, []))[1].append(f"{name} {version}")
    for text, users in by_text.values():
        out += ["", "=" * 100, *users, "-" * 100, text]
    pathlib.Path(path).write_text("\n".join(out) + "\n")


def write_sbom(path, target, root, linked, builders, metadata, checksums):
    stamp = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), datetime.timezone.utc)

    def purl(package):
        return f"pkg:cargo/{package['name']}@{package['version']}"

    def component(package, scope):
        made = {
            "type": "library",
            "bom-ref": purl(package),
            "name": package["name"],
            "version": package["version"],
            "scope": scope,
            "licenses": [{"expression": normal(package["license"])}],
            "purl": purl(package),
        }
        if package.get("description"):
            made["description"] = " ".join(package["description"].split())
        checksum = checksums.get((package["name"], package["version"]))
        if checksum:
            made["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        if package.get("repository"):
            made["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
        if package["name"] in BUNDLED:
            name, licence, _ = BUNDLED[package["name"]]
            inside = re.search(r"\+(?:\w+\.)?(\d[\d.]*)", package["version"])
            made["components"] = [
                {
                    "type": "library",
                    "bom-ref": f"{purl(package)}#{name}",
                    "name": name,
                    **({"version": inside[1]} if inside else {}),
                    "licenses": [{"expression": licence}],
                }
            ]
        return made

    known = {p["id"]: p for p in [root, *linked, *builders]}
    edges = []
    for node in metadata["resolve"]["nodes"]:
        if node["id"] in known:
            kinds = [(d["pkg"], {k["kind"] for k in d["dep_kinds"]}) for d in node["deps"]]
            to = sorted({purl(known[i]) for i, kind in kinds if i in known and kind != {"dev"} and i != node["id"]})
            edges.append({"ref": purl(known[node["id"]]), "dependsOn": to})
    bom = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": stamp.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "lifecycles": [{"phase": "build"}],
            "component": {
                "type": "application",
                "bom-ref": purl(root),
                "name": root["name"],
                "version": root["version"],
                "description": root["description"],
                "licenses": [{"expression": root["license"]}],
                "purl": purl(root),
                "properties": [{"name": "cdx:rustc:sbom:target:triple", "value": target}],
            },
        },
        # Not linked, but trusted to write what is.
        "components": [component(p, "required") for p in linked] + [component(p, "excluded") for p in builders],
        "dependencies": sorted(edges, key=lambda e: e["ref"]),
    }
    bom["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(bom, sort_keys=True)).urn
    pathlib.Path(path).write_text(json.dumps(bom, indent=1) + "\n")


MUSL = """Copyright © 2005-2020 Rich Felker, et al.

Permission is hereby granted, free of charge, to any person obtaining
a copy of this software and associated documentation files (the
"Software"), to deal in the Software without restriction, including
without limitation the rights to use, copy, modify, merge, publish,
distribute, sublicense, and/or sell copies of the Software, and to
permit persons to whom the Software is furnished to do so, subject to
the following conditions:

The above copyright notice and this permission notice shall be
included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND,
EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT.
IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY
CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT,
TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE
SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE."""


def main():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("target")
    ask.add_argument("--licences")
    ask.add_argument("--sbom")
    given = ask.parse_args()

    metadata = json.loads(cargo("metadata", "--format-version", "1", "--locked", "--filter-platform", given.target))
    packages = {(p["name"], "v" + p["version"]): p for p in metadata["packages"]}
    root = next(p for p in metadata["packages"] if p["id"] == metadata["resolve"]["root"])
    linked = crates(given.target, "normal,no-proc-macro")
    both = crates(given.target, "normal,build")
    linked, builders = ([packages[k] for k in sorted(s) if packages[k] is not root] for s in (linked, both - linked))
    with open("Cargo.lock", "rb") as lock:
        checksums = {(p["name"], p["version"]): p.get("checksum") for p in tomllib.load(lock)["package"]}

    wrong = []
    for package in linked + builders:
        name = f"{package['name']} {package['version']}"
        expression = package.get("license")
        if not expression or not allowed(expression):
            wrong.append(f"{name}: {expression or 'no licence'} is not on the list")
    for package in linked:
        _, licence, extra = BUNDLED.get(package["name"], ("", "MIT", []))
        if not allowed(licence):
            wrong.append(f"{package['name']}: {licence} of what it bundles is not on the list")
        folder = pathlib.Path(package["manifest_path"]).parent
        package["texts"] = texts(package["name"], folder, extra)
        if not package["texts"] and not any(alternative <= NEED_NO_TEXT for alternative in terms(package["license"])):
            wrong.append(f"{package['name']} {package['version']}: no text of {package['license']} in {folder}")
    if wrong:
        sys.exit("\n".join(wrong))
    if given.licences:
        write_licences(given.licences, linked, "musl" in given.target)
    if given.sbom:
        write_sbom(given.sbom, given.target, root, linked, builders, metadata, checksums)
    print(f"{given.target}: {len(linked)} crates linked, {len(builders)} for building only, all under licences of the list")


if __name__ == "__main__":
    main()
