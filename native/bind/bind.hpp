/// One function for each family of bindings; `module.cpp` calls them.
#pragma once

#include <nanobind/nanobind.h>

namespace tightship::bind {

void planner(nanobind::module_ &module);
void resource(nanobind::module_ &module);
void numpy_bound(nanobind::module_ &module);
void stop_flag(nanobind::module_ &module);
void onednn(nanobind::module_ &module);
void program(nanobind::module_ &module);

} // namespace tightship::bind
