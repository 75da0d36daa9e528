/// NumPy's allocator of new arrays (NEP 49), without its headers.
///
/// NumPy hands out its C functions as a table whose order is part of its ABI, and finds the
/// allocator of new arrays in a context variable, so other threads are not involved. An array keeps
/// its allocator alive.
#pragma once

#include <memory>
#include <nanobind/nanobind.h>

namespace tightship::bind {

/// NumPy's `PyDataMem_Handler`, version 1.
struct NumpyHandler {
    char name[127];
    uint8_t version;
    void *context;
    void *(*allocate)(void *, size_t);
    void *(*allocate_zeroed)(void *, size_t, size_t);
    void *(*reallocate)(void *, void *, size_t);
    void (*release)(void *, void *, size_t);
};

constexpr const char *kNumpyHandlerName = "mem_handler";

/// Makes the capsule that NumPy expects: `handler`, with a context that keeps `held` alive, lives
/// as long as any array made under it. The context is a `std::shared_ptr<Held> *`.
template <class Held>
nanobind::object numpy_handler_capsule(NumpyHandler handler, std::shared_ptr<Held> held) {
    handler.context = new std::shared_ptr<Held>(std::move(held));
    return nanobind::capsule(new NumpyHandler(handler), kNumpyHandlerName,
                             [](void *pointer) noexcept {
                                 auto *owned = static_cast<NumpyHandler *>(pointer);
                                 delete static_cast<std::shared_ptr<Held> *>(owned->context);
                                 delete owned;
                             });
}

/// Returns an entry of NumPy's table of C functions and variables.
void *numpy_function(size_t index);

/// Installs the handler in the calling context, and returns the one before.
nanobind::object set_numpy_handler(nanobind::handle handler);

/// Context manager that installs a handler, and restores the one before. Nests.
class NumpyScope {
  public:
    explicit NumpyScope(nanobind::object handler) : handler_(std::move(handler)) {}

    void enter() { before_.append(set_numpy_handler(handler_)); }
    void leave() { set_numpy_handler(before_.attr("pop")()); }

    nanobind::handle handler() const { return handler_; }
    nanobind::handle before() const { return before_; }

  private:
    nanobind::object handler_;
    nanobind::list before_;
};

} // namespace tightship::bind
