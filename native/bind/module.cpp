#include "bind.hpp"
#include "resource/python_device.hpp"
#include "tightship/onednn/primitive_cache.hpp"
#include "tightship/os/os.hpp"

#include <dlfcn.h>

namespace {

/// Drops the code that importing the module has run, because most of it never runs again.
void release_own_code() {
    Dl_info found{};
    if (dladdr(reinterpret_cast<void *>(&release_own_code), &found) != 0)
        tightship::os::release_code(found.dli_fname);
}

/// Prevents false warnings of leaks at exit. Frees the pools of the process's cache, which is never
/// destroyed and would keep their resources alive. Disables the warnings if threads are left, which
/// may outlive the interpreter with all that their frames and pending functions refer to.
void at_exit() {
#ifdef TIGHTSHIP_ONEDNN
    tightship::onednn::PrimitiveCache::of_process().pools()->trim(0);
#endif
    const auto threads = nanobind::module_::import_("_thread").attr("_count")();
    if (nanobind::cast<int64_t>(threads) > 0 ||
        tightship::bind::PythonHostStream::unfinished_count() > 0)
        nanobind::set_leak_warnings(false);
}

} // namespace

NB_MODULE(_core, module) {
    module.doc() = "The native core: placement, host memory, kernels, oneDNN, programs.";
    tightship::bind::planner(module);
    tightship::bind::search(module);
    tightship::bind::table(module);
    tightship::bind::plan_file_rows(module);
    tightship::bind::verifier(module);
    tightship::bind::items(module);
    tightship::bind::order(module);
    tightship::bind::flow(module);
    tightship::bind::least_order(module);
    tightship::bind::reuse(module);
    tightship::bind::resource(module);
    tightship::bind::numpy_bound(module);
    tightship::bind::numpy_resource(module);
    tightship::bind::replaying(module);
    tightship::bind::stop_flag(module);
    tightship::bind::sha256(module);
    tightship::bind::guarded_mapping(module);
    tightship::bind::onednn(module);
    tightship::bind::kernels(module);
    tightship::bind::program(module);
    tightship::bind::permits(module);
    tightship::bind::repeats(module);
    tightship::bind::request_metrics(module);
    tightship::bind::primitive_memory(module);
    tightship::bind::primitive_cache(module);
    module.def("version", [] { return TIGHTSHIP_VERSION; }, "Return the version of the package.");
    module.def(
        "expect_leaks", [] { nanobind::set_leak_warnings(false); },
        "Keep the end of the process from listing objects that are still alive.");
    nanobind::module_::import_("atexit").attr("register")(nanobind::cpp_function(at_exit));
    release_own_code();
}
