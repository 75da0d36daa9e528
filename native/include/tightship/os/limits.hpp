/// Limits that the system reports in advance: memory, files and mappings of a process.
#pragma once

#include <cstddef>

namespace tightship::os {

/// Returns the bytes of memory and swap of the machine; `SIZE_MAX` if the system does not say.
size_t memory_bytes();
/// Returns the size in bytes above which every private writable mapping is refused: what overcommit
/// admits, and the limits of the process. `SIZE_MAX` if nothing bounds it.
size_t largest_mapping();

/// Returns the number of files that the process may have open; `SIZE_MAX` if nothing bounds it.
size_t file_limit();

/// Returns the number of mappings that the system lets a process have; 0 if it does not say.
size_t map_limit();
/// Returns the number of mappings that the process has; 0 if the system does not say.
size_t map_count();

/// Reserves `count` further mappings for the process; returns whether it may have them. Half of the
/// mappings that the system admits are left to everything else, such as a library that is loaded or
/// the stack of a thread. All callers here draw on one count; when it is used up, the process's
/// mappings are counted again.
bool may_map(size_t count);
/// Reserves as `may_map` does, for optional uses such as cutting a mapping in two: these cannot
/// take the last of our half. After a refusal, some calls are refused without counting again.
bool may_split(size_t count);
/// Returns how many mappings `may_map` would grant, as counted now; a huge number if the system
/// does not say.
size_t maps_left();

} // namespace tightship::os
