"""Prepared models of one user: files made once, whoever comes first, and mapped by all.

    FOLDER/known/DIGEST_OF_PATH.json   what a model's files held when their facts were these
    FOLDER/KEY/model.tship             an entry; KEY digests the model and all it is prepared for
    FOLDER/KEY/about.json              what `tightship cache list` says of it
    FOLDER/KEY/lock                    held while the entry is made or removed

What a process has mapped stays whole when its entry is removed: the file only loses its name.
"""

from tightship.prepared_cache.cache import About, PreparedCache
from tightship.prepared_cache.entries import Entry, clear, entries
from tightship.prepared_cache.identity import Identity, identify
from tightship.prepared_cache.settings import cache_folder, cache_size_bytes, user_folder
from tightship.prepared_cache.trust import UnusableCacheError

__all__ = [
    "About",
    "Entry",
    "Identity",
    "PreparedCache",
    "UnusableCacheError",
    "cache_folder",
    "cache_size_bytes",
    "clear",
    "entries",
    "identify",
    "user_folder",
]
