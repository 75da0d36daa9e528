#include "bind.hpp"

namespace tightship::bind {

void resource(nanobind::module_ &) {}

} // namespace tightship::bind
