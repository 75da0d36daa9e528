"""Keeps prepared models of one user: files that the first process makes and all processes map.

    FOLDER/known/DIGEST_OF_PATH.json   digest of a model's files while their facts stay the same
    FOLDER/KEY/model.tship             an entry; KEY digests the model and all it is prepared for
    FOLDER/KEY/about.json              facts of the entry that `tightship cache list` shows
    FOLDER/KEY/lock                    held while the entry is made or removed

A file that a process has mapped stays intact when its entry is removed, because the file only loses
its name.
"""

from tightship.prepared_cache.cache import About, PreparedCache
from tightship.prepared_cache.entries import Entry, clear, entries
from tightship.prepared_cache.identity import Identity, identify, is_settled
from tightship.prepared_cache.settings import (
    cache_folder,
    cache_size_bytes,
    keeps_programs,
    user_folder,
)
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
    "is_settled",
    "keeps_programs",
    "user_folder",
]
