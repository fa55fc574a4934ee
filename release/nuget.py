#!/usr/bin/env python3
"""Packs prebuilt binaries as a .NET tool, so that `dotnet tool install -g gcdump` gives the command.

    release/nuget.py DIST TARGET=FOLDER ...

FOLDER has the binary of the target and its THIRD-PARTY-LICENSES. There is one package for each target, and one that names them by runtime
identifier: SDK 10 and later install the one of their platform, and link its binary. Nothing of .NET runs when the command is used.
"""

import pathlib
import sys
from xml.sax.saxutils import escape, quoteattr

from targets import TARGETS, addresses, manifest, write_zip

NUSPEC = """<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://schemas.microsoft.com/packaging/2013/05/nuspec.xsd">
  <metadata>
    <id>{id}</id>
    <version>{version}</version>
    <authors>gcdump contributors</authors>
    <description>{description}</description>
    <license type="expression">{license}</license>
    <readme>README.md</readme>
    <projectUrl>{repository}</projectUrl>
    <repository type="git" url={url} />
    <tags>{tags}</tags>
    <packageTypes>
      <packageType name="{kind}" />
    </packageTypes>
  </metadata>
</package>
"""
RELATIONS = """<?xml version="1.0" encoding="utf-8"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
  <Relationship Type="http://schemas.microsoft.com/packaging/2010/07/manifest" Target="/{id}.nuspec" Id="R1" />
</Relationships>
"""


def content_types(files):
    """[Content_Types].xml: by extension, and by name for files that have none."""
    known = {"rels": "application/vnd.openxmlformats-package.relationships+xml", "nuspec": "application/octet"}
    names = [pathlib.PurePosixPath(name) for name in files]
    extensions = sorted({name.suffix[1:] for name in names if name.suffix} | known.keys())
    lines = [f'  <Default Extension="{e}" ContentType="{known.get(e, "application/octet")}" />' for e in extensions]
    lines += [f'  <Override PartName="/{name}" ContentType="application/octet" />' for name in names if not name.suffix]
    types = "http://schemas.openxmlformats.org/package/2006/content-types"
    return f'<?xml version="1.0" encoding="utf-8"?>\n<Types xmlns="{types}">\n' + "\n".join(lines) + "\n</Types>\n"


def settings(command, packages=""):
    """DotnetToolSettings.xml."""
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<DotNetCliTool Version="2">\n'
        f"  <Commands>\n    <Command {command} />\n  </Commands>\n{packages}</DotNetCliTool>\n"
    )


def pack(dist, id, kind, files, executable=()):
    """Writes a package of `files`, contents by name."""
    package = manifest()
    repository = addresses()["REPOSITORY"]
    nuspec = NUSPEC.format(
        id=id,
        version=package["version"],
        description=escape(package["description"]),
        license=package["license"],
        repository=escape(repository),
        url=quoteattr(repository),
        tags=" ".join(package["keywords"]),
        kind=kind,
    )
    files = {f"{id}.nuspec": nuspec, "README.md": pathlib.Path("README.md").read_text(), **files}
    files = {"[Content_Types].xml": content_types(files), "_rels/.rels": RELATIONS.format(id=id), **files}
    write_zip(dist / f"{id}.{package['version']}.nupkg", files, executable)


def main():
    dist, targets = pathlib.Path(sys.argv[1]), dict(argument.split("=", 1) for argument in sys.argv[2:])
    listed = []
    for target, folder in targets.items():
        about, folder = TARGETS[target], pathlib.Path(folder)
        id, place = f"gcdump.{about.rid}", f"tools/any/{about.rid}"
        files = {
            f"{place}/DotnetToolSettings.xml": settings(f'Name="gcdump" EntryPoint="{about.binary}" Runner="executable"'),
            f"{place}/{about.binary}": (folder / about.binary).read_bytes(),
            "LICENSE.txt": pathlib.Path("LICENSE").read_bytes(),
            "THIRD-PARTY-LICENSES.txt": (folder / "THIRD-PARTY-LICENSES").read_bytes(),
        }
        pack(dist, id, "DotnetToolRidPackage", files, {f"{place}/{about.binary}"})
        listed.append(f'    <RuntimeIdentifierPackage RuntimeIdentifier="{about.rid}" Id="{id}" />\n')
    packages = f"  <RuntimeIdentifierPackages>\n{''.join(listed)}  </RuntimeIdentifierPackages>\n"
    pack(dist, "gcdump", "DotnetTool", {"tools/any/any/DotnetToolSettings.xml": settings('Name="gcdump"', packages)})


if __name__ == "__main__":
    main()
