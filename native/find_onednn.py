"""Print `include;library;licences` of the oneDNN wheels of the build environment."""

import sys
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path


def locate(package: str, name: str) -> Path:
    """Return the installed file of `package` whose path ends in `name`."""
    for file in files(package) or []:
        if str(file).endswith("/" + name):
            return Path(str(file.locate())).resolve()
    raise FileNotFoundError(f"{package} has no file {name}")


try:
    header = locate("onednn-devel-cpu-gomp", "include/oneapi/dnnl/dnnl.h")
    library = locate("onednn-cpu-gomp", "libdnnl.so.3")
    licence = locate("onednn-cpu-gomp", "doc/onednn/LICENSE")
except (PackageNotFoundError, FileNotFoundError) as missing:
    sys.exit(str(missing))
print(header.parents[2], library, licence.parent, sep=";")
