#include "bind.hpp"
#include "resource/python_device.hpp"
#include "tightship/onednn/primitive_cache.hpp"
#include "tightship/os/os.hpp"

#include <cstdlib>
#include <dlfcn.h>

namespace {

/// Drops the code that importing the module has run, because most of it never runs again.
void release_own_code() {
    Dl_info found{};
    if (dladdr(reinterpret_cast<void *>(&release_own_code), &found) != 0)
        tightship::os::release_code(found.dli_fname);
}

/// Returns whether the process lists objects of ours that the interpreter's end leaves alive. Our
/// tests ask for it; the list means nothing to users.
bool wants_leak_warnings() {
    return std::getenv("TIGHTSHIP_LEAK_WARNINGS") != nullptr;
}

/// Prevents false warnings of leaks at exit. Frees the pools of the process's cache, which is never
/// destroyed and would keep their resources alive. Disables the warnings if threads are left, which
/// may outlive the interpreter with all that their frames and pending functions refer to, and if
/// torch was imported: its caches of compiled graphs hide references to our functions from the
/// collector of garbage, so that its last pass may come before they are released.
void at_exit() {
#ifdef TIGHTSHIP_ONEDNN
    tightship::onednn::PrimitiveCache::of_process().pools()->trim(0);
#endif
    const auto threads = nanobind::module_::import_("_thread").attr("_count")();
    const nanobind::dict modules = nanobind::module_::import_("sys").attr("modules");
    if (nanobind::cast<int64_t>(threads) > 0 || modules.contains("torch") ||
        tightship::bind::PythonHostStream::unfinished_count() > 0)
        nanobind::set_leak_warnings(false);
}

} // namespace

NB_MODULE(_core, module) {
    nanobind::set_leak_warnings(wants_leak_warnings());
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
    tightship::bind::checkpoints(module);
    tightship::bind::reuse(module);
    tightship::bind::resource(module);
    tightship::bind::dynamic_memory(module);
    tightship::bind::numpy_resource(module);
    tightship::bind::numpy_threads(module);
    tightship::bind::replaying(module);
    tightship::bind::stop_flag(module);
    tightship::bind::sha256(module);
    tightship::bind::byte_pairs(module);
    tightship::bind::gguf_stored(module);
    tightship::bind::guarded_mapping(module);
    tightship::bind::onednn(module);
    tightship::bind::kernels(module);
    tightship::bind::detection(module);
    tightship::bind::program(module);
    tightship::bind::sized_program(module);
    tightship::bind::session_steps(module);
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
