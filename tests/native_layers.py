"""Includes allowed between the folders of the core: a table, read as documentation."""

from collections.abc import Mapping

NATIVE_ALLOWED: Mapping[str, str] = {  # folders of `native`; a folder may include itself
    "": "",  # files that lie in no folder
    "cpu": "",
    "os": "",
    "resource": "os",
    "packing": "",
    "flow": "packing",
    "search": "cpu packing",
    "primitive": "os packing resource",
    "kernels": "cpu",  # what families share; a family never includes another
    "kernels/recipes.hpp": "kernels kernels/attention kernels/convolution kernels/product "
    "kernels/recurrent",
    "kernels/*": "cpu kernels",
    "onednn": "os primitive",
    "sized": "cpu kernels kernels/detection kernels/elementwise kernels/movement kernels/reduction"
    " primitive",
    "run": "onednn sized",
    "driver": "",
    "text": "",
    "gguf": "",
}
