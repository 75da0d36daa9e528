/// Functions that the bundled oneDNN calls in place of the C library's, so that its code takes
/// little memory.
#pragma once

#include <cstddef>

extern "C" {

/// Changes access as `mprotect` does. If memory becomes writable and executable, the pages behind
/// its last byte that is not zero become shared zeros, as writable and executable as before.
///
/// oneDNN reserves 256 KiB for a kernel and asks for this when it has generated the code, which
/// fills a few pages. Shared memory does not count against a limit on data (RLIMIT_DATA), nor as
/// resident until it is written. It stays writable because oneDNN may write again: it generates
/// some kernels twice (`jit_cvt_xf16_to_ps_t`, up to 3.12 at least), the second time behind the
/// first. A child of `fork` shares these pages; their content depends on the kernel alone.
///
/// Returns 0, or -1 with `errno` as `mprotect` does; the memory may then only be unmapped.
int tsm_seal(void *start, size_t size_bytes, int access);

/// Maps the code of the calling library finely. Replaces `__gmon_start__`, which a library calls
/// before its other initializers: oneDNN's thousand initializers lie all over its code.
void tsm_on_load();
}
