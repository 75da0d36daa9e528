/// What the system lets a process have, as far as it says so in advance.
#pragma once

#include <cstddef>

namespace tightship::os {

/// Memory and swap of the machine; `SIZE_MAX` where the system does not say.
size_t memory_bytes();
/// The size above which every private writable mapping is refused: what overcommit admits, and the
/// limits of the process. `SIZE_MAX` where nothing bounds it.
size_t largest_mapping();

/// How many files the process may have open; `SIZE_MAX` where nothing bounds it.
size_t file_limit();

/// How many ranges of addresses the system lets a process have; 0 where it does not say.
size_t map_limit();
/// How many the process has; 0 where the system does not say.
size_t map_count();

/// Whether the process may have `count` ranges more, and takes them. Half of what the system admits
/// is for everything else: a library that is loaded, the stack of a thread. One count for all that
/// ask here, upon which the process's ranges are counted when it is used up.
bool may_map(size_t count);
/// The same for what can be done without, such as to cut a range in two: the last of our half is
/// not for it. A refusal holds for some calls without counting again.
bool may_split(size_t count);
/// How many `may_map` would grant, as counted now; a huge number where the system does not say.
size_t maps_left();

} // namespace tightship::os
