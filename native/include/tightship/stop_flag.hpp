/// Flag that any thread may set to end a run between two steps.
#pragma once

#include <atomic>

namespace tightship {

using StopFlag = std::atomic<bool>;

} // namespace tightship
