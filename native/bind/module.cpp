#include "bind.hpp"

NB_MODULE(_core, module) {
    module.doc() = "The native core: placement, host memory, kernels, oneDNN, programs.";
    tightship::bind::planner(module);
    tightship::bind::table(module);
    tightship::bind::verifier(module);
    tightship::bind::items(module);
    tightship::bind::order(module);
    tightship::bind::resource(module);
    tightship::bind::numpy_bound(module);
    tightship::bind::stop_flag(module);
    tightship::bind::onednn(module);
    tightship::bind::kernels(module);
    tightship::bind::program(module);
}
