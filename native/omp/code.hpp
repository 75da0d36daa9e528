/// What keeps the code of the bundled oneDNN small in memory: it calls these in place of the C
/// library's functions.
#pragma once

#include <cstddef>

extern "C" {

/// `mprotect`, except that of memory asked to be writable and executable at once only the pages
/// that were written, and two more, become so; the rest can only be read and run. oneDNN asks so
/// when a kernel is complete. What is not writable does not count against a limit on data
/// (RLIMIT_DATA), which the 256 KiB reserved for each kernel would fill.
int tsm_seal(void *start, size_t size_bytes, int access);

/// In place of `__gmon_start__`, which a library calls before its other initializers: maps the code
/// of the caller finely. oneDNN's thousand initializers lie all over its code.
void tsm_on_load();

/// Bytes of code that the calling thread has sealed since it began, in pages that were written.
size_t tsm_sealed_bytes();
}
