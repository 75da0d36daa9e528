#ifdef TIGHTSHIP_ONEDNN

#include "tightship/onednn/library.hpp"

#include "openmp.hpp"
#include "tightship/os/os.hpp"
#include "tightship/parallel.hpp"

#include <cstdio>
#include <dlfcn.h>
#include <filesystem>
#include <memory>
#include <mutex>

namespace tightship::onednn {

namespace {

/// Bytes that exceed what any description, or any kernel during code generation, was seen to take.
constexpr size_t kRoomBytes = 2 << 20;

std::unique_ptr<Library> library;
std::mutex library_mutex;

bool is_usable(const dnnl_version_t &version) {
    return version.major == 3 && version.minor >= 2;
}

/// Returns the file that contains an address of code.
std::string file_of(void *code) {
    Dl_info info{};
    const bool is_known = dladdr(code, &info) != 0 && info.dli_fname != nullptr;
    return is_known ? info.dli_fname : "";
}

} // namespace

OutOfMemory::OutOfMemory(const char *wanted) {
    std::snprintf(text_.data(), text_.size(), "oneDNN cannot %s: out of memory.", wanted);
}

Library &Library::open(const std::string &path) {
    std::lock_guard lock(library_mutex);
    if (!library)
        library.reset(new Library(path));
    return *library;
}

Library &Library::get() {
    if (!library)
        throw LibraryError("oneDNN is used before a library was opened; call `onednn_open` first.");
    return *library;
}

bool Library::is_open() {
    return static_cast<bool>(library);
}

template <class Function> Function Library::resolve(const char *name) const {
    void *symbol = dlsym(handle_, name);
    if (symbol == nullptr)
        throw LibraryError("`" + path + "` has no function `" + name +
                           "`; a libdnnl.so.3 of oneDNN 3.2 or later built for OpenMP is needed.");
    return reinterpret_cast<Function>(symbol);
}

Library::Library(const std::string &wanted) : path(wanted) {
    handle_ = dlopen(wanted.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr)
        throw LibraryError(dlerror());
    check_version();
#define TIGHTSHIP_RESOLVE(name) name = resolve<decltype(&dnnl_##name)>("dnnl_" #name);
    TIGHTSHIP_ONEDNN_FUNCTIONS(TIGHTSHIP_RESOLVE)
#undef TIGHTSHIP_RESOLVE
    find_openmp();
    check(engine_create(&engine, dnnl_cpu, 0), "create a CPU engine");
    // A description from oneDNN's cache points into a destroyed one (its brgemm kernels keep
    // `attr` and `dst_md` of the first), so that compiling it after the cache released the compiled
    // primitive drops its post-operations, or crashes.
    check(set_primitive_cache_capacity(0), "close its cache of primitives");
}

void Library::find_openmp() {
    if (dlsym(handle_, "TSMP_parallel_start") != nullptr) {
        omp_set_num_threads_ = &tsm_set_num_threads;
        omp_get_max_threads_ = &tsm_get_max_threads;
        meet_ = &tsm_meet;
        openmp = "tightship";
        return;
    }
    omp_set_num_threads_ = resolve<void (*)(int)>("omp_set_num_threads");
    omp_get_max_threads_ = resolve<int (*)()>("omp_get_max_threads");
    openmp = std::filesystem::path(file_of(dlsym(handle_, "omp_set_num_threads"))).filename();
    if (dlsym(handle_, "GOMP_parallel") != nullptr)
        share_threads({resolve<decltype(OpenMp::parallel)>("GOMP_parallel"),
                       resolve<int (*)()>("omp_get_thread_num"),
                       resolve<int (*)()>("omp_get_num_threads")});
}

void Library::check_version() {
    version = resolve<decltype(&dnnl_version)>("dnnl_version");
    const dnnl_version_t *found = version();
    version_id = std::to_string(found->major) + "." + std::to_string(found->minor) + "." +
                 std::to_string(found->patch);
    if (!is_usable(*found))
        throw LibraryError("`" + path + "` is oneDNN " + version_id +
                           "; 3.2 or a later 3.x is needed.");
    path = file_of(reinterpret_cast<void *>(version));
}

void Library::require_room(const char *what) {
    if (!os::has_room(kRoomBytes))
        throw OutOfMemory(what);
}

bool Library::served(dnnl_status_t status, const char *what) {
    if (status == dnnl_out_of_memory)
        throw OutOfMemory(what);
    return status == dnnl_success;
}

void Library::check(dnnl_status_t status, const char *what) {
    if (served(status, what))
        return;
    const char *reason = status == dnnl_invalid_arguments ? "invalid arguments"
                         : status == dnnl_unimplemented   ? "unimplemented"
                                                          : "runtime error";
    throw Error(std::string("oneDNN cannot ") + what + ": " + reason + ".", status);
}

} // namespace tightship::onednn

#endif
