#include "tightship/resource/virtual/cuda_driver.hpp"

#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <mutex>

namespace tightship::resource {

namespace {

constexpr const char *kVariable = "TIGHTSHIP_CUDA_DRIVER_LIBRARY";
constexpr const char *kSystemDriver = "libcuda.so.1";

void *symbol_of(void *library, const std::string &path, const char *name) {
    void *const found = dlsym(library, name);
    if (found == nullptr)
        throw Unavailable("`" + path + "` has no function `" + name +
                          "`; the driver of CUDA 11.2 or later is needed. Install one, or name it "
                          "in `" +
                          kVariable + "`.");
    return found;
}

} // namespace

std::shared_ptr<const CudaDriver> CudaDriver::open(std::string path) {
    static std::mutex mutex;
    static std::map<std::string, std::shared_ptr<const CudaDriver>> drivers;
    if (const char *named = std::getenv(kVariable); path.empty() && named != nullptr)
        path = named;
    if (path.empty())
        path = kSystemDriver;
    const std::lock_guard lock(mutex);
    auto &driver = drivers[path];
    if (driver == nullptr)
        driver.reset(new CudaDriver(path));
    return driver;
}

CudaDriver::CudaDriver(const std::string &path) : path_(path) {
    void *const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
        throw Unavailable("The CUDA driver `" + path + "` cannot be opened (" + dlerror() +
                          "). Install the driver of the device, or name its library in `" +
                          kVariable + "`.");
#define TIGHTSHIP_RESOLVE(name, symbol, parameters)                                                \
    name = reinterpret_cast<decltype(name)>(symbol_of(library, path, symbol));
    TIGHTSHIP_CUDA_FUNCTIONS(TIGHTSHIP_RESOLVE)
#undef TIGHTSHIP_RESOLVE
    check(init(0), "be initialised");
}

void CudaDriver::check(cuda::Result result, const std::string &wanted) const {
    if (result == cuda::kSuccess)
        return;
    const char *text = nullptr;
    if (get_error_string(result, &text) != cuda::kSuccess || text == nullptr)
        text = "an error it has no words for";
    throw Unavailable("The CUDA driver `" + path_ + "` cannot " + wanted + ": " + text +
                      " (error " + std::to_string(result) + ").");
}

} // namespace tightship::resource
