#include "bind.hpp"

namespace tightship::bind {

void onednn(nanobind::module_ &module) {
#ifdef TIGHTSHIP_ONEDNN
    module.attr("HAS_ONEDNN") = true;
#else
    module.attr("HAS_ONEDNN") = false;
#endif
}

} // namespace tightship::bind
