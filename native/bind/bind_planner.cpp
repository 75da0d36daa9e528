#include "bind.hpp"

namespace tightship::bind {

void planner(nanobind::module_ &) {}

} // namespace tightship::bind
