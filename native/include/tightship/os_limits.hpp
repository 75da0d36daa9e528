/// What the system lets a process have, as far as it says so in advance.
#pragma once

#include <cstddef>

namespace tightship::os {

/// Memory and swap of the machine; `SIZE_MAX` where the system does not say.
size_t memory_bytes();
/// The size above which every private writable mapping is refused: what overcommit admits, and the
/// limits of the process. `SIZE_MAX` where nothing bounds it.
size_t largest_mapping();

/// How many ranges of addresses the system lets a process have; 0 where it does not say.
size_t map_limit();
/// How many the process has; 0 where the system does not say.
size_t map_count();

} // namespace tightship::os
